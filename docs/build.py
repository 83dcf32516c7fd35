"""Writes docs/site: front page, guides, a page for every law, instrument, ailment and document, gallery, API and search.

Run by `make docs`. Laws are measured anew where they have changed; finished verdicts are reused. Two processes do what takes
time: findings of the front page, scripts of the gallery, laws and their figures. The build fails where a link leads nowhere, a
formula cannot be drawn or a page is over 500 KB.
"""

from __future__ import annotations

import shutil
import sys
import time
import warnings
from pathlib import Path

import neurons  # beside this file
import rooms
from generator import entries, front, gallery, handbook, reference, walks
from generator.pages import LINKS, SCRIPT, SEARCH, Page, faults, framed, search_files

from theodolite import catalogue
from theodolite.io.files import write_atomically
from theodolite.io.workers import Processes
from theodolite.report.progress import tracked
from theodolite.report.rendering import Frame
from theodolite.report.unicode_math import unicode_prose
from theodolite.report.words import outcome
from theodolite.verbs.checking import Atlas, CheckSettings, checked_laws

HERE = Path(__file__).parent
SITE = HERE / "site"
PICTURES = {"design/rooms.svg": rooms.PICTURE, "neurons.svg": neurons.PICTURE, "adam_edge.svg": HERE / "adam_edge.svg"}
PICTURES |= {file.name: file for file in HERE.glob("transfer_*.svg")}


def atlas(processes: Processes) -> Atlas:
    """Every law with its verdict, and the verdicts under broken assumptions."""
    names = catalogue.law_names()
    settings = CheckSettings(break_assumptions=True)
    found = checked_laws(names, settings, jobs=processes.count, out=SITE, processes=processes)
    results = {r.verdict.law.name: r for r in tracked(found, total=len(names), label="checking laws")}
    return Atlas(tuple(results[name] for name in names))


def law_rows() -> list[Page]:
    """The laws for the search; their pages come from the atlas."""
    laws = (entry for entry in catalogue.entries() if entry.kind == "law")
    return [Page(f"laws/{e.name}.html", e.name, "", unicode_prose(e.summary), f"law · {e.topic}") for e in laws]


def say(started: float, part: str) -> None:
    """How long it has taken so far, on standard error."""
    print(f"docs: {part}, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def made(processes: Processes) -> tuple[Atlas, list[list[Page]], dict[str, str]]:
    """The laws, the pages by kind, and the files of the atlas."""
    started = time.perf_counter()
    findings = [processes.submit(front.shown, (title,)) for title in front.FINDINGS]
    scripts = [processes.submit(gallery.script_page, (name,)) for name in gallery.ORDER]
    sick = processes.submit(entries.sick_findings, ())
    readings = processes.submit(entries.builtin_readings, ())
    names = processes.submit(reference.reference_pages, ())
    errata = processes.submit(entries.errata_page, ())
    checked = atlas(processes)
    say(started, "laws")
    files = checked.files(Frame(links=LINKS, search=SEARCH, script=SCRIPT), processes=processes)
    say(started, "atlas")
    examples = [future.result() for future in scripts]
    files |= {path: text for _, written in examples for path, text in written.items()}
    outcomes = {result.verdict.law.name: outcome(result.verdict) for result in checked.results}
    groups = [
        [front.front_page([future.result() for future in findings])],
        handbook.guide_pages(),
        entries.ailment_pages(sick.result()),
        entries.instrument_pages(readings.result()),
        walks.walk_pages(outcomes),
        gallery.gallery_pages([page for page, _ in examples]),
        handbook.coming_pages(),
        names.result(),
        [errata.result(), *handbook.other_pages()],
    ]
    say(started, "front page, gallery, reference")
    return checked, groups, files


def build() -> int:
    started = time.perf_counter()
    write_atomically(rooms.PICTURE, rooms.picture())
    write_atomically(neurons.PICTURE, neurons.picture())  # the guide shows it
    warnings.filterwarnings("ignore", message="A worker stopped")  # one that grew is replaced; nothing is lost
    with Processes(2) as processes:
        checked, groups, files = made(processes)
    pages = [page for group in groups for page in group]
    for group in groups:
        files |= framed(group)
    files |= search_files([*pages, *law_rows(), *handbook.question_rows(), *reference.name_rows()])
    for name, text in files.items():
        write_atomically(SITE / name, text)
    for name, picture in PICTURES.items():
        shutil.copyfile(picture, SITE / name)
    wrong = faults(files, PICTURES)
    largest, seconds = max(map(len, files.values())), time.perf_counter() - started
    print(f"{len(files)} files, the largest {largest:,} bytes, in {seconds:.0f} s: {SITE / 'index.html'}")
    if wrong:
        print("\n".join("docs: " + words for words in wrong), file=sys.stderr)
    return 1 if wrong or not checked.good else 0


if __name__ == "__main__":
    raise SystemExit(build())
