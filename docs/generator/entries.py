"""Pages of ailments and instruments, their lists, and the errata of the literature."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from pathlib import Path

from generator.pages import Page, words_of
from theodolite import catalogue
from theodolite.report.formulas import prose
from theodolite.report.text import COSTS
from theodolite.report.unicode_math import unicode_formula, unicode_prose
from theodolite.verbs.diagnosing import clinic_counts

CLINIC = Path(__file__).resolve().parent.parent / "clinic.md"


def ailment_pages() -> list[Page]:
    """What each asks, is judged by and rests on, what follows from it, and the networks it is tried on."""
    return _with_list("ailment", "Ailments", "Ways in which networks fail, each a file", _ailment)


def instrument_pages() -> list[Page]:
    """What each asks, needs, costs and rests on."""
    return _with_list("instrument", "Instruments", "Questions asked of a network, each a file", _instrument)


def errata_page() -> Page:
    """Every statement of the literature that a law refutes, with what is right."""
    parts = [
        "<h1>Errata of the literature</h1><p>Where a statement in print, in the lecture notes or on slides was wrong, the "
        "law carries the corrected statement, and its experiment refutes the wrong one.</p>"
    ]
    count = 0
    for topic in catalogue.topics():
        wrong = [name for name in catalogue.law_names([topic]) if catalogue.law(name).erratum]
        parts += [f"<h2>{topic}</h2>"] if wrong else []
        for name in wrong:
            law = catalogue.law(name)
            count += 1
            parts.append(
                f'<article><h3><a href="laws/{name}.html">{name}</a></h3><p><b>In print:</b> {prose(law.erratum or "")}</p>'
                f"<p><b>What holds:</b> {prose(law.claim)}</p>"
                f'<div class="th-drawn"><img src="laws/{name}.svg" alt="{html.escape(unicode_formula(law.formula))}" '
                f'loading="lazy"></div></article>'
            )
    return Page(
        "errata.html", "Errata", "".join(parts), f"{count} statements of the literature that laws refute", "page"
    )


def _with_list(kind: str, title: str, about: str, body: Callable[[catalogue.CatalogueEntry], str]) -> list[Page]:
    found = [entry for entry in catalogue.entries() if entry.kind == kind]
    rows = "".join(f'<li><a href="{e.name}.html">{e.name}</a>: {prose(e.summary)}</li>' for e in found)
    home = Page(f"{kind}s/index.html", title, f"<h1>{title}</h1><p>{about}.</p><ul>{rows}</ul>", about, "list")
    pages = [Page(f"{kind}s/{e.name}.html", e.name, body(e), words_of(unicode_prose(e.summary)), kind) for e in found]
    return [home, *pages]


def _ailment(entry: catalogue.CatalogueEntry) -> str:
    ailment = catalogue.ailment(entry.name)
    kept = {name: _names(kind) for name, kind in ailment.examples.items()}
    return _facts(
        entry,
        ailment.question,
        {
            "needs": ", ".join(sorted(ailment.needs)),
            "judged by": ", ".join(ailment.signs),
            "explains": _links(ailment.explains, "ailments"),
            "rests on": _links(ailment.laws, "laws"),
            "in the clinic": clinic_figures(entry.name),
            **{f"{name} examples": ", ".join(found) for name, found in kept.items()},
        },
    )


def clinic_figures(name: str) -> str:
    """How often the clinic found and cured it, and how often its alarm was right there; nothing where it had no such run."""
    rows = [line.strip("| ").split(" | ") for line in CLINIC.read_text(encoding="utf-8").splitlines()]
    told = [
        f"of {runs} sick runs {found} were found, {first} with this cause first"
        + ("" if cured == "–" else f"; its remedy cured {cured}")
        for own, runs, found, _, first, cured in (row for row in rows if len(row) == 6 and row[0] == name)
    ]
    right, raised = clinic_counts().get(name, (0, 0))
    told += [f"of {raised} alarms {right} were right"] if raised else []
    return "; ".join(told)


def _instrument(entry: catalogue.CatalogueEntry) -> str:
    instrument = catalogue.instrument(entry.name)
    return _facts(
        entry,
        instrument.question,
        {
            "needs": ", ".join(sorted(instrument.needs)) or "nothing",
            "cost": COSTS[instrument.cost],
            "rests on": _links(instrument.laws, "laws"),
            "alone": f'<code>th.read("{entry.name}", subject)</code>, '
            f"<code>theodolite survey --instrument {entry.name}</code>",
        },
    )


def _facts(entry: catalogue.CatalogueEntry, question: str, rows: dict[str, str]) -> str:
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items() if value)
    rest = entry.docstring.partition("\n")[2].strip()
    said = "".join(f"<p>{prose(' '.join(part.split()))}</p>" for part in rest.split("\n\n") if part.strip())
    return f'<h1>{entry.name}</h1><p class="th-claim">{prose(question)}</p>{said}<dl>{facts}</dl>'


def _names(examples: Iterable[Callable[..., object]]) -> list[str]:
    """The functions' own names as words."""
    return [html.escape(getattr(example, "__name__", "example").strip("_").replace("_", " ")) for example in examples]


def _links(names: Iterable[str], folder: str) -> str:
    return ", ".join(f'<a href="../{folder}/{name}.html">{name}</a>' for name in names)
