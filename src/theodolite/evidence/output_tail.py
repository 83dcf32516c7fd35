"""What lies between the last layers and the loss: the answers that can be reached there, and the least loss among them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.optimizer_steps import AdamDescent
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import batches, first_rows, joined, price
from theodolite.evidence.drawn_outputs import members_of, quiet, rebuilt, size_of
from theodolite.evidence.layer_signals import signals
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import A_FEW, ROWS, SEARCH, STILL, WORTH
from theodolite.evidence.work import work_of
from theodolite.io.batches import Batch


@dataclass(frozen=True)
class OutputTail:
    """Everything behind the last layers, as a function of their outputs side by side; ``plain`` where it changes no number.

    Several are the last where none has another behind it, as those of boxes and of kinds. ``given`` is what the layers say
    themselves, ``answer`` what the model makes of it, of whose tensors ``member`` is the one that the targets belong to.
    """

    layers: tuple[str, ...]
    widths: tuple[int, ...]
    batch: Batch
    given: Tensor
    answer: Any
    member: int
    whole: Callable[[Tensor], Any]
    loss: Callable[[Any, Any], Tensor]

    @property
    def outputs(self) -> Tensor:
        """The model's own outputs."""
        return members_of(self.answer)[self.member]

    def run(self, z: Tensor) -> Tensor:
        """The outputs with other numbers in place of the last layers'."""
        return members_of(self.whole(z))[self.member]

    def loss_of(self, outputs: Tensor) -> Tensor:
        """The loss of other outputs, all else as the model answers it."""
        others = members_of(self.answer)
        given = [outputs if place == self.member else t for place, t in enumerate(others)]
        return self.loss(rebuilt(self.answer, given), self.batch.target)

    @property
    def plain(self) -> bool:
        """Whether the answer is the layer's output, in whatever shape."""
        if self.given.numel() != self.outputs.numel():
            return False
        with torch.no_grad():  # also where an activation happens to pass all of the layer's own numbers
            return all(torch.equal(z.reshape(-1), self.run(z).reshape(-1)) for z in (self.given, -1 - 3 * self.given))


@once("output tail")
def output_tail(subject: Subject) -> OutputTail | None:
    """The tail behind the layers that ran last; None where it holds weights of its own or nothing can be told."""
    model, loss, signs = subject.model, subject.loss, signals(subject)
    if model is None or loss is None or signs is None or not signs.layers:
        return None
    few = _few(subject)
    some = list(batches(subject)[: max(1, few // max(1, len(batches(subject)[0])))])
    together = joined(some) or [some[0]]
    batch = first_rows(together[0], few)
    ran = [layer.name for layer in signs.layers]
    names = ran[-1:]
    while len(names) <= A_FEW:
        tail = _behind(subject, tuple(names), batch)
        try:
            if tail is None or tail.plain:
                return tail
            weights = _weights_behind(model, tail)
        except RuntimeError:  # a model that takes its own slope finds none in other numbers
            return None
        if not weights:
            return tail
        beside = [name for name in ran if name not in names and {f"{name}.weight", f"{name}.bias"} & weights]
        if not beside:
            return None
        names = [beside[-1], *names]
    return None


def _behind(subject: Subject, names: tuple[str, ...], batch: Batch) -> OutputTail | None:
    """What is behind these layers; None where one ran more than once, or they do not fit side by side."""
    model, loss = subject.model, subject.loss
    kept: dict[str, list[Any]] = {name: [] for name in names}

    def answered(replaced: Callable[[str, Any], Any]) -> Any:
        with untouched(model):
            for name in names:
                model.get_submodule(name).register_forward_hook(
                    lambda module, args, output, name=name: replaced(name, output)
                )
            return subject.answer(batch)

    with torch.no_grad(), quiet():
        answer = answered(lambda name, output: kept[name].append(output))
    member = task(subject).member
    own = [outputs[0] for outputs in kept.values() if len(outputs) == 1 and isinstance(outputs[0], Tensor)]
    if (
        len(own) < len(names)
        or len(members_of(answer)) <= member
        or any(t.shape[:-1] != own[0].shape[:-1] for t in own)
    ):
        return None
    widths = tuple(t.shape[-1] if t.ndim else 1 for t in own)

    def whole(z: Tensor) -> Any:
        parts = dict(zip(names, torch.split(z, list(widths), -1), strict=True)) if len(names) > 1 else {names[0]: z}
        return answered(lambda name, output: parts[name])

    given = torch.cat([t.detach() for t in own], -1) if len(own) > 1 else own[0].detach()
    return OutputTail(names, widths, batch, given, answer, member, whole, loss)


def _few(subject: Subject) -> int:
    """Samples with which all descents on answers, each step a pass through the model, stay within a tenth of the budget."""
    passes = 2 * SEARCH * max(price(subject).sample, 1e-12)
    return max(2, int(min(ROWS, WORTH * work_of(subject).budget / passes)))


def _weights_behind(model: nn.Module, tail: OutputTail) -> set[str]:
    """The parameters that answers depend on with the last layers' numbers given; "" among them where on these they do not."""
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with torch.enable_grad(), quiet():
        z = tail.given.clone().requires_grad_()
        answers = tail.run(z)
        if not answers.requires_grad:
            return {""}
        slopes: tuple[Any, ...] = torch.autograd.grad(answers.sum(), [*own.values(), z], allow_unused=True)
    return {name for name, slope in zip([*own, ""], slopes, strict=True) if (slope is None) == (name == "")}


@torch.no_grad()
def is_entrywise(tail: OutputTail) -> bool:
    """Whether each answer depends on its own entry of the last layer's output alone."""
    if tail.given.shape != tail.outputs.shape:
        return False
    changed = tail.given.clone()
    changed[..., 0] += 1 + changed[..., 0].abs()
    before, after = tail.run(tail.given), tail.run(changed)
    return tail.given.shape[-1] == 1 or bool(torch.equal(before[..., 1:], after[..., 1:]))


def reach(tail: OutputTail) -> tuple[float, float]:
    """The least and the largest output, with the last layer's numbers drawn at scales up to a million."""
    low, high = reach_of_entries(tail)
    return float(low.min()), float(high.max())


@torch.no_grad()
def reach_of_entries(tail: OutputTail) -> tuple[Tensor, Tensor]:
    """The same of each entry of an answer, (1, ...): a function may be on some of them. Draws are on both sides of zero."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(tail.given.shape, generator=generator).to(tail.given)
    answers = torch.cat([tail.run(side * scale * draws) for scale in (1.0, 30.0, 1e3, 1e6) for side in (1, -1)])
    return answers.amin(0, keepdim=True), answers.amax(0, keepdim=True)


def floors(tail: OutputTail) -> tuple[float, float]:
    """The least loss within reach of the tail, and the least loss of any output of its shape."""
    size, start, whole = size_of(tail.batch.target), _movable(tail), None
    try:
        free = least_loss(tail.loss_of, start, size=size)
    except (RuntimeError, ValueError):  # the loss takes nothing but probabilities
        # both begin inside: at 0 or 1 the slope is so large that a descent does not forget it
        start, whole = start.clamp(0.01, 0.99), (STILL, 1 - STILL)
        free = least_loss(tail.loss_of, start, within=whole)
    # then the range is all that matters, and a descent cannot get stuck where the function is flat
    if is_entrywise(tail):
        low, high = reach_of_entries(tail)
        within = (low, high) if whole is None else (low.clamp(*whole), high.clamp(*whole))
        return least_loss(tail.loss_of, start, within=within, size=size), free
    return least_loss(lambda z: tail.loss_of(tail.run(z)), tail.given, size=size), free


def _movable(tail: OutputTail) -> Tensor:
    """The outputs, where the loss has a slope in them; one half where it has none, as where it cuts probabilities off near 1."""
    own = tail.outputs.detach().clone().requires_grad_()
    with torch.enable_grad(), quiet():
        slope = torch.autograd.grad(tail.loss_of(own), own, materialize_grads=True)[0]
    return torch.where(slope == 0, torch.full_like(own, 0.5), own).detach()


def least_loss(
    loss: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    within: tuple[Tensor | float, Tensor | float] | None = None,
    size: float = 1.0,
) -> float:
    """The least value of a function of a tensor, from a start, by a descent that can walk far but not out of bounds.

    ``size`` is how far it may have to walk: that of the targets, say. Bounds may be those of each entry.
    """
    first = start.detach().clone().float()
    low, high = (torch.full_like(first, v) for v in (-torch.inf, torch.inf))
    if within is not None:
        low, high = (torch.as_tensor(v).to(first).expand_as(first) for v in within)
        first = first.clamp(low, high)
    # a step as wide as the range would only bounce from end to end
    unit = (0.1 * (high - low)).clamp(1e-12, size)
    with torch.enable_grad(), quiet():
        moved = torch.zeros_like(first).requires_grad_()
        walker = AdamDescent([moved], lr=0.5)
        best = float("inf")
        for step in range(SEARCH):
            if step == SEARCH // 2:
                walker.lr = 0.1
            walker.zero_grad()
            value = loss((first + unit * moved).clamp(low, high).to(start.dtype))
            best = min(best, float(value.detach()))
            torch.autograd.backward(value)
            walker.step()
            if within is not None:
                with torch.no_grad():
                    moved.clamp_((low - first) / unit, (high - first) / unit)
        with torch.no_grad():
            return min(best, float(loss((first + unit * moved).clamp(low, high).to(start.dtype))))
