"""Pages: self-contained HTML without script or network, for light and dark, phone and print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.report.plots import FEW_FIGURES
from theodolite.report.views import AtlasEntry, atlas_entry, slug, survey_sections
from theodolite.report.words import MARKS, printable, status_counts

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from theodolite.core.law import Verdict
    from theodolite.core.question import Answer, Skipped
    from theodolite.report.opening import Opening

__all__ = ["atlas_page", "document_page", "survey_fragment", "survey_page", "watch_page"]

COUNT_WORDS: Mapping[str, str] = {"agrees": "agree", "no reference": "without reference", "holds": "hold"}
"""How a status is said of several; others keep their word."""


def survey_page(
    title: str,
    answers: Sequence[Answer],
    skipped: Sequence[Skipped],
    facts: Mapping[str, str],
    *,
    opening: Opening | None = None,
) -> str:
    """The whole survey as one HTML document; the ``opening`` stands before the readings."""
    sections = survey_sections(answers)
    plots = sum(len(group.plots) for section in sections for group in section.groups)
    return rendered(
        "survey.html.j2",
        title=title,
        sections=sections,
        skipped=skipped,
        facts=facts,
        counts=_survey_counts(answers, skipped),
        open_figures=plots <= FEW_FIGURES,
        **_opened(opening),
    )


def watch_page(
    title: str,
    answers: Sequence[Answer],
    skipped: Sequence[Skipped],
    facts: Mapping[str, str],
    *,
    phases: Sequence[tuple[int, str, str]],
    last: int = 0,
    opening: Opening | None = None,
) -> str:
    """A run as one HTML document: readings with their series over steps, and its phases (first step, name, reason)."""
    sections = survey_sections(answers)
    return rendered(
        "watch.html.j2",
        title=title,
        sections=sections,
        skipped=skipped,
        facts=facts,
        counts=_survey_counts(answers, skipped),
        phases=phases,
        last=last,
        **_opened(opening),
    )


def survey_fragment(
    title: str,
    answers: Sequence[Answer],
    skipped: Sequence[Skipped],
    facts: Mapping[str, str],
    *,
    opening: Opening | None = None,
) -> str:
    """The survey as an element with its own style, compact and without figures, for a notebook's cell."""
    return rendered(
        "fragment.html.j2",
        title=title,
        sections=survey_sections(answers, figures=False),
        skipped=skipped,
        facts=facts,
        counts=_survey_counts(answers, skipped),
        **_opened(opening),
    )


def atlas_page(
    verdicts: Sequence[Verdict],
    topics: Mapping[str, str],
    references: Mapping[str, str],
    broken: Mapping[str, Mapping[str, bool]] | None = None,
) -> str:
    """The atlas of laws as one HTML document.

    ``topics`` describes each topic in one line; ``references`` spells out each bibliography key; ``broken`` tells for
    each law which broken assumptions were seen to break it.
    """
    seen = broken or {}
    order = {topic: place for place, topic in enumerate(topics)}
    groups: dict[str, list[AtlasEntry]] = {}
    for verdict in sorted(verdicts, key=lambda verdict: order.get(verdict.law.topic, len(order))):
        entry = atlas_entry(verdict, references, seen.get(verdict.law.name, {}))
        groups.setdefault(verdict.law.topic, []).append(entry)
    ends = [entry.outcome for entries in groups.values() for entry in entries]
    counts = [(end, COUNT_WORDS.get(end, end), ends.count(end)) for end in ("holds", "broken", "inconclusive")]
    return rendered(
        "atlas.html.j2",
        title="Atlas of laws",
        groups=[(topic, slug(topic), topics.get(topic, ""), entries) for topic, entries in groups.items()],
        counts=counts,
        readings=sum(len(verdict.readings) for verdict in verdicts),
        errata=sum(bool(verdict.law.erratum) for verdict in verdicts),
    )


def document_page(title: str, body: str) -> str:
    """A page of documentation; ``body`` is HTML that is ours, not a user's."""
    from markupsafe import Markup

    return rendered("document.html.j2", title=title, body=Markup(body))


def _opened(opening: Opening | None) -> Mapping[str, Any]:
    from theodolite.report.opening import Opening  # which renders a diagnosis, and so needs this file

    return (opening or Opening()).values()


def _survey_counts(answers: Sequence[Answer], skipped: Sequence[Skipped]) -> list[tuple[str, str, int]]:
    counts: dict[str, int] = {**status_counts(answers), "skipped": len(skipped)}
    return [(status, COUNT_WORDS.get(status, status), count) for status, count in counts.items()]


def rendered(template: str, **values: Any) -> str:
    """A template with these values; marks are those of readings unless others are given."""
    return _environment().get_template(template).render(**{"marks": MARKS, **values})


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters["parted"] = _parted
    return environment


def _parted(name: str) -> Markup:
    """A name that may break after its dots and slashes, decimal points excepted."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<!\d)[./]|[./](?!\d)", r"\g<0><wbr>", str(escape(printable(name)))))
