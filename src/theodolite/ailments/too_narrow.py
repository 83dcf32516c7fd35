r"""Is a layer too narrow for what must pass through it?

A layer of k units bounds the rank of everything behind it by k. A ReLU network of any depth whose hidden widths are at most
the input dimension d approximates no large class of functions (Hanin and Sellke 2017: d + 1 is the least width for continuous
functions), and max(d + 1, outputs) is the least width in $L^p$ (Park et al. 2021). Here d is the intrinsic dimension of the
data (ratio of neighbor distances), with its error: a layer below it is looked into. It is named only where the model has not
learnt its training data, steps do take the loss down, and a copy with that layer widened, trained in the same way, does
clearly better; three standard errors let chance through once in 100. A code that is narrow on purpose but not below the
dimension of the data is left alone. Layers without an activation between them are one linear layer, which is exact, and are
named where activations, tried on a copy, do clearly better.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.ailments._common.batching import first_rows
from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.examples import digits_like, patient, seeded
from theodolite.ailments._common.network import Change, compared_longer, is_fit_everywhere, severity
from theodolite.ailments._common.samples import sample_of
from theodolite.ailments._common.trials import LONG, TrialComparison, loss_here, steps_made
from theodolite.ailments._common.widening import LAYERS, NORMS, layers_run, widened_copy
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.state import untouched
from theodolite.measure.dimension.by_distances import dimension_twonn
from theodolite.measure.dynamics.trial_runs import trial_run

BETTER = 0.2
WIDER, HALF, MOST, STEPS = 32, 0.6, 64, 120
LEARNT = 0.9
ROUNDING = 1e-4
"""What float32 leaves of a difference that is zero, beside the size of the outputs; the least activation bends by far more."""


@dataclass(frozen=True)
class Narrow:
    """The narrowest hidden layer of a chain: its place there, and its numbers a sample."""

    place: int
    units: int
    numbers: int


def chain_of(model: nn.Module) -> list[nn.Module] | None:
    """The modules of a plain nn.Sequential (of such), in turn; None for any other model."""
    if not isinstance(model, nn.Sequential):
        return None
    parts: list[nn.Module] = []
    for member in model:
        inner = chain_of(member)
        parts += [member] if inner is None else inner
    known = (nn.Linear, nn.Conv2d, nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm)
    free = all(isinstance(part, known) or not list(part.parameters()) for part in parts)
    return parts if free and not any(isinstance(part, nn.LayerNorm) for part in parts) else None


def narrowest(chart: Chart, parts: list[nn.Module]) -> Narrow | None:
    """The hidden layer through which the fewest numbers a sample pass."""
    assert chart.model is not None
    x = chart.batches[0].tensors()[0][:2]
    found = []
    mode = [part.training for part in parts]
    try:
        with torch.no_grad():
            for place, part in enumerate(parts):
                x = part.eval()(x)
                if isinstance(part, nn.Linear | nn.Conv2d):
                    found.append(Narrow(place, int(part.weight.shape[0]), x[0].numel()))
                elif found and x[0].numel() < found[-1].numbers:  # pooling behind it
                    found[-1] = replace(found[-1], numbers=x[0].numel())
    finally:
        for part, training in zip(parts, mode, strict=True):
            part.training = training
    return min(found[:-1], key=lambda layer: layer.numbers, default=None)


def widened(parts: list[nn.Module], place: int, times: int) -> nn.Sequential:
    """The chain with one layer so many times as wide, that layer, the next and norms between drawn anew."""
    new = list(parts)
    for index in range(place, len(parts)):
        part, grows = parts[index], 1 if index == place else times
        own = times if index == place else 1
        if isinstance(part, nn.Linear):
            new[index] = nn.Linear(part.in_features * grows, part.out_features * own, part.bias is not None)
        elif isinstance(part, nn.Conv2d):
            shape: Any = (part.kernel_size, part.stride, part.padding)
            new[index] = nn.Conv2d(part.in_channels * grows, part.out_channels * own, *shape)
        elif isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            new[index] = type(part)(part.num_features * times)
        if index > place and isinstance(part, nn.Linear | nn.Conv2d):
            break
    like = next(p for part in parts for p in part.parameters())
    return nn.Sequential(*(part.to(like) for part in new))


def is_affine(chart: Chart) -> bool:
    """Whether several layers in a row make one linear layer: their last output at a midpoint is the mean of those at the ends."""
    model, now = chart.model, chart.now
    assert model is not None and now is not None
    x = chart.batches[0].tensors()[0] if _fits(chart) else torch.zeros(0)
    if len(now.layers) < 2 or not x.is_floating_point() or len(x) < 4:
        return False
    if any(part.activation for part in now.layers[:-1]):  # one behind the last layer is not between any two
        return False
    kept: list[Tensor] = []
    half = min(len(x) // 2, 8)
    with untouched(model), torch.no_grad():
        last = model.get_submodule(now.layers[-1].name)
        last.register_forward_hook(lambda module, args, output: kept.append(output))
        for part in (x[:half], x[half : 2 * half], (x[:half] + x[half : 2 * half]) / 2):
            model(part)
    if len(kept) != 3 or not all(isinstance(part, Tensor) for part in kept):
        return False
    bend = (kept[0] + kept[1]) / 2 - kept[2]
    return float(bend.abs().max()) <= ROUNDING * float(kept[2].abs().max())


def bent(names: list[str]) -> Change:
    """The change that puts a ReLU behind each of these layers."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for name in names:
            model.get_submodule(name).register_forward_hook(lambda module, args, output: output.relu())

    return change


def _without_activation(chart: Chart) -> Iterator[Finding]:
    assert chart.now is not None
    names = [layer.name for layer in chart.now.layers[:-1]]
    tried = compared_longer(chart, "an activation behind each layer", bent(names)) if is_affine(chart) else None
    if tried is not None and tried.is_better(BETTER):
        yield Finding(
            severity=severity(chart),
            where=names[0],
            says=f"{len(names) + 1} layers without an activation between them are one linear layer, however wide. With a ReLU "
            f"behind each, {len(tried.changed.losses)} steps reach a loss of {tried.changed.after:.3g} instead of "
            f"{tried.as_it_is.after:.3g}.",
            remedy=f"nn.ReLU() behind {', '.join(names[:3])}",
            suggested={"activation": "relu"},
            evidence=(seen("layers that make one linear layer", float(len(names) + 1)),),
        )


def judge(chart: Chart) -> Iterator[Finding]:
    if chart.model is None or chart.now is None or chart.optimizer is None or is_fit_everywhere(chart, LEARNT):
        return
    linear = list(_without_activation(chart))
    if linear:
        yield from linear
        return
    parts = chain_of(chart.model)
    if parts is None:
        yield from _everywhere(chart)
        return
    x = torch.cat([b.tensors()[0].flatten(1) for b in chart.batches]) if _fits(chart) else None
    if x is None or not x.is_floating_point() or len(x) < 100:
        return
    layer = narrowest(chart, parts)
    if layer is None or layer.numbers >= x.shape[1] or layer.numbers > MOST:
        return
    dimension = dimension_twonn(torch.unique(x[:1000], dim=0).cpu().double())
    need = min(dimension.value - 2 * dimension.stderr, x.shape[1])
    if not layer.numbers < HALF * need:
        return
    times = math.ceil(WIDER / layer.units)
    tried = trials(chart, lambda factor: widened(parts, layer.place, factor), times)
    if tried is None or not tried.is_better(BETTER) or not tried.as_it_is.after <= tried.as_it_is.before:
        return
    name = next(name for name, module in chart.model.named_modules() if module is parts[layer.place])
    passing = "1 number a sample passes it" if layer.numbers == 1 else f"{layer.numbers} numbers a sample pass it"
    yield Finding(
        severity=severity(chart) if layer.numbers < 3 else "warning",
        where=name,
        says=f"Layer {name} is too narrow: {passing}, and the data have {dimension.value:.1f} ± {dimension.stderr:.1f} "
        f"dimensions. With {layer.units * times} units there {len(tried.changed.losses)} steps reach a loss of "
        f"{tried.changed.after:.3g} instead of {tried.as_it_is.after:.3g}.",
        remedy=f"at least {max(math.ceil(dimension.value) + 1, 4)} units in {name}; {layer.units * times} were tried",
        suggested={"width": layer.units * times},
        evidence=(
            seen("numbers a sample in the narrowest layer", float(layer.numbers), where=name),
            seen("dimension of the data", dimension.value, stderr=dimension.stderr),
        ),
    )


def _fits(chart: Chart) -> bool:
    batch = chart.batches[0]
    return len(batch.inputs) == 1 and not batch.keywords and isinstance(batch.inputs[0], Tensor)


def _everywhere(chart: Chart) -> Iterator[Finding]:
    """Of any other model: a copy that is wider in all its hidden layers."""
    model, batch, here = chart.model, chart.batches[0], loss_here(chart)
    sample = sample_of(chart.batches)
    if model is None or here is None or sample is None or len(sample.inputs) != 1 or chart.thinned:
        return
    few = first_rows(batch, 2)
    try:
        ran = layers_run(model, *few.inputs, **few.keywords)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return
    need, numbers = needed(sample.inputs[0]), {name: _numbers(*pair, sample.inputs[0]) for name, pair in ran.items()}
    hidden = list(numbers)[:-1]
    name = min(hidden, key=lambda one: numbers[one], default=None)
    if name is None or numbers[name] > MOST or not numbers[name] < HALF * need:
        return
    times = math.ceil(WIDER / numbers[name])
    tried = trials(chart, lambda factor: widened_copy(model, factor, *few.inputs, **few.keywords), times, steps=LONG)
    if tried is None or not tried.is_better(BETTER) or not tried.as_it_is.after <= tried.as_it_is.before:
        return
    if steps_made(chart) and not tried.changed.after < (1 - BETTER) * here.after:  # the run itself stands lower
        return
    yield Finding(
        severity=severity(chart),
        where=name,
        says=f"The network is too narrow: {numbers[name]} numbers pass {name}, and the data have {need:.1f} dimensions. With "
        f"every hidden layer {times} times as wide {len(tried.changed.losses)} steps reach a loss of {tried.changed.after:.3g} "
        f"instead of {tried.as_it_is.after:.3g}.",
        remedy=f"{times} times as many units in every hidden layer: {numbers[name] * times} in {name}",
        suggested={"width": numbers[name] * times},
        evidence=(
            seen("numbers in the narrowest layer", float(numbers[name]), where=name),
            seen("dimensions of the data", need),
        ),
    )


def needed(x: Tensor) -> float:
    """The dimension of the inputs, less two standard errors; of tokens that of the simplex whose corners they are."""
    if not x.is_floating_point():
        return float(len(torch.unique(x)) - 1)
    rows = x.flatten(1)
    if len(rows) < 100:
        return 0.0
    dimension = dimension_twonn(torch.unique(rows[:1000], dim=0).cpu().double())
    return min(dimension.value - 2 * dimension.stderr, rows.shape[1])


def _numbers(module: nn.Module, output: Tensor, x: Tensor) -> int:
    """How many numbers pass a layer: of a sample, or of one place where these are tokens or hand on a state."""
    state = isinstance(module, nn.RNNBase)
    return output.shape[-1] if state or not x.is_floating_point() else output[0].numel()


def trials(
    chart: Chart, build: Callable[[int], nn.Module | None], times: int, *, steps: int = STEPS
) -> TrialComparison | None:
    """Training from fresh weights with ``build(1)``, beside training with ``build(times)``: all else alike."""
    assert chart.optimizer is not None
    if chart.left < 0.2 * chart.budget:
        return None
    group = {key: value for key, value in chart.optimizer.param_groups[0].items() if key != "params"}
    cut = max(1, len(chart.batches) // 4)
    rounds = max(1, round(steps / max(1, len(chart.batches) - cut)))
    runs = []
    for factor in (1, times):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            built = build(factor)
            if built is None:
                return None
            model = copy.deepcopy(built)
            for (
                part
            ) in model.modules():  # both from fresh weights: what was learnt around the old layer would not fit the new
                if isinstance(part, (*LAYERS, *NORMS)):
                    part.reset_parameters()
            kind: Any = type(chart.optimizer)
            optimizer = kind([p for p in model.parameters() if p.requires_grad], lr=chart.largest_lr)
        optimizer.param_groups[0].update({**group, "lr": chart.largest_lr})
        training = (chart.batches[cut:] or chart.batches) * rounds
        runs.append(
            trial_run(
                model,
                optimizer,
                chart.loss_on,
                training=training,
                held_out=chart.batches[:cut],
                most_seconds=min(chart.budget / 10, chart.left / 2),
            )
        )
    return TrialComparison(runs[0], runs[1])


def _through(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 4)
    )


def _linear(seed: int) -> dict[str, object]:
    """The sign of a product, which no linear layer tells."""
    x = torch.randn(768, 2, generator=torch.Generator().manual_seed(seed))
    model = seeded(seed, lambda: nn.Sequential(nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 2)))
    return patient(model, (x, (x[:, 0] * x[:, 1] > 0).long()))


def _sick(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: _through(1), lr=5e-3)


def _wide(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: _through(24), lr=5e-3)


def _code(seed: int) -> dict[str, object]:
    """An autoencoder whose code is as narrow as the data allow: points on a plane in 16 dimensions."""
    plane = torch.randn(2, 16, generator=torch.Generator().manual_seed(seed))
    points = torch.randn(768, 2, generator=torch.Generator().manual_seed(seed + 1)) @ plane
    model = seeded(
        seed,
        lambda: nn.Sequential(
            nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3), nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 16)
        ),
    )
    return patient(model, (points, points), loss=F.mse_loss)


ailment = Ailment(
    question="Is a layer too narrow?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("now", "fit", "trial"),
    judge=judge,
    examples={"sick": (_sick, _linear), "healthy": (_wide, _code)},
    explains=("rank-lost", "loss-stalls", "inputs-merge", "trained-too-short"),
)
