"""How many directions does the data really use? All estimators of intrinsic dimension side by side, and why they differ."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, overload

from rich.console import RenderableType

from theodolite.core.checks import one_of
from theodolite.core.question import Answer, Skipped
from theodolite.core.reading import Estimate
from theodolite.measure import dimension as measure
from theodolite.measure.dimension import distinct_rows, embeddings
from theodolite.report.drawing.planes import scatter_figure
from theodolite.report.figures import Plot
from theodolite.report.html import survey_page
from theodolite.report.opening import Opening
from theodolite.report.overview import dimension_table
from theodolite.report.progress import tracked
from theodolite.verbs._presented import PresentableAnswers, Sheet
from theodolite.verbs.dimensions.explanation import explained
from theodolite.verbs.dimensions.found import Found, Plane
from theodolite.verbs.dimensions.steps import above_noise, by_null_space, steps_of

ByNeighbors = Literal["twonn", "mle", "gride", "correlation", "calibrated", "ess", "danco"]
ByVariance = Literal["local-pca", "participation", "pca", "parallel", "marchenko-pastur", "mixture"]
DimensionMethod = Literal[ByNeighbors, ByVariance, "isomap", "lle", "hessian"]
FEWEST = 40


@dataclass(frozen=True)
class Dimension(PresentableAnswers):
    """Every estimate of one data set's dimension, ``words`` that say why they differ, and the ``best`` of them.

    ``curve`` is Gride across scales; ``plane`` the best picture in two coordinates, None where it was not asked for.
    """

    name: str
    answers: tuple[Answer, ...]
    skipped: tuple[Skipped, ...]
    words: tuple[str, ...]
    best: Estimate
    curve: tuple[Estimate, ...]
    facts: dict[str, str]
    plane: Plane | None = None
    columns: ClassVar[tuple[str, ...]] = ("family", "estimator", "value", "stderr", "status", "meaning")

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary an estimator."""
        return [
            {
                "family": a.question.name,
                "estimator": r.where,
                "value": r.measured,
                "stderr": r.stderr,
                "status": r.status,
                "meaning": r.meaning,
            }
            for a in self.answers
            for r in a.readings
        ]

    def estimate(self, estimator: str) -> Estimate:
        """The value and error in the row of that name, as in ``TwoNN``."""
        found = {reading.where: reading for reading in self.readings}
        one_of(found, estimator=estimator)
        return Estimate(found[estimator].measured, found[estimator].stderr)

    @property
    def title(self) -> str:
        """What was asked."""
        return f"Dimension of {self.name}"

    def sheet(self) -> Sheet:
        """Every estimate, by family."""
        return Sheet(self.title, self.answers, self.skipped, self.facts)

    def table(self, *, detailed: bool = True) -> RenderableType:
        """For the terminal."""
        return dimension_table(self)

    def page(self) -> str:
        """One HTML document that needs nothing beside it."""
        pictures = []
        if self.plane is not None:
            p = self.plane
            spoken = f"{len(p.places)} rows in the plane by {p.name}"
            caption = (
                f"{spoken}: trustworthiness {p.trustworthiness:.3f}, continuity {p.continuity:.3f} (1 is perfect)."
            )
            pictures.append(Plot(scatter_figure(p.places, p.labels, spoken=spoken), caption))
        return survey_page(
            self.title, self.answers, self.skipped, self.facts, opening=Opening(words=self.words, pictures=pictures)
        )

    def document(self) -> dict[str, Any]:
        """What `json` writes; an error that is not known becomes null."""
        return {
            "data": self.name,
            "best": asdict(self.best),
            "words": list(self.words),
            "estimates": self.rows(),
            "scales": [asdict(estimate) for estimate in self.curve],
            "facts": self.facts,
            "plane": self.plane
            and {
                "method": self.plane.name,
                "trustworthiness": self.plane.trustworthiness,
                "continuity": self.plane.continuity,
                "others": self.plane.others,
            },
            "skipped": [asdict(skipped) for skipped in self.skipped],
        }


@overload
def dimension(x: Any, method: DimensionMethod) -> Estimate: ...
@overload
def dimension(
    x: Any, method: None = None, *, labels: Any = None, picture: bool = True, name: str = ""
) -> Dimension: ...
def dimension(
    x: Any, method: DimensionMethod | None = None, *, labels: Any = None, picture: bool = True, name: str = ""
) -> Dimension | Estimate:
    """The intrinsic dimension of the rows of ``x``: by one ``method`` an `Estimate`, without one all of them side by side.

    ``x`` is an array, tensor or frame, samples first. ``labels`` color the picture. Rows that repeat another one and
    constant columns are removed first.

    >>> import torch, theodolite as th
    >>> x = torch.rand(1000, 2, generator=torch.Generator().manual_seed(0))
    >>> abs(th.dimension(x, method="mle").value - 2) < 0.2
    True
    """
    if method is not None:
        return _single(x, method)
    started = time.perf_counter()
    rows = distinct_rows(x, fewest=FEWEST)
    state = Found()
    work = steps_of(rows, state, labels, picture)
    for step in tracked(work, total=len(work), label="estimating dimension"):
        step()
    graph, values = state.graph, state.values
    facts = {
        "rows": f"{rows.given:,} given, {len(rows):,} distinct",
        "columns": f"{rows.columns + rows.constant} given, {rows.columns} that vary",
        "neighbors": f"{graph.count} of each row, by {graph.method}",
        "notes": "; ".join(graph.notes) or "none",
        "time": f"{time.perf_counter() - started:.1f} s",
    }
    best, words = explained(values, state, rows=len(rows), notes=graph.notes)
    return Dimension(
        name or f"{rows.given:,} rows of {rows.columns + rows.constant} columns",
        state.answers,
        tuple(state.skipped),
        words,
        best,
        state.curve,
        facts,
        state.plane,
    )


def _single(x: Any, method: str) -> Estimate:
    simple: dict[str, Callable[[Any], Estimate]] = {
        "twonn": measure.dimension_twonn,
        "mle": measure.dimension_mle,
        "gride": measure.dimension_gride,
        "correlation": measure.dimension_correlation,
        "calibrated": measure.dimension_calibrated,
        "ess": measure.dimension_ess,
        "danco": measure.dimension_danco,
        "local-pca": measure.dimension_local_pca,
        "participation": measure.dimension_participation,
        "pca": measure.dimension_pca,
        "parallel": measure.dimension_parallel,
        "marchenko-pastur": above_noise,
        "mixture": lambda x: measure.gaussian_mixture(x).dimension,
        "isomap": lambda x: Estimate(float(embeddings.isomap(x).dimension)),
        "lle": lambda x: Estimate(float(embeddings.lle(x).dimension)),
        "hessian": by_null_space,
    }
    one_of(simple, method=method)
    return simple[method](measure.distinct_rows(x))
