"""An instrument: a question asked of a subject, answered by readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from theodolite.core.question import Question

if TYPE_CHECKING:
    from theodolite.core.reading import Reading
    from theodolite.core.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Instrument(Question):
    """A question about a model. ``read(subject)`` yields readings and may use only what ``needs`` names.

    ``finds(subject)`` says, without a pass over the data, whether there is anything to measure; it is called before the
    time is estimated.
    """

    read: Callable[[Subject], Iterable[Reading]]
    finds: Callable[[Subject], bool] | None = None
