"""What one case of the clinic is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .cures import cured
from .recipe import Recipe, Setup, setup_of
from .run import score
from .sites import SEEDS, SITES, split_of


@dataclass(frozen=True)
class Case:
    """A run whose ailment is known, or one that has none."""

    name: str
    ailment: str | None
    architecture: str
    data: str
    grade: str
    split: str
    build: Callable[[int], Setup]
    cure: Callable[[Any, int], Setup] | None = None
    twin: Callable[[int], Setup] | None = None  # the same script without the ailment
    site: str = ""  # the site whose script the twin is, unchanged
    also: tuple[str, ...] = ()  # other names that are true of it, causes or consequences
    fact: str = ""  # by what it is true; empty: it scores clearly worse than its twin
    holds: Callable[[Setup], bool] | None = None  # that fact, after the run
    balanced: bool = False  # scored by the mean over classes
    threshold: float | None = None  # the score a healthy run reaches; None: that of its data set

    @property
    def twin_name(self) -> str:
        """A name that cases share whose twin is the same: its site, or the case without its grade; and how it is scored."""
        return (self.site or self.name.rpartition("/")[0]) + (" (balanced)" if self.balanced else "")

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that belong to its half of the clinic."""
        return SEEDS[self.split]


def suggestion(finding: Any) -> dict[str, Any]:
    """The machine-readable part of a Finding, or of a mapping given as one."""
    return dict(finding if isinstance(finding, dict) else finding.suggested or {})


def healthy(name: str, recipe: Recipe, *, threshold: float | None = None) -> Case:
    """A case without an ailment."""
    return Case(
        f"healthy/{recipe.architecture}-{recipe.data}/{name}",
        None,
        recipe.architecture,
        recipe.data,
        "",
        split_of(recipe.architecture),
        lambda seed: setup_of(recipe, seed),
        threshold=threshold,
    )


def sick(ailment: str, grade: str, recipe: Recipe, twin: Recipe, *, kind: str = "", **facts: Any) -> Case:
    """A case that differs from its twin by the ailment; kind tells two ways of having it apart."""
    place = f"{recipe.architecture}-{recipe.data}"

    def cure(finding: Any, seed: int) -> Setup:
        return setup_of(cured(recipe, suggestion(finding)), seed)

    return Case(
        "/".join(part for part in (ailment, place, kind, grade) if part),
        ailment,
        recipe.architecture,
        recipe.data,
        grade,
        split_of(recipe.architecture),
        lambda seed: setup_of(recipe, seed),
        cure=cure,
        twin=lambda seed: setup_of(twin, seed),
        site=next((name for name, known in SITES.items() if known is twin), ""),
        **facts,
    )


def grades(ailment: str, site: str | Recipe, *, kind: str = "", mild: dict, severe: dict, **facts: Any) -> list[Case]:
    """A mild and a severe case at a site: each the site's script with these fields changed."""
    recipe = SITES[site] if isinstance(site, str) else site
    return [
        sick(ailment, grade, replace(recipe, **changes), recipe, kind=kind, **facts)
        for grade, changes in (("mild", mild), ("severe", severe))
        if changes
    ]


def worse_on_held_out(setup: Setup, gap: float) -> bool:
    """Whether the training score lies this far above the held-out one."""
    return score(setup, setup.loader.x, setup.loader.y) - score(setup, *setup.validation) >= gap
