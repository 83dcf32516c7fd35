"""An instrument: a question asked of a subject, answered by readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from theodolite.core.reading import Reading
    from theodolite.core.subject import Subject

Need = Literal["weights", "model", "data", "loss", "lr", "origin"]
Cost = Literal["free", "forward", "backward", "hvp", "train"]


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """``read(subject)`` yields readings; it may use only what ``needs`` names, and rests on the ``laws`` named.

    ``cost`` is the dearest thing it does: nothing beyond reading weights, forward passes, gradients, Hessian-vector
    products, or training.
    """

    question: str
    read: Callable[[Subject], Iterable[Reading]]
    needs: AbstractSet[Need]
    cost: Cost
    laws: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        unknown = set(self.needs) - set(get_args(Need))
        if unknown or self.cost not in get_args(Cost):
            raise ValueError(
                f"expected needs among {get_args(Need)} and a cost among {get_args(Cost)}, "
                f"got {sorted(unknown) or self.cost}; mend the instrument's file"
            )

    def missing(self, subject: Subject) -> tuple[str, ...]:
        """What this instrument needs and the subject has not."""
        return tuple(sorted(need for need in self.needs if not subject.has(need)))


@dataclass(frozen=True)
class Answer:
    """What an instrument read off a subject, and how long it took."""

    instrument: Instrument
    readings: tuple[Reading, ...]
    seconds: float = 0.0


@dataclass(frozen=True)
class Skipped:
    """An instrument that was not read, and why."""

    instrument: str
    reason: str
