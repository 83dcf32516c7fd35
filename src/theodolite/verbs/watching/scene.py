"""One look at a model in training: what is measured in it once and shared, and what is carried from look to look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from torch import Tensor

from theodolite.core.subject import Subject
from theodolite.instruments._common.classes import classes_of
from theodolite.measure.curvature import Eigenpairs, Operator, extreme_eigenpairs, hessian
from theodolite.measure.dynamics import Slope, probe_slope

if TYPE_CHECKING:
    from theodolite.theory.dynamics.stationarity import Sampler

Level = Literal["cheap", "standard", "full"]
LEVELS: tuple[Level, ...] = ("cheap", "standard", "full")
WARM, COLD, CLOSE = 5, 60, 0.05
"""Products with the Hessian at a look that knows the last eigenvector, at most otherwise; error that asks for more."""

BESIDE, MOST_TOP = 5, 30
"""Eigenvalues looked at beyond the number of classes, and the most of them."""


@dataclass(frozen=True)
class Batching:
    """How training draws its batches: needed for the balance of noise and pull."""

    size: int | None = None
    samples: int | None = None
    sampler: Sampler = "without replacement"


@dataclass
class Carried:
    """What a watch carries from look to look; all of it can be lost but the origin."""

    origin: Mapping[str, Tensor] = field(repr=False)
    kernel: Tensor | None = None
    telling: float = 0.0
    vectors: Tensor | None = field(default=None, repr=False)
    centre: Tensor | None = field(default=None, repr=False)
    settling: int = 0
    window: list[tuple[float, float, float]] = field(default_factory=list)

    def forget_window(self) -> None:
        """Begin the search for stationarity anew."""
        self.centre, self.settling, self.window = None, 0, []


@dataclass
class Scene:
    """One look: the subject at its present weights with the present step size, and what was measured so far in it."""

    subject: Subject
    carried: Carried
    level: Level
    batching: Batching
    facts: dict[str, float] = field(default_factory=dict)

    @cached_property
    def slope(self) -> Slope:
        """Loss and gradient on the probe."""
        assert self.subject.model is not None and self.subject.loss is not None
        return probe_slope(self.subject.model, self.subject.loss, self.subject.data)

    @cached_property
    def operator(self) -> Operator:
        """The Hessian on the probe."""
        assert self.subject.model is not None and self.subject.loss is not None
        return hessian(self.subject.model, self.subject.loss, self.subject.data)

    @cached_property
    def classes(self) -> int | None:
        """How many classes the targets are of, where they are classes."""
        return classes_of(self.subject)

    @cached_property
    def top(self) -> Eigenpairs:
        """The largest eigenvalue, at level full also some more than there are classes; begun from those of the last look."""
        count = 1
        if self.level == "full":
            count = max(1, min((self.classes or 1) + BESIDE, MOST_TOP, self.operator.size // 2))
        start = None if self.carried.vectors is None else self.carried.vectors.sum(0)
        few, most = (WARM, COLD) if count == 1 else (3 * count, 6 * count + COLD)
        found = extreme_eigenpairs(
            self.operator, count=count, tolerance=1e-3, most=most if start is None else few, start=start
        )
        if start is not None and found.errors[0] > CLOSE * abs(found.values[0]):
            found = extreme_eigenpairs(
                self.operator, count=count, tolerance=1e-3, most=most, start=found.vectors.sum(0)
            )
        self.carried.vectors = found.vectors
        return found
