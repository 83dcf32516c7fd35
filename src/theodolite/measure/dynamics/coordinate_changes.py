"""How much each layer's own weights have changed its outputs after a few steps, and how that grows with the width."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, tensors_in
from theodolite.core.optimizer_steps import Descent
from theodolite.core.reading import Estimate
from theodolite.core.statistics import log_slope, mean_estimate
from theodolite.measure.functional import called_with

Loss = Callable[[nn.Module, Any], Tensor]


@dataclass(frozen=True)
class LayerMove:
    """Root mean squares of one layer: ``gain``, what its first matrices make of noise of size one; ``change``, what its new
    matrices make of its inputs less what its first do, over the inputs; ``moved``, by how much its outputs changed in all."""

    gain: float
    change: float
    moved: float


def layer_moves(
    model: nn.Module, optimizer: torch.optim.Optimizer | Descent, loss: Loss, batches: Sequence[Any]
) -> dict[str, LayerMove]:
    """Take one step on each of the batches but the last and look at every layer that owns parameters on the last.

    The model is changed: pass a copy. Layers are named as modules are; one that runs twice counts where it first ran.
    """
    if len(batches) < 2:
        raise InputError(f"expected batches to step on and one to look at, got {len(batches)} in all; pass more")
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    before, _ = _visit(model, loss, batches[-1])
    for batch in batches[:-1]:
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss(model, batch))
        optimizer.step()
    after, calls = _visit(model, loss, batches[-1])
    found = {}
    for name, (module, args, kwargs) in calls.items():
        if name not in before or before[name][0].shape != after[name][0].shape:
            continue
        own = _telling(module, name, start)
        with torch.no_grad():
            old = _answer(module, own, args, kwargs)
            then = {
                key: start[_joined(name, key)] for key, _ in module.named_parameters() if _joined(name, key) in start
            }
            noise = _noise(args, kwargs)
            none = _answer(module, then | {key: torch.zeros_like(value) for key, value in own.items()}, *noise)
            made = _answer(module, then, *noise)
        new, first = after[name][0], before[name][0]
        given = after[name][1] or math.nan
        told = 1.0 if any(t.is_floating_point() for t in tensors_in((args, kwargs))) else given
        found[name] = LayerMove(_size(made - none) / told, _size(new - old) / given, _size(new - first))
    return found


def _joined(module: str, name: str) -> str:
    return f"{module}.{name}" if module else name


def _telling(module: nn.Module, name: str, start: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A layer's own matrices as they were, or its vectors where it has none: biases would hide what matrices do."""
    deep = isinstance(module, nn.MultiheadAttention)  # whose last layer is not called as one
    own = {key: start[_joined(name, key)] for key, _ in module.named_parameters(recurse=deep)}
    return {key: value for key, value in own.items() if value.ndim > 1} or own


def _noise(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Noise of size one in place of floating inputs, whose common part would leave a mean over few outputs uncertain.

    It is drawn anew each time, by the global random state as dropout is: else all seeds would share its error.
    """
    made: dict[int, Tensor] = {}

    def noisy(value: Any) -> Any:
        if isinstance(value, Tensor) and value.is_floating_point():
            if id(value) not in made:
                made[id(value)] = torch.randn(value.shape).to(value)
            return made[id(value)]
        return type(value)(map(noisy, value)) if isinstance(value, tuple | list) else value

    return tuple(map(noisy, args)), {key: noisy(value) for key, value in kwargs.items()}


def _answer(module: nn.Module, values: Mapping[str, Tensor], args: Any, kwargs: Any) -> Tensor:
    found = _tensor(called_with(module, values, args, kwargs))
    assert found is not None, "a layer that answered a tensor before answers one again"
    return found


def _visit(model: nn.Module, loss: Loss, batch: Any) -> tuple[dict[str, tuple[Tensor, float]], dict[str, Any]]:
    """Outputs of layers with the size of what they were given, and how each was called."""
    outputs: dict[str, tuple[Tensor, float]] = {}
    calls: dict[str, Any] = {}

    def keep(name: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        z = _tensor(output)
        if z is None or name in outputs:
            return
        given = [t for t in tensors_in((args, kwargs)) if t.is_floating_point()]
        outputs[name] = (z.detach(), _size(given[0].detach()) if given else 1.0)
        calls[name] = (module, args, kwargs)

    with ExitStack() as stack, torch.no_grad():
        for name, module in model.named_modules():
            if any(True for _ in module.parameters(recurse=False)):
                stack.enter_context(module.register_forward_hook(partial(keep, name), with_kwargs=True))
        loss(model, batch)
    return outputs, calls


def _tensor(output: Any) -> Tensor | None:
    return next((t for t in tensors_in(output) if t.is_floating_point()), None)


def _size(values: Tensor) -> float:
    return float(values.double().square().mean().sqrt())


def width_exponent(widths: Sequence[float], draws: Sequence[Sequence[float]]) -> Estimate:
    """The exponent of a size in the width, from several draws at each of four or more widths.

    Its error is that of the fit together with half the difference between the exponents of the narrower and of the wider half:
    what is left of narrow networks' own ways.
    """
    if len(widths) < 4:
        raise InputError(f"expected four widths or more, got {len(widths)}; pass more")
    logs = [[math.log(v) for v in row if v > 0 and math.isfinite(v)] for row in draws]
    if any(len(row) < 2 for row in logs):
        return Estimate(math.nan, math.nan)
    means = [mean_estimate(row) for row in logs]
    sizes = [Estimate(math.exp(m.value), math.exp(m.value) * max(m.stderr, 1e-3)) for m in means]
    whole = log_slope(widths, sizes)
    middle = len(widths) // 2
    halves = [
        (means[j].value - means[i].value) / (math.log(widths[j]) - math.log(widths[i]))
        for i, j in ((0, middle), (middle, len(widths) - 1))
    ]
    return Estimate(whole.value, math.hypot(whole.stderr, (halves[1] - halves[0]) / 2))


def scaling_exponents(moves: Mapping[float, Sequence[Mapping[str, LayerMove]]]) -> dict[str, dict[str, Estimate]]:
    """For every layer the exponents in the width of its gain, change and move; ``moves`` are those of each width and seed."""
    widths = sorted(moves)
    names = [name for name in moves[widths[0]][0] if all(name in seed for width in widths for seed in moves[width])]
    return {
        name: {
            what: width_exponent(widths, [[getattr(seed[name], what) for seed in moves[width]] for width in widths])
            for what in ("gain", "change", "moved")
        }
        for name in names
    }
