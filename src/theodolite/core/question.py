"""A question: what instruments, looks and families of estimators have in common; and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from theodolite.core.checks import InputError

if TYPE_CHECKING:
    from theodolite.core.reading import Reading
    from theodolite.core.subject import Subject

Need = Literal["weights", "model", "data", "loss", "lr", "optimizer", "validation", "origin", "adapter", "run"]
Cost = Literal["free", "forward", "backward", "hvp", "train"]
Sight = Literal["features", "forward", "gradient", "product"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, what a subject must have for it, what the answer costs, and the ``laws`` it rests on.

    ``cost`` is the dearest thing done: nothing beyond reading weights, forward passes, gradients, Hessian-vector products,
    or training. ``of_weights`` names what is to be computed from each weight while it is in memory. ``sees`` maps each kind
    of pass that it needs to the least number of samples passed, all passes together, for which it still answers: the
    ``features`` behind all layers (one visit, shared by all instruments), ``forward`` passes of its own, ``gradient``s,
    and ``product``s with the Hessian.
    """

    question: str
    cost: Cost
    needs: AbstractSet[Need] = frozenset()
    laws: tuple[str, ...] = ()
    of_weights: tuple[str, ...] = ()
    sees: Mapping[Sight, int] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        unknown = (set(self.needs) - set(get_args(Need))) | (set(self.sees) - set(get_args(Sight)))
        if unknown or self.cost not in get_args(Cost):
            raise InputError(
                f"expected needs among {get_args(Need)} and a cost among {get_args(Cost)}, "
                f"got {sorted(unknown) or self.cost}; correct the file that asks {self.question!r}"
            )

    def missing(self, subject: Subject) -> tuple[str, ...]:
        """What this question needs and the subject has not."""
        return tuple(sorted(need for need in self.needs if not subject.has(need)))


@dataclass(frozen=True)
class Answer:
    """The readings that answer a question, and how long they took."""

    question: Question
    readings: tuple[Reading, ...]
    seconds: float = 0.0

    @property
    def unknown(self) -> int:
        """How many readings have an error that exceeds their number: not one digit of them is known."""
        return sum(reading.stderr > abs(reading.measured) for reading in self.readings)


@dataclass(frozen=True)
class Skipped:
    """An instrument that was not read, and why."""

    instrument: str
    reason: str
