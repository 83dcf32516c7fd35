"""What each tensor of a model or checkpoint shows by itself, all tensors read once, one in memory at a time."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from theodolite.io.streams import overlapped
from theodolite.io.weights import Weights
from theodolite.measure.spectra.entry_tails import EntryTail, entry_tail, top_singular_value
from theodolite.theory.spectra.entry_nulls import initial_bounds, kolmogorov_distance, largest_uniform_shortfall
from theodolite.theory.spectra.noise import noise_edge

LEAST_ENTRIES = 100
"""Entries below which a tensor's distribution is not judged."""

TABLES = re.compile(r"(^|[._])(\w*embedding\w*|embed_tokens|wte|wpe|lookup)[._]weight$", re.IGNORECASE)
"""Names of tables of vectors, whose rows are used one at a time."""

DIGESTED = 1 << 20
"""Entries of a tensor that are digested."""

FLUCTUATIONS = 6.0
"""A squared singular value so many fluctuations above the edge of noise was learnt; of noise 1 in 10000 is there."""


@dataclass(frozen=True)
class WeightFacts:
    """One tensor: its numbers that are none, a digest of its values, its tail, and the initialisation it still has.

    ``start`` names the uniform law that all entries follow up to its very bound (empty: none); ``learnt`` says that a singular
    value stands above what noise of this size gives, ``normal`` that the kurtosis is a Gaussian's; ``moved`` is the distance from
    the origin beside its norm (None: not known).
    """

    name: str
    shape: tuple[int, ...]
    entries: int
    nan: int = 0
    infinite: int = 0
    digest: str = ""
    values: int = 0
    tail: EntryTail | None = None
    start: str = ""
    learnt: bool = False
    normal: bool = False
    moved: float | None = None


def weight_facts(weights: Weights, origin: Mapping[str, Tensor] | None) -> dict[str, WeightFacts]:
    """The facts of every floating tensor that can be read."""
    floating = [name for name, weight in weights.items() if weight.dtype.is_floating_point]

    def facts(name: str) -> WeightFacts | None:
        try:
            tensor = weights[name].read().detach()
        except (OSError, RuntimeError, ValueError, KeyError, EOFError):  # a missing shard, a truncated file
            return None
        if not tensor.numel() or tensor.layout != torch.strided:
            return None
        return _facts(name, tensor, None if origin is None else origin.get(name))

    device = next((weight.device for weight in weights.values()), "cpu")
    return {found.name: found for found in overlapped(facts, floating, device=device) if found is not None}


def is_table(name: str, owner: nn.Module | None) -> bool:
    """Whether a tensor is a table of vectors: by its module, or by its name where there is none."""
    return isinstance(owner, nn.Embedding | nn.EmbeddingBag) if owner is not None else bool(TABLES.search(name))


@torch.no_grad()
def _facts(name: str, tensor: Tensor, origin: Tensor | None) -> WeightFacts:
    plain = tensor.float() if tensor.element_size() < 4 else tensor
    facts = WeightFacts(name, tuple(tensor.shape), tensor.numel())
    if not bool(torch.isfinite(plain.sum())):
        nan, infinite = int(torch.isnan(plain).sum()), int(torch.isinf(plain).sum())
        if nan or infinite:
            return replace(facts, nan=nan, infinite=infinite, values=_distinct(plain))
    if origin is not None and origin.shape == tensor.shape:
        before = origin.detach().to(plain)
        facts = replace(facts, moved=float((plain - before).norm() / before.norm().clamp(min=1e-30)))
    if tensor.ndim < 2:
        return facts
    facts = replace(facts, digest=_digest(tensor, plain), values=_distinct(plain))
    if tensor.numel() < LEAST_ENTRIES or facts.values < 3:
        return facts
    rounding = float(torch.finfo(tensor.dtype).eps) if tensor.element_size() > 1 else 0.25
    drawn, learnt = _start(facts.shape, plain, rounding), _has_learnt(plain)
    return replace(facts, tail=entry_tail(plain), start=drawn, learnt=learnt, normal=_is_normal(plain))


def _digest(tensor: Tensor, plain: Tensor) -> str:
    """The same for tensors of the same numbers: of up to a million entries evenly spread, and of the sum of all."""
    few = tensor.reshape(-1)[:: max(1, tensor.numel() // DIGESTED)].contiguous().cpu()
    whole = hashlib.blake2b(few.view(torch.uint8).numpy().tobytes(), digest_size=16)
    whole.update(str(float(plain.sum(dtype=torch.float64))).encode())  # one entry that differs anywhere shows here
    return whole.hexdigest()


def _distinct(tensor: Tensor) -> int:
    """How many values there are, counted up to some hundred entries evenly spread."""
    few = tensor.flatten()[:: max(1, tensor.numel() // 512)]
    return len(torch.unique(few[torch.isfinite(few)])) + int(not bool(torch.isfinite(few).all()))


def _start(shape: tuple[int, ...], tensor: Tensor, rounding: float) -> str:
    """The initialisation whose bound the largest entry reaches and none exceeds, where the rest is uniform below it."""
    sizes = tensor.abs().flatten()
    largest, n = float(sizes.max()), tensor.numel()
    slack = largest_uniform_shortfall(n, chance=1e-3)
    for name, bound in initial_bounds(shape).items():
        if 1 - slack - 2 * rounding <= largest / bound <= 1 + 2 * rounding:
            few = (tensor.flatten()[:: max(1, n // 50_000)].double() / bound + 1) / 2
            few = few.sort().values
            ranks = torch.arange(len(few) + 1, dtype=few.dtype, device=few.device) / len(few)
            distance = max(float((few - ranks[:-1]).max()), float((ranks[1:] - few).max()))
            if distance <= kolmogorov_distance(len(few)) + 2 * rounding:
                return name
    return ""


def _has_learnt(tensor: Tensor) -> bool:
    """Whether a singular value stands above all that noise with these entries would have."""
    rows = tensor.reshape(len(tensor), -1)
    if min(rows.shape) < 4:
        return False
    edge, scale = noise_edge(*rows.shape, variance=float(rows.float().square().mean()))
    top = top_singular_value(rows) ** 2
    return math.isfinite(top) and top > edge + FLUCTUATIONS * scale


def _is_normal(tensor: Tensor) -> bool:
    """Whether the fourth moment is that of a Gaussian, within four of its errors."""
    few = tensor.flatten()[:: max(1, tensor.numel() // 50_000)].double()
    squares = (few - few.mean()).square()
    kurtosis = float(squares.square().mean() / squares.mean().square())
    return abs(kurtosis - 3.0) <= 4 * math.sqrt(24 / len(few))
