"""Many laws at once: over workers, each verdict stored when it is known, a killed run goes on where it stopped."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from theodolite import catalogue
from theodolite.core.law import Law, Size, Verdict
from theodolite.core.reading import Estimate
from theodolite.core.reading_table import COLUMNS, known_number, row_of
from theodolite.core.source_digest import source_digest
from theodolite.io.files import write_atomically
from theodolite.io.store import Store
from theodolite.io.workers import Backend, Processes, completed, one_thread
from theodolite.verbs._presented import Presentable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.report.atlas import Charted
    from theodolite.report.rendering import Frame


def check(law: str | Law, breaking: str | None = None, *, size: Size = "quick", seed: int = 0) -> Verdict:
    """Run one law, by name or as an object; with ``breaking`` one of its assumptions is broken."""
    chosen = catalogue.law(law) if isinstance(law, str) else law
    return chosen.check(breaking, size=size, seed=seed)


@dataclass(frozen=True)
class Checked:
    """A verdict, and the verdict under each assumption that was broken on purpose."""

    verdict: Verdict
    broken: Mapping[str, Verdict] = field(default_factory=dict)

    @property
    def breaks(self) -> Mapping[str, bool]:
        """For each assumption that was broken on purpose, whether the law then failed."""
        return {text: verdict.broken for text, verdict in self.broken.items()}


@dataclass(frozen=True)
class CheckSettings:
    """How laws are to be checked: everything their verdicts depend on."""

    size: Size = "quick"
    seed: int = 0
    break_assumptions: bool = False

    def fingerprint(self, name: str) -> str:
        """Changes with the size, the seed, and any source that the law may depend on: an old verdict is then not reused."""
        from theodolite import __version__

        code = source_digest(catalogue.ROOT, catalogue.entry(name).path)
        parts = [__version__, code, self.size, str(self.seed), str(self.break_assumptions), *_library_versions()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def _library_versions() -> tuple[str, ...]:
    from importlib.metadata import version

    return tuple(version(name) for name in ("torch", "numpy", "scipy", "scikit-learn"))


def checked_laws(
    names: Iterable[str],
    settings: CheckSettings = CheckSettings(),  # noqa: B008  immutable
    *,
    jobs: int = 1,
    backend: Backend = "loky",
    out: Path | None = None,
    processes: Processes | None = None,
) -> Iterator[Checked]:
    """Yield each law's result as it is known. With ``out`` results are kept there, and those found there are reused.

    ``processes`` are taken where they are given, and are shared with whatever else was given to them.
    """
    store = Store(out)
    waiting = []
    for name in names:
        kept = _kept(name, settings, store)
        if kept:
            yield kept
        else:
            waiting.append(name)
    tasks = [
        (name, breaking, index, settings)
        for name in waiting
        for breaking in _breakings(name, settings)
        for index in range(len(catalogue.law(name).cases_of(settings.size)))
    ]
    pending = {name: sum(task[0] == name for task in tasks) for name in waiting}
    estimates: dict[tuple[str, str | None, int], Estimate] = {}
    for number, estimate in completed(_measured, tasks, jobs=jobs, backend=backend, processes=processes):
        name, breaking, index, _ = tasks[number]
        estimates[name, breaking, index] = estimate
        pending[name] -= 1
        if not pending[name]:
            yield _finished(name, settings, estimates, store)


def _breakings(name: str, settings: CheckSettings) -> list[str | None]:
    broken = (
        [text for text, change in catalogue.law(name).assumes.items() if change] if settings.break_assumptions else []
    )
    return [None, *broken]


def _measured(name: str, breaking: str | None, index: int, settings: CheckSettings) -> Estimate:
    law = catalogue.law(name)
    with one_thread():  # sums in one order: verdicts are then equal whatever the number of workers
        return law.measured(
            law.cases_of(settings.size)[index], breaking=breaking, size=settings.size, seed=settings.seed
        )


def _finished(name: str, settings: CheckSettings, estimates: Mapping[Any, Estimate], store: Store) -> Checked:
    law = catalogue.law(name)
    cases = range(len(law.cases_of(settings.size)))
    by_breaking = {b: [estimates[name, b, i] for i in cases] for b in _breakings(name, settings)}
    with one_thread():
        by_breaking[None] = law.decided(by_breaking[None], size=settings.size, seed=settings.seed)
    result = _checked(law, settings, by_breaking)
    pairs = [[breaking, [[e.value, e.stderr] for e in found]] for breaking, found in by_breaking.items()]
    store.put(f"verdict {name}", {**_document(result), "estimates": pairs}, fingerprint=settings.fingerprint(name))
    return result


def _checked(law: Law, settings: CheckSettings, by_breaking: Mapping[str | None, list[Estimate]]) -> Checked:
    broken = {b: law.verdict(found, size=settings.size) for b, found in by_breaking.items() if b is not None}
    return Checked(law.verdict(by_breaking[None], size=settings.size), broken)


def _kept(name: str, settings: CheckSettings, store: Store) -> Checked | None:
    found = store.get(f"verdict {name}", settings.fingerprint(name))
    if found is None:
        return None
    estimates = {
        b: [Estimate(known_number(v), known_number(e)) for v, e in pairs] for b, pairs in found.value["estimates"]
    }
    return _checked(catalogue.law(name), settings, estimates)


@dataclass(frozen=True)
class Atlas(Presentable):
    """Laws and how they fared."""

    results: tuple[Checked, ...]
    kind: ClassVar[str] = "verdict"
    columns: ClassVar[tuple[str, ...]] = ("law", "topic", "holds", *COLUMNS)

    @property
    def good(self) -> bool:
        """Every law holds, and fails where an assumption was broken on purpose."""
        return all(result.verdict.holds and all(result.breaks.values()) for result in self.results)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading."""
        return [
            {"law": v.law.name, "topic": v.law.topic, "holds": v.holds, **row_of(reading)}
            for v in (result.verdict for result in self.results)
            for reading in v.readings
        ]

    def table(self) -> RenderableType:
        """For the terminal."""
        from theodolite.report.survey_text import verdict_table

        return verdict_table([result.verdict for result in self.results])

    def page(self) -> str:
        """The front page; `html` with a path also writes the pages of the laws, to which it leads."""
        from theodolite.report.atlas import atlas_page

        return atlas_page(self._charted(), catalogue.topics())

    def html(self, path: str | Path | None = None) -> str:
        """The front page; with ``path`` it is written there, and in `laws/` beside it a page for each law."""
        if path is None:
            return self.page()
        files = self.files()
        home = Path(path)
        for name, text in files.items():
            write_atomically(home if name == "atlas.html" else home.parent / name, text)
        return files["atlas.html"]

    def files(self, around: Frame | None = None, *, processes: Processes | None = None) -> dict[str, str]:
        """Every page by its path; ``around`` is the frame of a site that they are part of, ``processes`` draw the figures."""
        from theodolite.report.atlas import atlas_files

        return atlas_files(
            self._charted(), catalogue.topics(), catalogue.references(), around=around, processes=processes
        )

    def _charted(self) -> list[Charted]:
        from theodolite.report.atlas import Charted

        return [Charted(result.verdict, result.broken, *_written(result.verdict.law)) for result in self.results]

    def document(self) -> list[dict[str, Any]]:
        """What `json` writes."""
        return [_document(result) for result in self.results]


def _written(law: Law) -> tuple[str, str]:
    """What the file of a law says beyond its first line, and its code; of a law without a file nothing."""
    found = next((entry for entry in catalogue.entries() if entry.name == law.name), None)
    if found is None:
        return "", ""
    return found.docstring.partition("\n")[2].strip(), found.path.read_text(encoding="utf-8")


def _document(result: Checked) -> dict[str, Any]:
    verdict, law = result.verdict, result.verdict.law
    record = {
        "law": law.name,
        "topic": law.topic,
        "claim": law.claim,
        "size": verdict.size,
        "holds": verdict.holds,
        "resolution": verdict.resolution,
        "observed": law.observed,
        "readings": [row_of(reading) for reading in verdict.readings],
        "breaks": dict(result.breaks),
    }
    wrong = [row_of(reading) for reading in verdict.refuted]
    return record | ({"erratum": law.erratum, "refuted": wrong} if law.erratum else {})
