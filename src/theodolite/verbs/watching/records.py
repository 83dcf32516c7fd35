"""What a watch read at one step, and all of them in a store."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from theodolite.core.reading import Reading
from theodolite.core.reading_table import known_number, reading_of, row_of
from theodolite.io.store import Store
from theodolite.theory.dynamics import Moment

THINNED = "thinned"
"""The fact of a look that was thinned: 1 where what a level adds to a cheap look was left out, 2 where the gradient was too."""

_READ_WITH_THE_GRADIENT = (
    "gradient",
    "trust",
    "trust_noise",
    "predicted",
    "change",
    "change_noise",
    "step_length",
    "best_factor",
)
_READ_IN_WHOLE_LOOKS = (*_READ_WITH_THE_GRADIENT, "sharpness", "sharpness_error", "edge", "drift", "alive")


@dataclass(frozen=True)
class Record:
    """What was read at one step: readings by the name of the look, what was not read and why, the phase so far, and alarms.

    ``seconds`` this look took; ``watching`` and ``training`` are the seconds spent on looks and between them so far.
    """

    step: int
    lr: float | None = None
    momentum: float = 0.0
    readings: tuple[tuple[str, Reading], ...] = ()
    notes: tuple[str, ...] = ()
    phase: str = "undecided"
    reason: str = ""
    seconds: float = 0.0
    watching: float = 0.0
    training: float = 0.0
    facts: Mapping[str, float] = field(default_factory=dict)
    alarms: tuple[str, ...] = ()

    @cached_property
    def moment(self) -> Moment | None:
        """What of it decides the phase, where the loss could be read."""
        if "loss" not in self.facts:
            return None
        facts = self.facts
        return Moment(
            self.step,
            facts["loss"],
            None if math.isnan(facts.get("edge", 0.0)) else facts.get("sharpness"),
            facts.get("sharpness_error", 0.0),
            self.lr,
            self.momentum,
            _known(facts.get("alive")),
            _known(facts.get("drift")),
            _known(facts.get("edge")),
            _known(facts.get("peak_loss")),
            facts.get("bounce", 1.0),
        )

    def value(self, quantity: str) -> float | None:
        """The measured value of a quantity, where it was read."""
        return next((reading.measured for _, reading in self.readings if reading.quantity == quantity), None)

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a reading."""
        head = {"step": self.step, "lr": self.lr, "momentum": self.momentum, "phase": self.phase}
        return [{**head, "instrument": look, **row_of(reading)} for look, reading in self.readings]


def standing(records: Iterable[Record]) -> list[Record]:
    """The same records, where thinned ones have what was read last of the facts that they left out.

    >>> whole, thin = Record(0, facts={"loss": 2.0, "sharpness": 5.0}), Record(9, facts={"loss": 1.0, THINNED: 1.0})
    >>> dict(standing([whole, thin])[-1].facts)
    {'sharpness': 5.0, 'loss': 1.0, 'thinned': 1.0}
    """
    found: list[Record] = []
    for record in records:
        if THINNED in record.facts and found:
            last = found[-1].facts
            kept = {n: v for n, v in last.items() if n in _READ_IN_WHOLE_LOOKS or n.startswith("gradient of ")}
            record = replace(record, facts={**kept, **record.facts})
        found.append(record)
    return found


def last_standing(records: Sequence[Record]) -> list[Record]:
    """The last of `standing` records, from the few that tell: one, or none where there is none."""
    telling: list[Record] = []
    for record in reversed(records):
        if not telling or record.facts.get(THINNED, 0.0) < min(r.facts.get(THINNED, 0.0) for r in telling):
            telling.append(record)
        if THINNED not in record.facts:
            break
    return standing(reversed(telling))[-1:]


def thinned_note(names: Iterable[str], why: str) -> str:
    """What a thinned look says of itself."""
    return f"{THINNED}: {', '.join(names)} left out of this measurement: {why}"


def left_out(record: Record) -> tuple[str, ...]:
    """The looks that a thinned one left out.

    >>> left_out(Record(0, notes=(thinned_note(["sharpness", "collapse"], "too dear"),)))
    ('sharpness', 'collapse')
    """
    head = f"{THINNED}: "
    note = next((note for note in record.notes if note.startswith(head)), "")
    return tuple(note[len(head) :].split(" left out ")[0].split(", ")) if note else ()


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


class StoredRecords:
    """The records of a run, by step; without a folder they are forgotten."""

    def __init__(self, folder: Path | None) -> None:
        self.store = Store(folder)

    def records(self) -> list[Record]:
        """All of them, in the order of their steps."""
        stored = [self.store.get(key) for key in self.store if key.startswith(_KEY)]
        return sorted((_record(found.value) for found in stored if found), key=lambda record: record.step)

    def add(self, record: Record) -> None:
        """One more record, on disk when this returns."""
        plain = {name: getattr(record, name) for name in _PLAIN}
        rows = [{"instrument": look, **row_of(reading)} for look, reading in record.readings]
        self.store.put(f"{_KEY}{record.step}", {**plain, "readings": rows})

    def drop(self, steps: Iterable[int]) -> None:
        """Forget the records of these steps."""
        self.store.drop({f"{_KEY}{step}" for step in steps})


_KEY = "look at step "
_PLAIN = ("step", "lr", "momentum", "notes", "phase", "reason", "seconds", "watching", "training", "facts", "alarms")


def _record(value: Mapping[str, Any]) -> Record:
    readings = tuple((row["instrument"], reading_of(row)) for row in value["readings"])
    facts = {name: known_number(number) for name, number in value["facts"].items()}
    told = {name: tuple(value.get(name, ())) for name in ("notes", "alarms")}
    return Record(**{**value, **told, "readings": readings, "facts": facts})
