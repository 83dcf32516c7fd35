"""Pages: self-contained HTML without script or network, for light and dark, phone and print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.report.figures import FEW_FIGURES
from theodolite.report.opening import Opening
from theodolite.report.rendering import rendered
from theodolite.report.views import shortened_sections, survey_sections
from theodolite.report.words import count_words, status_counts

if TYPE_CHECKING:
    from theodolite.core.question import Answer, Skipped

__all__ = ["survey_fragment", "survey_page", "watch_page"]

NOTEBOOK_ROWS = 24
"""So many rows of a quantity are in a notebook's cell; the page has all of them."""


def survey_page(
    title: str,
    answers: Sequence[Answer],
    skipped: Sequence[Skipped],
    facts: Mapping[str, str],
    *,
    opening: Opening | None = None,
    laws: Mapping[str, str] | None = None,
) -> str:
    """The whole survey as one HTML document; the ``opening`` stands before the readings, the ``laws`` in words behind."""
    sections = survey_sections(answers)
    plots = sum(len(group.plots) for section in sections for group in section.groups)
    return rendered(
        "survey.html.j2",
        sections=sections,
        open_figures=plots <= FEW_FIGURES,
        laws=laws or {},
        **_around(title, answers, skipped, facts, opening),
    )


def watch_page(
    title: str,
    answers: Sequence[Answer],
    skipped: Sequence[Skipped],
    facts: Mapping[str, str],
    *,
    phases: Sequence[tuple[int, str, str]],
    opening: Opening | None = None,
) -> str:
    """A run as one HTML document: readings with their series over steps, and its phases (first step, name, reason)."""
    around = _around(title, answers, skipped, facts, opening)
    return rendered("watch.html.j2", sections=survey_sections(answers), phases=phases, **around)


def survey_fragment(
    title: str,
    answers: Sequence[Answer],
    skipped: Sequence[Skipped],
    facts: Mapping[str, str],
    *,
    opening: Opening | None = None,
) -> str:
    """The survey as an element with its own style, compact and without figures, for a notebook's cell."""
    sections = shortened_sections(survey_sections(answers, figures=False), NOTEBOOK_ROWS)
    return rendered("fragment.html.j2", sections=sections, **_around(title, answers, skipped, facts, opening))


def _around(
    title: str, answers: Sequence[Answer], skipped: Sequence[Skipped], facts: Mapping[str, str], opening: Opening | None
) -> dict[str, Any]:
    """What every page has around its readings: what it opens with, how many have each status, and the facts beside them."""
    counts: dict[str, int] = {**status_counts(answers), "skipped": len(skipped)}
    told = [(status, count_words(status, count), count) for status, count in counts.items()]
    return {"title": title, "skipped": skipped, "facts": facts, "counts": told, **(opening or Opening()).values()}
