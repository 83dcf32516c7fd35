"""What lies between the last layer and the loss: the answers that can be reached there, and the least loss among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.batching import first_rows
from theodolite.ailments._common.chart import Chart
from theodolite.core.state import untouched
from theodolite.io.batches import Batch

FEW, STEPS = 128, 80


@dataclass(frozen=True)
class OutputTail:
    """Everything behind the last layer, as a function of that layer's output; ``plain`` where it changes no number.

    ``given`` is the layer's own output, ``answers`` what the model makes of it.
    """

    layer: str
    batch: Batch
    given: Tensor
    answers: Tensor
    run: Callable[[Tensor], Tensor]

    @property
    def plain(self) -> bool:
        """Whether the answer is the layer's output, in whatever shape."""
        if self.given.numel() != self.answers.numel():
            return False
        with torch.no_grad():  # also where an activation happens to pass all of the layer's own numbers
            return all(torch.equal(z.reshape(-1), self.run(z).reshape(-1)) for z in (self.given, -1 - 3 * self.given))


def tail_of(chart: Chart) -> OutputTail | None:
    """The tail behind the layer that ran last; None where it holds weights of its own or the answer is not one tensor."""
    model = chart.model
    if model is None or chart.now is None or not chart.now.layers:
        return None
    name, batch = chart.now.layers[-1].name, first_rows(chart.batches[0], _few(chart))
    layer = model.get_submodule(name)
    kept: list[Any] = []

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        kept.append(output)

    def run(z: Tensor) -> Tensor:
        hook = layer.register_forward_hook(lambda module, args, output: z)
        try:
            with untouched(model):
                return chart.answer(model, batch)  # type: ignore[no-any-return]
        finally:
            hook.remove()

    with untouched(model), torch.no_grad():
        hook = layer.register_forward_hook(keep)
        answers = chart.answer(model, batch)
        hook.remove()
    if len(kept) != 1 or not isinstance(kept[0], Tensor) or not isinstance(answers, Tensor):
        return None
    tail = OutputTail(name, batch, kept[0].detach(), answers.detach(), run)
    return tail if tail.plain or not _has_weights(model, tail) else None


def _few(chart: Chart) -> int:
    """Samples with which all descents on answers, each step a pass through the model, stay within a tenth of the budget."""
    passes = 2 * STEPS * max(chart.price, 1e-9)
    return max(2, int(min(FEW, 0.1 * chart.budget / passes)))


def _has_weights(model: nn.Module, tail: OutputTail) -> bool:
    with torch.enable_grad():
        z = tail.given.clone().requires_grad_()
        answers = tail.run(z)
        own = [p for p in model.parameters() if p.requires_grad]
        if not answers.requires_grad:
            return True
        slopes: tuple[Any, ...] = torch.autograd.grad(answers.sum(), [*own, z], allow_unused=True)
    return slopes[-1] is None or any(slope is not None for slope in slopes[:-1])


@torch.no_grad()
def is_entrywise(tail: OutputTail) -> bool:
    """Whether each answer depends on its own entry of the last layer's output alone."""
    if tail.given.shape != tail.answers.shape:
        return False
    changed = tail.given.clone()
    changed[..., 0] += 1 + changed[..., 0].abs()
    before, after = tail.run(tail.given), tail.run(changed)
    return tail.given.shape[-1] == 1 or bool(torch.equal(before[..., 1:], after[..., 1:]))


def least_loss(
    loss: Callable[[Tensor], Tensor], start: Tensor, *, within: tuple[float, float] | None = None, size: float = 1.0
) -> float:
    """The least value of a function of a tensor, from a start, by a descent that can walk far but not out of bounds.

    ``size`` is how far it may have to walk: that of the targets, say.
    """
    with torch.enable_grad():
        z = start.detach().clone().float()
        z = (z if within is None else z.clamp(*within)).requires_grad_()
        walker = torch.optim.Adam([z], lr=0.5 * size)
        best = float("inf")
        for step in range(STEPS):
            if step == STEPS // 2:
                walker.param_groups[0]["lr"] = 0.1 * size
            walker.zero_grad()
            value = loss(z.to(start.dtype))
            best = min(best, float(value.detach()))
            value.backward()  # type: ignore[no-untyped-call]
            walker.step()
            if within is not None:
                with torch.no_grad():
                    z.clamp_(*within)
        with torch.no_grad():
            return min(best, float(loss(z.to(start.dtype))))


def size_of(target: Any) -> float:
    """How large numbers are that a loss may ask for; at least 1, and 1 where targets are no numbers."""
    if not isinstance(target, Tensor) or not target.is_floating_point() or not target.numel():
        return 1.0
    return max(
        1.0,
        float(target.detach().abs().float().quantile(0.9)) if target.numel() < 10**6 else float(target.abs().mean()),
    )
