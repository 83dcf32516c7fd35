"""Data as distinct finite rows in float64: what every estimator of dimension starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError, InputTypeError

BLOCK = 1 << 21
"""Entries worked on at a time."""


@dataclass(frozen=True)
class Rows:
    """Distinct rows of a data set, ``points`` times ``scale`` (a power of two), and what was taken out.

    ``kept`` are their places among the rows that were ``given``. ``notes`` say in words what was done and what limits it;
    ``rounding`` is the variance that storing the numbers adds to each of the ``points``.
    """

    points: Tensor = field(repr=False)  # (n, d), float64
    kept: Tensor = field(repr=False)
    scale: float
    given: int
    duplicates: int
    constant: int
    notes: tuple[str, ...] = ()
    rounding: float = 0.0

    def __len__(self) -> int:
        return len(self.points)

    @property
    def columns(self) -> int:
        """How many columns vary."""
        return int(self.points.shape[1])

    def unscaled(self) -> Rows:
        """The points themselves as data, of spread near one: what has no units is taken from them at any scale."""
        return replace(self, scale=1.0)

    def sample(self, most: int, *, seed: int = 0) -> Rows:
        """At most so many of the rows, drawn without order."""
        if len(self) <= most:
            return self
        generator = torch.Generator().manual_seed(seed)
        chosen = torch.randperm(len(self), generator=generator)[:most].sort().values.to(self.points.device)
        note = f"{most:,} of {len(self):,} rows were drawn"
        return replace(self, points=self.points[chosen], kept=self.kept[chosen], notes=(*self.notes, note))


def distinct_rows(x: Any, *, fewest: int = 4) -> Rows:
    """The distinct rows of ``x`` (samples first; further axes are flattened), constant columns left out.

    Rows that repeat another one break every estimator that divides by the distance to the nearest neighbor: with one
    row in ten repeated scikit-dimension's maximum likelihood answers 0. They are removed and counted. Rows that are not
    finite are refused and named.

    >>> rows = distinct_rows([[0.0, 1, 7], [1, 1, 7], [0, 1, 7], [0, 2, 7], [5, 5, 7]])
    >>> len(rows), rows.duplicates, rows.constant, rows.columns
    (4, 1, 1, 2)
    """
    if isinstance(x, Rows):
        return x
    table, notes = _table(x)
    _check_finite(table)
    varying = (table != table[:1]).any(0)
    constant = int((~varying).sum())
    if constant:
        notes.append(f"{constant} constant column{'s' if constant > 1 else ''} left out")
    points = table[:, varying].double() if constant else table.double()
    scale = _power_of_two(points)
    points = points / scale + 0.0  # a new tensor, and minus zero becomes zero
    first = _first_places(points)
    duplicates = len(points) - len(first)
    if duplicates:
        notes.append(f"{duplicates:,} of {len(points):,} rows repeat another one and were removed")
        points = points[first]
    if len(points) < fewest:
        raise InputError(f"expected at least {fewest} distinct rows, got {len(points)} of {len(table)}; pass more data")
    spacing = torch.finfo(table.dtype).eps if table.is_floating_point() else 0.0
    rounding = spacing**2 / 12 * float(points.square().mean()) if points.numel() else 0.0
    return Rows(points, first, scale, len(table), duplicates, constant, tuple(notes), rounding)


def _table(x: Any) -> tuple[Tensor, list[str]]:
    """The data as a matrix on its own device, and what its type of number says about its distances."""
    if not isinstance(x, Tensor):
        array = np.asarray(x.to_numpy() if hasattr(x, "to_numpy") else x)
        if array.dtype.kind not in "fiub":
            raise InputTypeError(f"expected real numbers, got {array.dtype}; leave out columns of text and dates")
        if (array.dtype.kind == "u" and array.dtype.itemsize > 1) or array.dtype == np.longdouble:
            array = array.astype(np.float64)
        x = torch.from_numpy(np.ascontiguousarray(array))
    if x.is_complex():
        raise InputTypeError("expected real numbers, got complex ones; pass real and imaginary parts as columns")
    if x.ndim < 2:
        raise InputError(f"expected rows of at least one column, got shape {tuple(x.shape)}; pass (samples, features)")
    x = x.detach().flatten(1)
    notes = []
    if x.dtype in (torch.float16, torch.bfloat16):
        bits = {torch.float16: 11, torch.bfloat16: 8}[x.dtype]
        notes.append(
            f"numbers of {bits} binary digits: at distances near their spacing the data is a lattice, not a manifold"
        )
    elif not x.is_floating_point():
        notes.append("whole numbers: the data lies on a lattice, and many distances are equal")
    if x.device.type == "mps":  # no float64 there
        x = x.cpu()
    if not x.numel():
        raise InputError(f"expected numbers, got an array of shape {tuple(x.shape)}; check the file")
    return x, notes


def _check_finite(table: Tensor) -> None:
    if not table.is_floating_point():
        return
    bad = (~table.isfinite()).any(1).nonzero().flatten().tolist()
    if bad:
        named = ", ".join(str(row) for row in bad[:5]) + (" ..." if len(bad) > 5 else "")
        one = len(bad) == 1
        raise InputError(
            f"expected finite numbers, got NaN or infinity in row{'' if one else 's'} {named} ({len(bad)} of {len(table)}); "
            "leave them out"
        )


def _power_of_two(points: Tensor) -> float:
    """A power of two near the largest spread of a column, so that dividing by it is exact and squares stay in range."""
    if not points.numel():
        return 1.0
    spread = float((points.amax(0) / 2 - points.amin(0) / 2).amax())
    return math.ldexp(1.0, math.frexp(spread)[1]) if 0 < spread < math.inf else 1.0


def _folded(points: Tensor) -> Tensor:
    """The bits of each number, its upper half in the lower one, too: of a number that was a float32 the lower half is zero."""
    bits = points.contiguous().view(torch.int64)
    return bits ^ ((bits >> 32) & 0xFFFFFFFF)


def _first_places(points: Tensor) -> Tensor:
    """Where each distinct row stands first, ascending: by a 64-bit hash of its bits, then compared in full."""
    count = len(points)
    everyone = torch.arange(count, device=points.device)
    generator = torch.Generator().manual_seed(1)
    factors = (torch.randint(-(2**62), 2**62, (points.shape[1],), generator=generator) * 2 + 1).to(points.device)
    rows = max(1, BLOCK // max(points.shape[1], 1))
    keys = torch.cat([(_folded(part) * factors).sum(1) for part in torch.split(points, rows)])
    groups, inverse = torch.unique(keys, return_inverse=True)
    if len(groups) == count:
        return everyone
    first = torch.full((len(groups),), count, device=points.device).scatter_reduce(0, inverse, everyone, "amin")
    same = first[inverse]
    repeated = (same != everyone).nonzero().flatten()
    if all(torch.equal(points[part], points[same[part]]) for part in torch.split(repeated, rows)):
        return first.sort().values
    inverse = torch.unique(points, dim=0, return_inverse=True)[1]  # two rows of one hash: once in 1e10 tables
    whole = torch.full((int(inverse.max()) + 1,), count, device=points.device)
    return whole.scatter_reduce(0, inverse, everyone, "amin").sort().values
