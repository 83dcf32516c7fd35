"""Outputs drawn at random in the place of a model's own, and what a loss does with them."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import tensors_in
from theodolite.core.state import untouched
from theodolite.evidence.device_refusals import RefusedAsOnCpu
from theodolite.evidence.thresholds import ROUNDING, SAME


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that a doubtful loss gives: they were given already; what it refuses is an error on a GPU, too."""
    with warnings.catch_warnings(), RefusedAsOnCpu() if torch.cuda.is_available() else nullcontext():
        warnings.simplefilter("ignore")
        yield


def members_of(answer: Any) -> list[Tensor]:
    """The floating tensors of an answer, however it is nested."""
    return [t for t in tensors_in(answer) if t.is_floating_point() and t.ndim]


def rebuilt(answer: Any, members: Sequence[Tensor]) -> Any:
    """An answer like this one with other tensors in the places of its own."""
    waiting = iter(members)

    def built(part: Any) -> Any:
        if isinstance(part, Tensor):
            return next(waiting) if part.is_floating_point() and part.ndim else part
        if isinstance(part, Mapping):
            parts = {name: built(value) for name, value in part.items()}
            # those of transformers have attributes
            named: Any = type(part) if hasattr(part, "__dataclass_fields__") else dict
            return named(**parts)
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            return type(part)(*(built(value) for value in part))
        return type(part)(built(value) for value in part) if isinstance(part, tuple | list) else part

    return built(answer)


def size_of(target: Any) -> float:
    """How large numbers are that a loss may ask for; at least 1, and 1 where targets are no numbers."""
    if not isinstance(target, Tensor) or not target.is_floating_point() or not target.numel():
        return 1.0
    few = target.detach().abs().float().reshape(-1)[:: max(1, target.numel() // 100_000)]
    return max(1.0, float(few.quantile(0.9)))


Shape = Callable[[Tensor], Tensor]


def output_shapes(own: Tensor) -> list[Shape]:
    """The functions that take any numbers to outputs like these: themselves, probabilities, or their logarithms alone."""
    plain: Shape = lambda z: z  # noqa: E731
    rows = own.detach().float()
    wide = own.ndim > 1 and own.shape[-1] > 1
    if wide and bool((rows.exp().sum(-1) - 1).abs().max() < ROUNDING):
        return [lambda z: z.log_softmax(-1)]
    if not own.numel() or bool((rows < 0).any()):
        return [plain]
    if bool((rows > 1).any()):  # never below zero: a loss may take nothing else
        return [plain, nn.functional.softplus]
    if wide and bool((rows.sum(-1) - 1).abs().max() < ROUNDING):
        return [plain, lambda z: z.softmax(-1)]
    return [plain, torch.sigmoid]


def drawn_outputs(answer: Any, target: Any, count: int = 1) -> list[list[Tensor]]:
    """Outputs drawn at random in the range of the model's own: plain numbers, probabilities, or their logarithms."""
    size = size_of(target)  # beside targets of a million, outputs of unit size are rounded away
    own = members_of(answer)
    generators = {t.device: torch.Generator(t.device).manual_seed(0) for t in own}

    def drawn(t: Tensor) -> Tensor:
        return output_shapes(t)[-1](size * torch.randn(t.shape, generator=generators[t.device], device=t.device)).to(t)

    return [[drawn(t) for t in own] for _ in range(count)]


def is_coupled(loss: Any, answer: Any, target: Any) -> bool:
    """Whether the gradient in the first samples' outputs turns when those of the others are drawn anew.

    A mean that is weighted, or the root of one, changes its length alone.
    """
    drawn, again = drawn_outputs(answer, target, 2)
    half = len(drawn[0]) // 2 if drawn else 0
    if not half or any(len(z) != len(drawn[0]) for z in drawn):
        return False
    others = [torch.cat([z[:half], new[half:]]) for z, new in zip(drawn, again, strict=True)]

    def slope(outputs: list[Tensor]) -> Tensor:
        free = [z.detach().clone().requires_grad_() for z in outputs]
        with untouched(None), torch.enable_grad(), quiet():
            torch.manual_seed(0)  # of a loss that draws
            found: tuple[Any, ...] = torch.autograd.grad(
                loss(rebuilt(answer, free), target).sum(), free, allow_unused=True
            )
        return torch.cat([g[:half].double().flatten() for g in found if g is not None])

    try:
        one, other = slope(drawn), slope(others)
    except Exception:
        return False
    size = float(one.norm() * other.norm())
    return size > 0 and float(one @ other) < (1 - SAME) * size
