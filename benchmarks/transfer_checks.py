"""Does the width check name the layer that was broken, do its exponents agree with theory, and is find_lr right?"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
from benchmarks.gpu_transfer import Gpt
from benchmarks.transfer import cnn, digits, mlp
from torch import nn
from torch.nn import functional as F

import theodolite as th
from theodolite.construct.dynamics import layer_kinds
from theodolite.instruments.width_scaling import SMALL, scaling_readings, step_batches
from theodolite.measure.dynamics import layer_moves, scaling_exponents

SIZES = {"mlp": (64, 128, 256, 512), "cnn": (16, 32, 64, 128), "gpt": (32, 64, 128, 256)}


class Gated(nn.Module):
    """A gated unit with a normalization, on digits."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(64, width), nn.LayerNorm(width)
        self.gate, self.up, self.down = (nn.Linear(width, width) for _ in range(3))
        self.last = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        z = self.norm(x)
        return self.last(x + self.down(F.silu(self.gate(z)) * self.up(z)))


def tokens(count: int = 512) -> tuple[torch.Tensor, torch.Tensor]:
    from benchmarks.gpu_transfer import text

    rows = text(16, 200_000)[:count]
    return rows[:, :-1], rows[:, 1:]


def token_loss(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(z.flatten(0, -2), y.flatten())


NETWORKS: dict[str, Any] = {
    "mlp": (mlp, (64, 128, 256, 512)),
    "cnn": (cnn, (16, 32, 64, 128)),
    "gated": (Gated, (32, 64, 128, 256)),
    "gpt": (lambda width: Gpt(width, 2, 16), (32, 64, 128, 256)),
}


def broken(build: Any, base: int, rule: str, layer: str, what: str) -> Any:
    """The network by th.transfer, but one layer's step or first size is that of the standard way."""

    def made(width: int) -> tuple[nn.Module, Any]:
        torch_seed = torch.initial_seed()
        model = build(width)
        with torch.random.fork_rng():
            torch.manual_seed(100)
            small = build(base)
        inputs = torch.zeros(1, 8, dtype=torch.long) if isinstance(model, Gpt) else None
        plan = th.transfer(model, small, inputs=inputs).initialize_(torch.Generator().manual_seed(torch_seed))
        growth = width / base
        groups = plan.groups(SMALL[rule], rule=rule)
        own = dict(model.named_parameters())
        for group in groups:
            group.pop("rule")
        if layer:
            weight = own[layer + ".weight"]
            kind = next(t.kind for t in plan.tensors if t.name == layer + ".weight")
            if what == "step":  # one factor of the width too much where there is none, too little where there is one
                factor = {"adam": growth if kind in ("hidden", "output") else 1 / growth}.get(
                    rule, 1 / growth if kind != "output" else growth
                )
                lr = next(g["lr"] for g in groups if any(p is weight for p in g["params"])) * factor
                for group in groups:
                    group["params"] = [p for p in group["params"] if p is not weight]
                groups = [g for g in groups if g["params"]] + [{"params": [weight], "lr": lr, "weight_decay": 0.0}]
            else:
                with torch.no_grad():
                    weight.mul_(growth**0.5)
        return model, (torch.optim.Adam if rule == "adam" else torch.optim.SGD)(groups, lr=SMALL[rule])

    return made


PLACES = {
    "mlp": (("0", "step"), ("2", "step"), ("4", "initial"), ("6", "step")),
    "cnn": (("4", "step"), ("9", "initial")),
    "gated": (("gate", "step"), ("down", "initial")),
}
OF_GPT = (("blocks.0.attention.out", "step"), ("blocks.1.up", "step"), ("blocks.1.down", "initial"), ("tokens", "step"))
BROKEN = [
    *((name, rule, *place) for name, places in PLACES.items() for rule in ("adam", "sgd") for place in places),
    *(("gpt", "adam", *place) for place in OF_GPT),
]


CASES = [*BROKEN, *[(name, rule, "", str(k)) for name in NETWORKS for rule in ("adam", "sgd") for k in range(3)][:20]]
"""Twenty networks with one layer broken, and twenty that are right."""


def sample_and_loss(name: str) -> tuple[Any, Any]:
    return (tokens(), token_loss) if name == "gpt" else (digits(), F.cross_entropy)


def named(number: int) -> dict[str, Any]:
    """What the check says of one of `CASES`."""
    name, rule, layer, what = CASES[number]
    build, widths = NETWORKS[name]
    samples, loss = sample_and_loss(name)
    shift = 64 * (number % 7)  # other samples for repetitions
    samples = tuple(column[shift:] for column in samples)
    found = th.width_scaling(broken(build, widths[0], rule, layer, what), widths, data=samples, loss=loss, rule=rule)
    right = found.wrong == ((layer,) if layer else ())
    return {"network": name, "rule": rule, "broken": layer, "what": what, "named": found.wrong, "right": right}


def exponents(name: str, rule: str, way: Any) -> list[dict[str, Any]]:
    """The exponents of a standard or a transferred network beside theory."""
    build, widths = NETWORKS[name]
    samples, loss = sample_and_loss(name)
    moves: dict[float, list[Any]] = {}
    for width in widths:
        for seed in range(5):
            torch.manual_seed(seed)
            if way == "transferred":
                model, optimizer = broken(build, widths[0], rule, "", "")(width)
            else:
                model = build(width)
                kind = torch.optim.Adam if rule == "adam" else torch.optim.SGD
                optimizer = kind(model.parameters(), lr=SMALL[rule])
            subject = th.Subject(model, data=samples, loss=loss, checked=False)
            losses = partial(_loss, subject)
            moves.setdefault(width, []).append(layer_moves(model, optimizer, losses, step_batches(subject, 4)))
    kinds = layer_kinds(build(widths[-1]), build(widths[0]))
    return [
        {"network": name, "rule": rule, "way": way, "layer": r.where, "quantity": r.quantity}
        | {"measured": r.measured, "stderr": r.stderr, "predicted": r.expected.middle}
        for r in scaling_readings(scaling_exponents(moves), kinds, rule=rule, parametrization=way)
    ]


def _loss(subject: th.Subject, model: nn.Module, batch: Any) -> torch.Tensor:
    return subject.loss_on(batch, model)


EXPONENTS = [(name, rule, way) for name in NETWORKS for rule in ("adam", "sgd") for way in ("standard", "transferred")]


def check() -> dict[str, Any]:
    """Whether the broken layers are named, and the exponents of standard and transferred networks."""
    return {
        "named": [named(number) for number in range(len(CASES))],
        "exponents": [row for one in EXPONENTS for row in exponents(*one)],
    }


def clinic(known: Sequence[dict[str, Any]] = (), runs: int = 30) -> Iterator[list[dict[str, Any]]]:
    """find_lr on the first runs of the clinic that are healthy and have no schedule; goes on from the rows that are known."""
    rows = list(known)
    for name in clinic_runs(runs):
        if name not in {row["case"] for row in rows}:
            rows.append(found_lr(name))
            yield rows


def clinic_runs(count: int) -> list[str]:
    """Names of runs whose one step size is the whole choice."""
    from benchmarks.clinic_cases import cases

    found = (c for c in cases() if c.ailment is None and "accumulated" not in c.name)
    return [c.name for c in islice((c for c in found if c.build(c.seeds[0]).scheduler is None), count)]


def at_step(case: Any, times: float, seed: int = 0) -> Any:
    """The script of a case with its step size so many times as large; other seeds draw weights and batches anew."""
    setup = case.build(case.seeds[0] + seed)
    for group in setup.optimizer.param_groups:
        group["lr"] *= times
    return setup


def grid(case: Any, powers: Sequence[int] = range(-6, 7), seed: int = 0) -> dict[int, float]:
    """The held-out loss of whole runs, by the power of two that the step size is multiplied with."""
    from benchmarks.clinic_cases import held_out_loss, run

    found = {}
    for power in powers:
        setup = at_step(case, 2.0**power, seed)
        run(setup)
        value = held_out_loss(setup)
        found[power] = value if math.isfinite(value) else math.inf
    return found


def repeats(clinic: Sequence[dict[str, Any]], known: Sequence[dict[str, Any]] = ()) -> Iterator[list[dict[str, Any]]]:
    """The grid of each run where find_lr and the grid are more than a factor of two apart, again at three other seeds."""
    from benchmarks.clinic_cases import cases

    named, rows = {case.name: case for case in cases()}, list(known)
    for row in sorted(clinic, key=lambda row: float(row["seconds"])):
        best, found = (round(math.log2(row[key] / row["own"])) for key in ("best", "found"))
        powers = range(min(best - 2, found - 1), max(best + 2, found + 1) + 1)
        for seed in (1, 2, 3) if not 0.5 <= row["ratio"] <= 2 else ():
            if not any((one["case"], one["seed"]) == (row["case"], seed) for one in rows):
                rows.append({"case": row["case"], "seed": seed, "grid": grid(named[row["case"]], powers, seed)})
                yield rows


def found_lr(name: str) -> dict[str, Any]:
    """find_lr from a step size that is wrong by up to 32, beside the best of a grid of whole runs and beside its peers."""
    from benchmarks.clinic_cases import cases

    case = next(c for c in cases() if c.name == name)
    own, whole = at_step(case, 1.0).optimizer.param_groups[0]["lr"], grid(case)
    best = own * 2.0 ** min(whole, key=whole.__getitem__)
    wrong = 2.0 ** (zlib.crc32(name.encode()) % 11 - 5)
    setup = at_step(case, wrong)
    began = time.process_time()
    answer = th.find_lr(
        setup.model, setup.loader, setup.loss, setup.optimizer, steps=setup.steps, validation=setup.validation
    )
    row = {"case": case.name, "steps": setup.steps, "grid": whole, "own": own, "best": best, "started": own * wrong}
    row |= {"found": answer.lr, "ratio": answer.lr / best, "factor": answer.factor, "price": answer.price / setup.steps}
    row["seconds"] = time.process_time() - began
    for key, peer in (("tuner", tuner), ("range_test", range_test)):
        began = time.process_time()
        row[key] = peer(at_step(case, 1.0))
        row[key + "_seconds"] = time.process_time() - began
    return row


def range_test(setup: Any) -> float | None:
    """What torch-lr-finder suggests by its defaults: where the loss falls steepest over 100 steps; None where it does not run."""
    import numpy as np
    from torch_lr_finder import LRFinder, TrainDataLoaderIter

    for group in setup.optimizer.param_groups:
        group["lr"] = 1e-7
        group.pop("initial_lr", None)
    try:
        finder = LRFinder(setup.model, setup.optimizer, setup.loss, device="cpu")
        finder.range_test(TrainDataLoaderIter(setup.loader), end_lr=10, num_iter=100)
        lrs, losses = (finder.history[key][10:-5] for key in ("lr", "loss"))  # as its plot cuts them
        return float(lrs[int(np.gradient(np.array(losses)).argmin())])
    except Exception as error:
        print("torch-lr-finder:", type(error).__name__, str(error)[:100], flush=True)
        return None


def tuner(setup: Any) -> float | None:
    """What Lightning's tuner suggests, by its defaults; None where it suggests nothing."""
    import logging
    import warnings

    import lightning
    from lightning.pytorch.tuner import Tuner

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network, self.lr = setup.model, 1e-3

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            return setup.loss(self.network(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return setup.optimizer

    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = lightning.Trainer(max_epochs=100, accelerator="cpu", **quiet)
            found = Tuner(trainer).lr_find(Module(), setup.loader, update_attr=False)
            return None if found is None else found.suggestion()
    except Exception as error:
        print("tuner:", type(error).__name__, str(error)[:100], flush=True)
        return None
