"""What each tensor of a model or checkpoint shows by itself, all tensors read once, one in memory at a time."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.lazy_torch import array_of, is_elsewhere, is_tensor, kind_of, spacing, torch
from theodolite.core.reading_table import known_number
from theodolite.core.subject import Subject, once
from theodolite.evidence.thresholds import A_FEW, FEWEST, PART, RARELY, SAME, SURE, WELL
from theodolite.io.overlapped_work import overlapped
from theodolite.io.weight_parts import InHand, WeightPart
from theodolite.measure.spectra.entry_tails import EntryTail, entry_tail, top_singular_value
from theodolite.theory.spectra.entry_nulls import initial_bounds, kolmogorov_distance, largest_uniform_shortfall
from theodolite.theory.spectra.noise import noise_edge

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

LEAST_ENTRIES = 100
"""Entries below which a tensor's distribution is not judged."""

TABLES = re.compile(r"(^|[._])(\w*embedding\w*|embed_tokens|wte|wpe|lookup)[._]weight$", re.IGNORECASE)
"""Names of tables of vectors, whose rows are used one at a time."""

DIGESTED = 1 << 16
"""Entries of a tensor that are digested."""

STATISTICS = ("running_mean", "running_var")

TRAINED = {"weight", "bias", "kernel", *STATISTICS}
"""Last words of names that say that a tensor of a file is no constant."""


@dataclass(frozen=True)
class WeightFacts:
    """One tensor: its numbers that are none, a digest of its values, its tail, and the initialization it still has.

    ``start`` names the uniform law that all entries follow up to its very bound (empty: none); ``learned`` says that a singular
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
    learned: bool = False
    normal: bool = False
    moved: float | None = None


@once("weight facts")
def weight_facts(subject: Subject) -> dict[str, WeightFacts]:
    """The facts of every floating tensor of a model or checkpoint that can be read, each read once."""
    weights, told = subject.weights, subject.seen.get("known weight facts", {})
    floating = [name for name, weight in weights.items() if weight.floating]
    origin = subject.origin if subject.model is not None and subject.origin else {}

    def facts(name: str) -> WeightFacts | None:
        if name in told:
            return told[name]
        try:
            values = weights[name].values()
        except (OSError, RuntimeError, ValueError, KeyError, EOFError):  # a missing shard, a truncated file
            return None
        if 0 in values.shape or (is_tensor(values) and values.layout != torch.strided):
            return None
        return _facts(name, values, origin[name].read() if name in origin else None)

    device = next((weight.device for weight in weights.values()), "cpu")
    return {found.name: found for found in overlapped(facts, floating, device=device) if found is not None}


def is_constant(facts: WeightFacts, trained: set[str] | None = None) -> bool:
    """Whether it is a mask or what a maximum starts from: infinities of one sign, at most one other value, and not trained."""
    if facts.nan or not facts.infinite or facts.values > 2 or (facts.values == 2 and facts.infinite == facts.entries):
        return False
    last = facts.name.rpartition(".")[2].lower()
    return "mask" in facts.name.lower() or not (last in TRAINED if trained is None else facts.name in trained)


def facts_of_row(row: Mapping[str, Any]) -> WeightFacts:
    """The facts that were kept as a row of JSON."""
    tail = None
    if row["tail"] is not None:
        height = row["tail"]["height"]  # no other number of it can be without end
        found = {
            **row["tail"],
            "places": tuple(row["tail"]["places"]),
            "height": math.inf if height is None else height,
        }
        tail = EntryTail(**found)
    moved = None if row["moved"] is None else known_number(row["moved"])
    return WeightFacts(**{**row, "shape": tuple(row["shape"]), "tail": tail, "moved": moved})


def _find(held: InHand) -> tuple[Any, dict[str, Any]]:
    values = held.values
    if "float" not in kind_of(values.dtype) or 0 in values.shape or (is_tensor(values) and values.is_sparse):
        return None, {}
    single = kind_of(values.dtype) != "float64"  # eigenvalues of those may be of the matrix brought nearer to one
    spectrum = held.found.get(f"eigenvalues {held.name}") if single else None
    found = _facts(held.name, values, None, None if spectrum is None else float(spectrum[-1]))
    return {**vars(found), "tail": None if found.tail is None else vars(found.tail)}, {}


def is_table(name: str, owner: nn.Module | None) -> bool:
    """Whether a tensor is a table of vectors: by its module, or by its name where there is none."""
    if owner is None:
        return bool(TABLES.search(name))
    return isinstance(owner, (torch.nn.Embedding, torch.nn.EmbeddingBag))


@np.errstate(over="ignore", invalid="ignore")  # squares that are no numbers of the type: then nothing is said of them
def _facts(name: str, values: Any, origin: Tensor | None, largest: float | None = None) -> WeightFacts:
    """Of a tensor or an array; ``largest`` is the largest eigenvalue of its Gram matrix, where that is known.

    A tensor on a device is looked at there: some of its entries and a few sums come over.
    """
    plain = array_of(values) if not is_elsewhere(values) else values.detach()
    if is_tensor(plain) and plain.element_size() == 1:  # few operations know numbers of eight bits
        plain = plain.float()
    size = math.prod(values.shape)
    facts = WeightFacts(name, tuple(values.shape), size)
    total = _total(plain)
    if not math.isfinite(total):
        nan, infinite = _not_numbers(plain)
        if nan or infinite:
            return replace(facts, nan=nan, infinite=infinite, values=_distinct(plain))
    if origin is not None and origin.shape == values.shape:
        facts = replace(facts, moved=_moved(plain, origin))
    if plain.ndim < 2:
        return facts
    facts = replace(facts, digest=_digest(plain, total), values=_distinct(plain))
    if size < LEAST_ENTRIES or facts.values < 3:
        return facts
    kind = kind_of(values.dtype)
    rounding = spacing(kind) if "float8" not in kind else 0.25
    drawn, learned = _start(facts.shape, plain, rounding), _has_learned(plain, largest)
    return replace(facts, tail=entry_tail(plain), start=drawn, learned=learned, normal=_is_normal(plain))


def _few(plain: Any, count: int) -> NDArray[Any]:
    """Entries evenly spread, in this machine's memory."""
    return np.ascontiguousarray(array_of(plain.reshape(-1)[:: max(1, math.prod(plain.shape) // count)]))


def _total(plain: Any) -> float:
    return float(plain.sum(dtype=torch.float64) if is_tensor(plain) else plain.sum(dtype=np.float64))


def _not_numbers(plain: Any) -> tuple[int, int]:
    module = torch if is_tensor(plain) else np
    return int(module.isnan(plain).sum()), int(module.isinf(plain).sum())


def _moved(plain: Any, origin: Tensor) -> float:
    if is_tensor(plain):
        before = origin.detach().to(plain.device).float()
        return float((plain.float() - before).norm() / before.norm().clamp(min=1e-30))
    first = array_of(origin).astype(plain.dtype, copy=False)
    return float(np.linalg.norm(plain - first)) / max(float(np.linalg.norm(first)), 1e-30)


def _digest(plain: Any, total: float) -> str:
    """The same for tensors of the same numbers: of many entries evenly spread, and of the sum of all."""
    whole = hashlib.blake2b(_few(plain, DIGESTED).tobytes(), digest_size=16)
    whole.update(f"{kind_of(plain.dtype)} {total}".encode())  # one entry that differs anywhere shows here
    return whole.hexdigest()


def _distinct(plain: Any) -> int:
    """How many values there are, counted up to some hundred entries evenly spread."""
    few = _few(plain, 512)
    ascending = np.sort(few[np.isfinite(few)])  # not numpy's unique, which loads its masked arrays
    infinities = sum(int((few == end).any()) for end in (-np.inf, np.inf))
    return int(ascending.size > 0) + int(np.count_nonzero(np.diff(ascending))) + infinities


def _start(shape: tuple[int, ...], plain: Any, rounding: float) -> str:
    """The initialization whose bound the largest entry reaches and none exceeds, where the rest is uniform below it."""
    largest, n = max(float(plain.max()), -float(plain.min())), math.prod(shape)
    slack = largest_uniform_shortfall(n, chance=1e-3)
    for name, bound in initial_bounds(shape).items():
        if 1 - slack - 2 * rounding <= largest / bound <= 1 + 2 * rounding:
            few = np.sort((_few(plain, 50_000).astype(np.float64) / bound + 1) / 2)
            ranks = np.arange(len(few) + 1) / len(few)
            distance = max(float((few - ranks[:-1]).max()), float((ranks[1:] - few).max()))
            if distance <= kolmogorov_distance(len(few)) + 2 * rounding:
                return name
    return ""


def _has_learned(plain: Any, largest: float | None) -> bool:
    """Whether a singular value stands above all that noise with these entries would have."""
    rows = plain.reshape(len(plain), -1)
    if min(rows.shape) < A_FEW:
        return False
    edge, scale = noise_edge(*rows.shape, variance=_mean_square(rows))
    root = top_singular_value(rows) if largest is None else 0.0
    top = root * root if largest is None else largest  # a product that is no number is infinite, a power an error
    return math.isfinite(top) and top > edge + 2 * SURE * scale  # of noise 1 in 10000 is there


def _mean_square(rows: Any) -> float:
    if is_tensor(rows):
        return float(rows.float().square().mean())
    flat = rows.reshape(-1)
    if flat.dtype.itemsize < A_FEW:
        flat = flat.astype(np.float32)
    return float(flat @ flat) / int(flat.size)


def _is_normal(plain: Any) -> bool:
    """Whether the fourth moment is that of a Gaussian, within three of its errors."""
    few = _few(plain, 50_000).astype(np.float64)
    squares = np.square(few - few.mean())
    spread = float(squares.mean())
    kurtosis = float(np.square(squares).mean()) / spread**2 if spread else math.nan
    return abs(kurtosis - 3.0) <= SURE * math.sqrt(24 / len(few))


def has_left(weight: Tensor) -> bool:
    """Whether the entries of a matrix are not those of PyTorch's draw; False where that cannot be told."""
    return weight.dtype == torch.float32 and _left(weight.detach().reshape(-1), _bound(weight))


def is_drawn(weight: Tensor) -> bool:
    """Whether all entries of a matrix are such as PyTorch draws: a third of others are not, so that 32 entries tell."""
    entries = weight.detach().reshape(-1)
    if weight.dtype != torch.float32 or weight.device.type != "cpu" or len(entries) < FEWEST:
        return False
    return (
        bool(torch.isfinite(entries).all())
        and bool(_as_drawn(entries, _bound(weight)).all())
        and not entries_over(weight)
    )


def entries_over(weight: Tensor) -> int:
    """How many entries of a matrix are over the bound of PyTorch's draw."""
    return int((weight.detach().abs() > _bound(weight) * (1 + SAME)).sum())


def _bound(weight: Tensor) -> float:
    return 1.0 / math.sqrt(weight[0].numel())


def _left(entries: Tensor, bound: float) -> bool:
    """Whether entries that were drawn uniformly within a bound have since been moved."""
    if len(entries) < FEWEST or entries.device.type != "cpu" or not bool(torch.isfinite(entries).all()):
        return False
    outside = float((entries.abs() > bound * (1 + SAME)).float().mean())
    if outside > RARELY or abs(float(entries.std()) * math.sqrt(3.0) / bound - 1.0) > PART:
        return False
    return bool(_as_drawn(entries, bound).float().mean() < WELL)


def _as_drawn(entries: Tensor, bound: float) -> Tensor:
    """Which entries PyTorch's uniform draw within a bound can give."""
    half = torch.tensor(bound, dtype=torch.float32)
    nearest = ((entries.double() / half.double() + 1.0) * 2.0**23).round()
    found = torch.zeros_like(entries, dtype=torch.bool)
    for shift in (-1.0, 0.0, 1.0):
        share = (nearest + shift) * 2.0**-24
        found |= share.float() * (2 * half) - half == entries
        # where sum and product are one operation
        found |= (share * 2 * half.double() - half.double()).float() == entries
    return found


of_weight = WeightPart(_find, version=2)
