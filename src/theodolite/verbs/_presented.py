"""What can be shown: as a table, a page, JSON, a sheet or a frame, each written once for every verb's result."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from theodolite.core.checks import MissingPackageError
from theodolite.core.reading_table import COLUMNS, csv_text, row_of
from theodolite.io.documents import stamped
from theodolite.io.files import json_ready, json_text, write_atomically

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.core.question import Answer, Skipped
    from theodolite.core.reading import Reading
    from theodolite.report.opening import Opening
    from theodolite.verbs.diagnosis import Diagnosis


class Presentable(ABC):
    """A result gives its ``rows``, its ``table`` for the terminal and its ``document``; the rest is here."""

    columns: ClassVar[tuple[str, ...]] = ("instrument", *COLUMNS)
    kind: ClassVar[str] = ""  # of document, where there is a schema of it

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading."""

    @abstractmethod
    def table(self) -> RenderableType:
        """For the terminal."""

    @abstractmethod
    def document(self) -> Any:
        """What `json` writes."""

    @property
    def title(self) -> str:
        """What its page is called: what it is, unless it says more."""
        return " ".join(re.findall("[A-Z][a-z]*", type(self).__name__)).capitalize()

    def page(self) -> str:
        """One HTML document that needs nothing beside it: the table, unless there is more to show."""
        from theodolite.report.rendering import document_page

        return document_page(self.title, f"<h1>{escape(self.title)}</h1><pre>{escape(self.text())}</pre>")

    def text(self, width: int = 120) -> str:
        """The table as plain text."""
        from theodolite.report.text import as_text

        return as_text(self.table(), width=width)

    def html(self, path: str | Path | None = None) -> str:
        """The whole page; with ``path`` it is also written there."""
        page = self.page()
        if path is not None:
            write_atomically(path, page)
        return page

    def json(self, path: str | Path | None = None) -> str:
        """One JSON document; numbers that are not finite become null."""
        text = json_text(json_ready(stamped(self.kind, self.document())))
        if path is not None:
            write_atomically(path, text + "\n")
        return text

    def csv(self, path: str | Path) -> Path:
        """The rows as a table for spreadsheets."""
        return write_atomically(path, csv_text(self.rows(), self.columns))

    def frame(self) -> Any:
        """A pandas DataFrame of `rows`."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackageError(
                "expected pandas for a frame, got none; pip install 'theodolite[pandas]'"
            ) from error
        return pandas.DataFrame(self.rows(), columns=list(self.columns))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text())}</pre>"


@dataclass(frozen=True)
class Sheet:
    """What a page of answers shows."""

    title: str
    answers: tuple[Answer, ...]
    skipped: tuple[Skipped, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class PresentableAnswers(Presentable):
    """A result that is the answers to several questions."""

    @abstractmethod
    def sheet(self) -> Sheet:
        """Title, answers, what was skipped, and the facts beside them."""

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Every reading of every answer."""
        return tuple(reading for answer in self.sheet().answers for reading in answer.readings)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading."""
        answers = self.sheet().answers
        return [{"instrument": a.question.name, **row_of(reading)} for a in answers for reading in a.readings]

    def table(self, *, detailed: bool = True) -> RenderableType:
        """For the terminal: every reading, or the diagnosis and one row a quantity."""
        from theodolite.report.survey_text import survey_summary
        from theodolite.report.text import survey_table

        sheet = self.sheet()
        if detailed:
            told = survey_table(sheet.answers, sheet.skipped)
        else:
            told = survey_summary(sheet.answers, sheet.skipped, diagnosis=self.diagnosis)
        if "answers" not in sheet.facts:
            return told
        from rich.console import Group

        return Group(told, "", f"Its answers are {sheet.facts['answers']}.")

    @property
    def diagnosis(self) -> Diagnosis | None:
        """What is wrong, how that is known, and what to type; None where nothing of the kind is asked."""
        return None

    def opening(self) -> Opening:
        """What its page shows first."""
        from theodolite.report.opening import Opening

        return Opening(self.diagnosis)

    def page(self) -> str:
        """One HTML document that needs nothing beside it."""
        from theodolite.report.html import survey_page

        sheet = self.sheet()
        return survey_page(
            sheet.title, sheet.answers, sheet.skipped, sheet.facts, opening=self.opening(), laws=laws_of(sheet.answers)
        )

    def _repr_html_(self) -> str:
        from theodolite.report.html import survey_fragment

        sheet = self.sheet()
        return survey_fragment(sheet.title, sheet.answers, sheet.skipped, sheet.facts, opening=self.opening())


def laws_of(answers: Sequence[Answer]) -> dict[str, str]:
    """The laws that the answers rest on, each in one line."""
    from theodolite import catalogue
    from theodolite.report.unicode_math import unicode_prose

    known = {entry.name: entry for entry in catalogue.entries() if entry.kind == "law"}
    named = dict.fromkeys(law for answer in answers for law in answer.question.laws)
    return {name: unicode_prose(known[name].summary) for name in named if name in known}
