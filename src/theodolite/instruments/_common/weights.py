"""One pass over the weights: all that was asked of a tensor is computed while it is in memory, and kept by its name.

What can be asked under a name, such as ``spectra``, is the `WeightPart` called ``of_weight`` in the file ``spectra.py`` here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from theodolite.core.subject import Subject
from theodolite.io.store import Stored
from theodolite.io.weights import Weight, owners_of, readable

if TYPE_CHECKING:
    from theodolite.io.store import Arrays


@dataclass(frozen=True)
class InHand:
    """A weight whose tensor is in memory, perhaps with the one from before training, and where it belongs."""

    name: str
    tensor: Tensor | None
    start: Tensor | None
    owner: nn.Module | None
    shapes: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class WeightPart:
    """``find`` gives JSON's own types and arrays. A change of it that changes them has another ``version``."""

    find: Callable[[InHand], tuple[Any, Arrays]]
    version: int
    uses_start: bool = False


def weighed(subject: Subject, *asked: str) -> dict[str, dict[str, Stored]]:
    """What each part found of each weight. A tensor is read at most once, and not at all where everything is known.

    Tensors that cannot be read, or of which a part cannot be computed, are put into the subject's faults.
    """
    parts = {name: _part(name) for name in asked} | {"": _FINITE}
    names = tuple(dict.fromkeys((*subject.weights, *(subject.origin or {}))))
    known = {(part, name): _known(subject, part, parts[part], name) for name in names for part in parts}
    waiting = [
        name
        for name in names
        if name not in subject.faults
        and any(known[part, name] is None for part in parts if _applies(subject, parts[part], name))
    ]
    with_starts = any(part.uses_start for part in parts.values())
    for done, held in enumerate(_in_hand(subject, waiting, with_starts=with_starts)):
        subject.progress("reading weights", done, len(waiting))
        for part in parts:
            if known[part, held.name] is None and _applies(subject, parts[part], held.name):
                known[part, held.name] = _computed(subject, part, parts[part], held)
    subject.progress("reading weights", len(waiting), len(waiting))
    return {part: {name: found for name in names if (found := known[part, name]) is not None} for part in asked}


def _part(name: str) -> WeightPart:
    found: WeightPart = importlib.import_module(f"theodolite.instruments._common.{name}").of_weight
    return found


_FINITE = WeightPart(lambda held: (True, {}), version=1)


def _applies(subject: Subject, part: WeightPart, name: str) -> bool:
    return name in subject.weights or part.uses_start


def _in_hand(subject: Subject, names: list[str], *, with_starts: bool) -> Iterator[InHand]:
    """The tensors of each name together, the next ones read while these are worked on."""
    owners, shapes = owners_of(subject.model), {name: weight.shape for name, weight in subject.weights.items()}
    sides = {"tensor": subject.weights, "start": (subject.origin or {}) if with_starts else {}}
    places: dict[int, tuple[str, str]] = {}
    queue: dict[str, Weight] = {}
    for name in names:
        for side, weights in sides.items():
            if name in weights:
                copy = queue[f"{side} {name}"] = replace(
                    weights[name]
                )  # an object of its own: its place is known by it
                places[id(copy)] = (name, side)
    held: dict[str, Tensor] = {}
    present = ""
    for weight, tensor in readable(queue, subject.faults):
        name, side = places[id(weight)]
        if name != present and held:
            yield InHand(present, held.get("tensor"), held.get("start"), owners.get(present), shapes)
            held = {}
        present, held[side] = name, tensor
        del tensor
    if held:
        yield InHand(present, held.get("tensor"), held.get("start"), owners.get(present), shapes)


def _known(subject: Subject, name: str, part: WeightPart, weight: str) -> Stored | None:
    return subject.store.get(f"weight {weight}: {name}", _fingerprint(subject, part, weight)[0])


def _computed(subject: Subject, name: str, part: WeightPart, held: InHand) -> Stored | None:
    fingerprint, durable = _fingerprint(subject, part, held.name)
    if held.tensor is None and not (part.uses_start and held.start is not None):
        return None
    try:
        value, arrays = part.find(held)
    except Exception as error:  # one matrix that cannot be decomposed must not lose the others
        words = " ".join(str(error).split()) or type(error).__name__
        subject.faults[held.name] = f"expected {name} of {held.name}, got {words}"
        return None
    key = f"weight {held.name}: {name}"
    subject.store.put(key, value, fingerprint=fingerprint, arrays=arrays, durable=durable)
    return subject.store.get(key, fingerprint)


def _fingerprint(subject: Subject, part: WeightPart, name: str) -> tuple[str, bool]:
    """What the part depends on, and whether that outlives the process: a file does, a model in memory does not."""
    found = [subject.weights.get(name), (subject.origin or {}).get(name) if part.uses_start else None]
    words = [str(part.version), *("none" if weight is None else weight.source or _version(weight) for weight in found)]
    return "|".join(words), all(weight.source for weight in found if weight is not None)


def _version(weight: Weight) -> str:
    """Of a tensor in memory, which costs nothing to read, how often it was changed in place."""
    return f"change {weight.read()._version}"
