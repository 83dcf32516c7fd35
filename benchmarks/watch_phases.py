"""Does th.Watch name the phase of a run? Fifty runs of each phase, whose phase is known by how they were made.

Each is trained twice. Bare, every step is recorded, and the largest eigenvalue is that of the whole Hessian, divided by the
optimizer's state where it has one: a run counts only if that record shows the phase it was made for, with a gap to every other
(`truth`), else the next seed is drawn. Then the same run is watched, level standard, about twelve looks; what `watch.phase`
says at its end is laid beside. Made are: *lazy* (a network scaled up beside its start), *stable* (a small start, a step far below
the edge), *edge* (full-batch steps below it at the start), *catapult* (beyond it), *flat* (beyond it, but the loss never
rises: no catapult), *divergent* (far beyond; half of them stopped when the loss has grown a thousandfold) and *dead* (rectifiers
and steps that put them all out). `python benchmarks/watch_phases.py --runs 50 --jobs 2`. Looks are
whole; with `--thin` they are those that 5 % of so short a run allows.
"""

import argparse
import collections
import concurrent.futures
import itertools
import logging
import math
import multiprocessing
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy, mse_loss

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
import theodolite as th
from theodolite.verbs.watching import watched_run

SAMPLES, INPUTS, CLASSES, LOOKS, ATTEMPTS = 32, 5, 3, 12, 300
THROW = 25
"""Steps within which a catapult goes up: some multiple of the logarithm of the width."""

PHASES = ("lazy", "stable", "edge", "catapult", "flat", "divergent", "dead")
ANSWER = {"flat": ("stable", "lazy")}
"""What counts as right, where it is not the name itself: steps beyond the edge whose loss fell from the start are no catapult."""

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU}


class Beside(nn.Module):
    """A network beside its own start, scaled: the larger the scale, the nearer to its linearization."""

    def __init__(self, net, scale):
        super().__init__()
        self.net, self.scale = net, scale
        self.start = [parameter.detach().clone() for parameter in net.parameters()]

    def forward(self, x):
        names = [name for name, _ in self.net.named_parameters()]
        return self.scale * (self.net(x) - functional_call(self.net, dict(zip(names, self.start, strict=True)), (x,)))


@dataclass
class Made:
    """A run to be trained: what `train` needs, the same at each call."""

    model: nn.Module
    x: torch.Tensor
    y: torch.Tensor
    loss: object
    kind: str
    lr: float
    steps: int
    batch: int | None = None
    first_lr: float | None = None
    stop: float = math.inf
    least: float = 0.0
    words: str = ""


@dataclass
class Seen:
    """The bare record: the loss at each step, curvature over the edge at some, kernel at both ends, whether units are left."""

    losses: list = field(default_factory=list)
    ratios: list = field(default_factory=list)
    drift: float = math.nan
    dead: bool = False


def network(generator, activation, depth, width, gain, outputs):
    sizes = [INPUTS, *[width] * depth, outputs]
    layers = []
    for place, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        layer = nn.Linear(fan_in, fan_out)
        nn.init.normal_(layer.weight, 0, gain * fan_in**-0.5, generator=generator)
        nn.init.zeros_(layer.bias)
        layers += [layer] if place == depth else [layer, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers)


def data(generator, loss):
    x = torch.randn(SAMPLES, INPUTS, generator=generator)
    if loss is cross_entropy:
        y = torch.randint(0, CLASSES, (SAMPLES,), generator=generator)
        return x + 1.5 * torch.eye(INPUTS)[y], y
    target = torch.sin(x @ torch.randn(INPUTS, 1, generator=generator)) + 0.5 * x[:, :1]
    return x, target


def optimizer_of(made):
    own = made.model.parameters()
    if made.kind == "Adam":
        return torch.optim.Adam(own, made.lr)
    return torch.optim.SGD(own, made.lr, momentum=0.9 if made.kind == "momentum" else 0.0)


def whole_hessian(made):
    own = list(made.model.parameters())
    loss = made.loss(made.model(made.x), made.y)
    slopes = torch.autograd.grad(loss, own, create_graph=True)
    flat = torch.cat([slope.reshape(-1) for slope in slopes])
    eye = torch.eye(len(flat))
    rows = torch.autograd.grad(flat, own, eye, is_grads_batched=True, materialize_grads=True)
    return torch.cat([row.reshape(len(flat), -1) for row in rows], 1).double()


def ratio_now(made, optimizer, lr):
    """The largest eigenvalue of the Hessian as the optimizer sees it, over its edge; not a number where there is none yet."""
    whole = whole_hessian(made)
    if not whole.isfinite().all():
        return math.nan
    edge = (2 + 2 * 0.9 * (made.kind == "momentum")) / lr
    if made.kind == "Adam":
        states = [optimizer.state.get(p, {}) for p in made.model.parameters()]
        if not all(states):
            return math.nan
        count = float(states[0]["step"])
        root = torch.cat([s["exp_avg_sq"].reshape(-1) for s in states]).double().div(1 - 0.999**count).sqrt() + 1e-8
        whole = whole / (root[:, None] * root).sqrt()
        edge = 38 / lr / (1 - 0.9**count)
    return float(torch.linalg.eigvalsh((whole + whole.T) / 2)[-1]) / edge


def tangent_kernel(made):
    out = made.model(made.x)
    own = list(made.model.parameters())
    rows = torch.autograd.grad(
        out.reshape(-1), own, torch.eye(out.numel()), is_grads_batched=True, materialize_grads=True
    )
    whole = torch.cat([row.reshape(out.numel(), -1) for row in rows], 1).double()
    return whole @ whole.T


def units_left(made):
    """Whether any unit behind each activation differs from zero on any sample."""
    out, left = made.x, True
    inner = made.model.net if isinstance(made.model, Beside) else made.model
    with torch.no_grad():
        for layer in inner:
            out = layer(out)
            if not isinstance(layer, nn.Linear):
                left = left and bool((out != 0).any())
    return left


def train(made, before_step):
    """Train; ``before_step(step, optimizer)`` is called before each and after the last, and ends the run by True."""
    optimizer = optimizer_of(made)
    order = torch.Generator().manual_seed(1)
    for step in range(made.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = made.first_lr if step == 0 and made.first_lr else made.lr
        if before_step(step, optimizer) or step == made.steps:
            return
        rows = slice(None) if made.batch is None else torch.randint(0, SAMPLES, (made.batch,), generator=order)
        optimizer.zero_grad()
        made.loss(made.model(made.x[rows]), made.y[rows]).backward()
        optimizer.step()


def record(made):
    """The run trained bare."""
    seen = Seen()
    kernel = tangent_kernel(made)
    late = 2 * made.steps // 3
    often = max(1, (made.steps - late) // 8)

    def look(step, optimizer):
        with torch.no_grad():
            seen.losses.append(float(made.loss(made.model(made.x), made.y)))
        begins = step == (1 if made.kind == "Adam" else 0)
        if begins or step == made.steps // 3 or (step >= late and (step - late) % often == 0):
            seen.ratios.append((step, ratio_now(made, optimizer, optimizer.param_groups[0]["lr"])))
            if step >= late and seen.ratios[-1][1] < made.least:
                return True  # it will not be the phase that it was made for
        return not math.isfinite(seen.losses[-1]) or seen.losses[-1] > made.stop * seen.losses[0]

    train(made, look)
    change = tangent_kernel(made) - kernel
    seen.drift = float(change.norm() / kernel.norm())
    seen.dead = not units_left(made)
    return seen


def truth(seen):
    """The phase that the bare record shows; None where it shows none clearly."""
    losses, ratios = seen.losses, [ratio for _, ratio in seen.ratios if math.isfinite(ratio)]
    start, end, peak = losses[0], losses[-1], max(losses)
    grown = not math.isfinite(end) or end > 1000 * start
    if grown or seen.dead:
        return None if grown and seen.dead else "divergent" if grown else "dead"
    if len(ratios) < 4 or end > 0.7 * start or peak > 100 * start:
        return None
    first, late = ratios[0], ratios[2:]
    if first > 1.05 and max(late) < 0.85:
        thrown = max(losses[:THROW]) > 1.2 * start  # later spikes are those of a run that hovers at the edge
        return "catapult" if thrown else "flat" if peak <= start else None
    if first < 0.75 and sum(late) / len(late) > 0.88 and min(late) > 0.75 and max(late) > 0.97 and peak < 1.2 * start:
        return "edge"  # of Adam it is a saw: slowly up to 1, and down to 0.8 at once
    if max(ratios) < 0.85 and peak < 1.2 * start:
        return "lazy" if seen.drift < 0.35 else "stable" if seen.drift > 0.7 else None
    return None


def made(phase, seed):
    """A run that is likely to show the phase; the same for the same seed."""
    generator = torch.Generator().manual_seed(1000 * PHASES.index(phase) + seed)

    def between(low, high):
        return low * (high / low) ** torch.rand(1, generator=generator).item()

    def one_of(*values):
        return values[int(torch.randint(0, len(values), (1,), generator=generator))]

    loss = one_of(mse_loss, mse_loss, cross_entropy)
    kind = ("SGD", "SGD", "momentum", "Adam")[seed % 50 % 4]  # the same whichever seed of a number is taken
    activation, depth, width = one_of(*ACTIVATIONS), one_of(1, 2), one_of(8, 12, 16)
    gain, steps, scale, batch, first, stop = 1.4, 240, 0.0, None, None, math.inf
    if phase == "lazy":
        ratio, scale, kind = between(0.05, 0.5), between(20, 60), "momentum" if kind == "Adam" else kind
        batch = one_of(None, 16) if ratio < 0.2 else None
    elif phase == "stable":
        ratio, gain, steps, batch = between(0.02, 0.2), between(0.5, 1.0), 480, one_of(None, 16)
    elif phase == "edge":
        ratio, gain, steps, depth, width = between(0.3, 0.65), between(0.5, 1.2), 600, one_of(2, 3), one_of(8, 12)
        ratio = ratio if kind == "SGD" else between(0.5, 0.72)  # momentum moves on before the curvature has grown
        loss = mse_loss  # of cross-entropy the curvature falls again once the classes are told apart
    elif phase == "catapult":
        ratio, loss, width = between(1.15, 1.9), one_of(mse_loss, mse_loss, mse_loss, cross_entropy), 16
        kind, gain = "SGD" if kind == "Adam" else kind, between(1.0, 2.0)
    elif phase == "flat":
        ratio, kind = between(0.1, 0.4), "SGD" if kind == "Adam" else kind
        first = between(1.1, 1.7)
    elif phase == "divergent":
        ratio, steps, stop = between(4, 40), 60, one_of(math.inf, 2000.0)
    else:
        ratio, steps, activation = between(5, 100), 60, "relu"
        loss = mse_loss if kind == "Adam" else cross_entropy
    x, y = data(generator, loss)
    model = network(generator, activation, depth, width, gain, CLASSES if loss is cross_entropy else 1)
    model = Beside(model, scale) if scale else model
    run = Made(model, x, y, loss, kind, 1.0, steps, batch, None, stop)
    if kind == "Adam":
        run.lr = {"divergent": between(10, 300), "dead": between(0.3, 3), "edge": between(5e-3, 2e-2)}.get(
            phase, between(5e-4, 3e-3)
        )
        run.steps = 3 * steps // 2 if phase == "edge" else steps
    else:
        measured = ratio_now(run, None, 1.0)
        run.lr = ratio / measured
        run.first_lr = None if first is None else first / measured
        if phase == "divergent" and loss is cross_entropy:
            run.lr *= 1e4
    run.least = 0.75 if phase == "edge" else 0.0
    run.words = (
        f"{kind}, {activation}, {depth} hidden of {width}, {loss.__name__}, lr {run.lr:.2g}, batch {batch or 'all'}"
    )
    return run


def watched(run, budget=math.inf):
    """The phase that a watch tells at the end of the same run, and why."""
    optimizers = []

    def look(step, optimizer):
        if not optimizers:
            optimizers.append(
                th.Watch(
                    run.model,
                    optimizer=optimizer,
                    probe=(run.x, run.y),
                    loss=run.loss,
                    every=max(1, run.steps // LOOKS),
                    budget=budget,
                )
            )
        optimizers[0](step)
        with torch.no_grad():
            value = float(run.loss(run.model(run.x), run.y))
        start = optimizers[0].records[0].facts["loss"]
        done = not math.isfinite(value) or value > run.stop * start
        if done or step == run.steps:
            optimizers[0].look(step)
        return done

    train(run, look)
    return optimizers[0].phase


def case(phase, number, thin=False):
    """The first seed of this number whose bare record shows the phase, and what the watch says of it."""
    torch.set_num_threads(1)
    logging.getLogger("theodolite").setLevel(logging.CRITICAL)
    watched_run.LARGEST_TRIED = 0  # the phase is asked here, not which step is advised
    for attempt in range(ATTEMPTS):
        seed = number + 50 * attempt
        if truth(record(made(phase, seed))) == phase:
            run = made(phase, seed)
            found = watched(run, None if thin else math.inf)
            return phase, seed, attempt, run.words, found.name, found.reason
    return phase, number, ATTEMPTS, "no run of this kind was found", "", ""


def right(phase, name):
    return name in ANSWER.get(phase, (phase,))


def told(rows):
    """The table of truth against answer, and the runs whose answer is wrong."""
    names = [*PHASES, "undecided"]
    names.remove("flat")
    print("made as    " + "".join(f"{name:>10}" for name in names) + "     right   drawn for one")
    for phase in PHASES:
        own = [row for row in rows if row[0] == phase and row[4]]
        count = collections.Counter(row[4] for row in own)
        drawn = sum(row[2] + 1 for row in own) / max(1, len(own))
        good = sum(right(phase, row[4]) for row in own)
        print(
            f"{phase:<11}"
            + "".join(f"{count[name] or '':>10}" for name in names)
            + f"  {good:>3} of {len(own):<3} {drawn:9.1f}"
        )
    for phase, seed, _, words, name, reason in rows:
        if not right(phase, name):
            print(f"{phase} seed {seed} ({words}): {name}: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=PHASES)
    parser.add_argument("--thin", action="store_true", help="looks within their share of the run")
    options = parser.parse_args()
    phases = [options.only] if options.only else PHASES
    cases = [(phase, number, options.thin) for phase in phases for number in range(options.runs)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        rows = list(pool.map(case, *zip(*cases, strict=True)))
    told(rows)


if __name__ == "__main__":
    main()
