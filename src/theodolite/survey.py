"""Many instruments, one subject: each instrument whose needs are met is read, the others are skipped with a reason."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from theodolite import catalogue
from theodolite.files import plain, write_atomically
from theodolite.instrument import Answer, Cost, Skipped
from theodolite.parallel import Backend, completed

if TYPE_CHECKING:
    from theodolite.reading import Reading
    from theodolite.subject import Subject


@dataclass(frozen=True)
class Survey:
    """The readings of one subject, in any form a person or a program may want them."""

    subject: str
    answers: tuple[Answer, ...]
    skipped: tuple[Skipped, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Every reading of every instrument."""
        return tuple(reading for answer in self.answers for reading in answer.readings)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading."""
        return [
            {"instrument": answer.instrument.name, "quantity": r.quantity, "where": r.where, "measured": r.measured,
             "stderr": r.stderr, "expected_low": r.expected.low if r.expected else None,
             "expected_high": r.expected.high if r.expected else None, "status": r.status, "meaning": r.meaning}
            for answer in self.answers for r in answer.readings
        ]  # fmt: skip

    def text(self, width: int = 120) -> str:
        """The table as plain text."""
        from theodolite.report.text import as_text, survey_table

        return as_text(survey_table(self.answers, self.skipped), width=width)

    def html(self, path: str | Path | None = None) -> str:
        """The whole page; with ``path`` it is also written there."""
        from theodolite.report.html import survey_page

        page = survey_page(self.subject, self.answers, self.skipped, self.facts)
        if path is not None:
            write_atomically(path, page)
        return page

    def json(self, path: str | Path | None = None) -> str:
        """One JSON document; numbers that are not finite become null."""
        document = {"subject": self.subject, "facts": dict(self.facts), "readings": self.rows(),
                    "skipped": [asdict(skipped) for skipped in self.skipped]}  # fmt: skip
        text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            write_atomically(path, text + "\n")
        return text

    def frame(self) -> Any:
        """A pandas DataFrame of `rows`."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("expected pandas for a frame, got none; pip install 'theodolite[pandas]'") from error
        return pandas.DataFrame(self.rows())

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from theodolite.report.html import survey_fragment

        return survey_fragment(self.subject, self.answers, self.skipped, self.facts)


def survey(
    target: Subject | str | Path | Any,
    *,
    instruments: Iterable[str] = (),
    cost: Cost = "train",
    jobs: int = 1,
    backend: Backend = "loky",
    **facts: Any,
) -> Survey:
    """Read every instrument that applies, or those named, up to a ``cost``.

    ``target`` is a Subject, an nn.Module or a path; ``facts`` are the other fields of `Subject` (data, loss, lr, ...).
    With several ``jobs`` the subject is sent to worker processes.
    """
    started = time.perf_counter()
    subject = subject_of(target, **facts)
    names = tuple(catalogue.instrument(name).name for name in instruments) or catalogue.instrument_names()
    ready, skipped = [], []
    for name in sorted(names, key=lambda name: get_args(Cost).index(catalogue.instrument(name).cost)):
        reason = _reason_to_skip(name, subject, cost)
        if reason:
            skipped.append(Skipped(name, reason))
        else:
            ready.append(name)
    results: list[Answer | Skipped | None] = [None] * len(ready)
    from theodolite.report.progress import tracked

    work = completed(_answer, [(name, subject) for name in ready], jobs=jobs, backend=backend)
    for index, result in tracked(work, total=len(ready), label="reading instruments"):
        results[index] = result
    answers = tuple(result for result in results if isinstance(result, Answer))
    skipped += [result for result in results if isinstance(result, Skipped)]
    return Survey(subject.name, answers, tuple(skipped), _facts(subject, time.perf_counter() - started))


def read(name: str, target: Subject | Any, **facts: Any) -> tuple[Reading, ...]:
    """One instrument's readings of a subject; errors are raised, not collected.

    >>> import torch, theodolite as th
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
    >>> readings = th.read("initialisation", model)
    """
    from theodolite.state import untouched

    subject, chosen = subject_of(target, **facts), catalogue.instrument(name)
    missing = chosen.missing(subject)
    if missing:
        raise ValueError(f"expected a subject with {', '.join(missing)} for {name}, got none; pass them to Subject")
    with untouched(subject.model):
        return tuple(chosen.read(subject))


def subject_of(target: Any, **facts: Any) -> Subject:
    """A Subject from what people pass: a Subject, a module, or the path of a checkpoint."""
    from theodolite import load
    from theodolite.subject import Subject

    if isinstance(target, Subject):
        if facts:
            raise TypeError(f"expected {', '.join(facts)} inside the Subject, got them beside it; pass them to Subject")
        return target
    if isinstance(target, str | Path):
        return load.target(str(target), **facts)
    return Subject(target, **facts)


def _reason_to_skip(name: str, subject: Subject, cost: Cost) -> str:
    chosen = catalogue.instrument(name)
    missing = chosen.missing(subject)
    if missing:
        return f"needs {', '.join(missing)}, which this subject does not have"
    order = get_args(Cost)
    return f"costs {chosen.cost}, more than {cost}" if order.index(chosen.cost) > order.index(cost) else ""


def _answer(name: str, subject: Subject) -> Answer | Skipped:
    started = time.perf_counter()
    try:
        readings = read(name, subject)
    except Exception as error:  # one instrument that fails must not lose the others
        return Skipped(name, f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}")
    if not readings:
        return Skipped(name, "found nothing in this subject that it could read")
    return Answer(catalogue.instrument(name), readings, time.perf_counter() - started)


def _facts(subject: Subject, seconds: float) -> dict[str, str]:
    import torch

    from theodolite.version import __version__

    sizes = [int(torch.Size(weight.shape).numel()) for weight in subject.weights.values()]
    kinds = sorted({str(weight.dtype).removeprefix("torch.") for weight in subject.weights.values()})
    facts = {"parameters": f"{sum(sizes):,} in {len(sizes)} tensors ({', '.join(kinds)})"}
    if subject.model is not None:
        facts["device"] = str(next((p.device for p in subject.model.parameters()), "cpu"))
    if subject.data is not None:
        facts["data"] = f"first batch {subject.data.first().shapes()}"
    if subject.lr is not None:
        facts["learning rate"] = f"{subject.lr:g}"
    versions = f"theodolite {__version__}, torch {torch.__version__}"
    return {**facts, "time": f"{seconds:.1f} s", "made with": versions}
