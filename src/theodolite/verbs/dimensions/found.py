"""What estimating dimension has found so far: readings by family of estimators, and what was skipped."""

import math
from dataclasses import dataclass, field

from theodolite.core.question import Answer, Question, Skipped
from theodolite.core.reading import Band, Estimate, Reading, Series
from theodolite.measure.dimension import NearCopies, Neighbors


@dataclass(frozen=True)
class Plane:
    """The best picture of the data in two coordinates, and how true it is."""

    name: str
    places: tuple[tuple[float, float], ...] = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    trustworthiness: float
    continuity: float
    others: dict[str, float]


@dataclass
class Found:
    """What the steps of the work have found so far."""

    graph: Neighbors = field(init=False)
    rank: int = 0
    values: dict[str, Estimate] = field(default_factory=dict)
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    curve: tuple[Estimate, ...] = ()
    copies: NearCopies | None = None
    plane: Plane | None = None

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The readings by family."""
        return tuple(Answer(_FAMILIES[key], tuple(self.readings[key])) for key in _FAMILIES if self.readings.get(key))

    def add(self, family: str, name: str, found: Estimate, meaning: str, series: Series | None = None) -> None:
        """One estimate as a reading beside the linear hull, which no manifold in it can exceed."""
        if not math.isfinite(found.value):
            self.skipped.append(Skipped(name, "the number is not finite"))
            return
        self.values[name] = found
        error = found.stderr if math.isfinite(found.stderr) else 0.0
        self.readings.setdefault(family, []).append(
            Reading(
                quantity=_QUANTITIES[family],
                where=name,
                measured=found.value,
                stderr=error,
                expected=Band(high=float(self.rank)),
                meaning=meaning,
                series=series,
            )
        )


_QUANTITIES = {
    "neighbors": "dimension by nearest neighbors",
    "scales": "dimension across scales (Gride)",
    "variance": "dimension by variance",
    "manifold": "dimension by local geometry",
}
_FAMILIES = {
    "neighbors": Question(
        name="nearest neighbors",
        question="How fast does the number of neighbors grow with distance?",
        cost="free",
        laws=("twonn-ratio", "mle-unbiased", "high-dimension-bias"),
    ),
    "scales": Question(
        name="scales", question="Does the answer depend on the scale?", cost="free", laws=("gride-across-scales",)
    ),
    "variance": Question(
        name="variance",
        question="How many straight directions hold the data?",
        cost="free",
        laws=("linear-manifold-rank",),
    ),
    "manifold": Question(
        name="manifold",
        question="How many coordinates does the surface itself need?",
        cost="free",
        laws=("isomap-isometry",),
    ),
}
