"""One pass over the weights: all that was asked of a tensor is computed while it is in memory, and kept by its name.

What can be asked under a name, such as ``spectra``, is the `WeightPart` called ``of_weight`` in the file ``spectra.py`` here;
``weight_facts``, which a diagnosis rests on, is that of `theodolite.evidence.weights`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from theodolite.core.subject import Subject
from theodolite.evidence.weights import of_weight
from theodolite.io.files import said
from theodolite.io.overlapped_work import MOST_CORES, memory_given_back, one_core_each, overlapped, spare_cores
from theodolite.io.process_pool import forked, may_fork
from theodolite.io.store import Stored
from theodolite.io.weight_parts import InHand, WeightPart
from theodolite.io.weights import Weight, owners_of, readable

if TYPE_CHECKING:
    from theodolite.io.store import Arrays
    from theodolite.io.workers import Backend

    _Result = tuple[str, dict[str, tuple[Any, Arrays]], str]

OFTEN = 1 << 26
"""Entries read after which freed memory is given back."""

GROUP, SENDING = 1 << 20, 1 << 12
"""Entries that one message to a worker asks for, and what the sending of one tensor counts beside them."""

ALONE, NARROW, WORTH_THREADS = 1 << 24, 1024, 1 << 22
"""Entries above which a tensor is worked on alone, by all cores, and the smaller side from which on; and how many entries in all
are worth several threads."""


def weighed(subject: Subject, *asked: str, jobs: int = 1, backend: Backend = "loky") -> dict[str, dict[str, Stored]]:
    """What each part found of each weight. A tensor is read at most once, and not at all where everything is known.

    The tensors of a checkpoint can be shared out among workers, which read them themselves. Tensors that cannot be read,
    or of which a part cannot be computed, are put into the subject's faults.
    """
    parts = {name: _part(name) for name in asked} | {"": _FINITE}
    names = tuple(dict.fromkeys((*subject.weights, *(subject.origin or {}))))
    known = {(part, name): _known(subject, part, parts[part], name) for name in names for part in parts}
    wanted = {
        name: tuple(part for part in parts if known[part, name] is None and _applies(subject, parts[part], name))
        for name in names
        if name not in subject.faults
    }
    waiting = {name: todo for name, todo in wanted.items() if todo}
    apart = subject.model is None and (jobs != 1 or backend != "loky")
    found = _from_workers(subject, waiting, jobs, backend) if apart else _from_here(subject, waiting)
    since = 0
    try:
        for done, (name, results, fault) in enumerate(found):
            subject.progress("reading weights", done, len(waiting))
            if fault:
                subject.faults[name] = fault
            for part, (value, arrays) in results.items():
                known[part, name] = _put(subject, part, name, value, arrays)
            since += math.prod(subject.weights[name].shape) if name in subject.weights else 0
            if since > OFTEN:
                memory_given_back()
                since = 0
    finally:
        subject.store.flush()
    subject.progress("reading weights", len(waiting), len(waiting))
    return {part: {name: stored for name in names if (stored := known[part, name]) is not None} for part in asked}


def seen_before(subject: Subject, name: str) -> dict[str, Any]:
    """What a part has found in a pass that was made, by tensor; nothing is read for it."""
    known = {weight: _known(subject, name, _part(name), weight) for weight in subject.weights}
    return {weight: stored.value for weight, stored in known.items() if stored is not None}


def _from_here(subject: Subject, waiting: Mapping[str, tuple[str, ...]]) -> Iterator[_Result]:
    device = next((weight.device for weight in subject.weights.values()), "cpu")
    if subject.model is None and device != "cpu":
        yield from overlapped(_found_apart, _orders(subject, waiting), device=device)
        return
    shared = _shared_out(subject, waiting)
    if shared:
        with one_core_each():
            # else the largest comes last, alone
            orders = sorted(_orders(subject, shared), key=lambda order: -order.entries)
            cores = min(spare_cores(), MOST_CORES)
            if may_fork():
                yield from forked(_found_apart, orders, processes=cores)
            else:
                yield from overlapped(_found_apart, orders, threads=cores)
    alone = {name: todo for name, todo in waiting.items() if name not in shared}
    with_starts = any(_part(part).uses_start for todo in alone.values() for part in todo)
    for held in _in_hand(subject, list(alone), with_starts=with_starts):
        yield _found(held, alone[held.name])


def _shared_out(subject: Subject, waiting: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The tensors that are worked on a core each: those of files that are too small to keep several cores busy with one."""
    if subject.model is not None or spare_cores() < 2:
        return {}
    shapes = {name: subject.weights[name].shape for name in waiting if name in subject.weights}
    small = {name for name, shape in shapes.items() if math.prod(shape) <= ALONE and _side(shape) <= NARROW}
    if sum(math.prod(shapes[name]) for name in small) < WORTH_THREADS:
        return {}
    return {name: todo for name, todo in waiting.items() if name in small}


def _side(shape: tuple[int, ...]) -> int:
    """The smaller side of the tensor as a matrix."""
    return min(shape[0], math.prod(shape[1:])) if shape else 0


def _from_workers(
    subject: Subject, waiting: Mapping[str, tuple[str, ...]], jobs: int, backend: Backend
) -> Iterator[_Result]:
    """Groups of tensors, the largest first; what a worker finds of a tensor is here before the next group is asked for."""
    from theodolite.io.workers import completed

    tasks = [(group,) for group in _groups(_orders(subject, waiting))]
    for _, results in completed(_found_by_worker, tasks, jobs=jobs, backend=backend):
        yield from results


def _orders(subject: Subject, waiting: Mapping[str, tuple[str, ...]]) -> list[_Order]:
    """What is to be done with each tensor, for whoever reads it himself."""
    origin = subject.origin or {}
    modules: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, weight in subject.weights.items():
        modules.setdefault(name.rpartition(".")[0], {})[name] = weight.shape
    return [
        _Order(name, subject.weights.get(name), origin.get(name), todo, modules.get(name.rpartition(".")[0], {}))
        for name, todo in waiting.items()
    ]


@dataclass(frozen=True)
class _Order:
    """What a worker is to do: the weight, the one from before training, and the parts that are asked of them."""

    name: str
    weight: Weight | None
    start: Weight | None
    parts: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def entries(self) -> int:
        """How much there is to read."""
        return sum(math.prod(weight.shape) for weight in (self.weight, self.start) if weight is not None)


def _groups(orders: list[_Order]) -> list[list[_Order]]:
    """Large tensors alone, small ones together, so that sending is cheap beside the work."""
    groups: list[list[_Order]] = []
    room = 0
    for order in sorted(orders, key=lambda order: -order.entries):  # a stable sort: equal on every run
        cost = order.entries + SENDING
        if not groups or cost > room:
            groups.append([])
            room = GROUP
        groups[-1].append(order)
        room -= cost
    return groups


def _found_by_worker(orders: list[_Order]) -> list[_Result]:
    return [_found_apart(order) for order in orders]


def _found_apart(order: _Order) -> _Result:
    faults: dict[str, str] = {}
    sides = {"tensor": order.weight, "start": order.start if any(_part(p).uses_start for p in order.parts) else None}
    there = {side: weight for side, weight in sides.items() if weight is not None}
    tensors = {}
    for side, weight in there.items():
        for _, tensor in readable({side: weight}, faults, arrays=True):
            tensors[side] = tensor
    if not tensors:
        return order.name, {}, next(iter(faults.values()), "")
    note = order.weight.note if order.weight is not None else ""
    held = InHand(order.name, tensors.get("tensor"), tensors.get("start"), None, order.shapes, note=note)
    name, results, fault = _found(held, order.parts)
    return name, results, next(iter(faults.values()), fault)


def _found(held: InHand, parts: tuple[str, ...]) -> _Result:
    """Each part's value and arrays, and what went wrong."""
    results: dict[str, tuple[Any, Arrays]] = {}
    fault = ""
    for name in parts:
        part = _part(name)
        if held.values is None and not (part.uses_start and held.first is not None):
            continue
        try:
            results[name] = part.find(held)
        except Exception as error:  # one matrix that cannot be decomposed must not lose the others
            fault = f"expected {name} of {held.name}, got {said(error, 240)}"
    return held.name, results, fault


@cache
def _part(name: str) -> WeightPart:
    if not name:
        return _FINITE
    if name == "weight_facts":
        return of_weight
    return importlib.import_module(f"theodolite.instruments._common.{name}").of_weight


def _is_there(held: InHand) -> tuple[Any, Arrays]:
    return True, {}


_FINITE = WeightPart(_is_there, version=1)


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
                # an object of its own: its place is known by it
                copy = queue[f"{side} {name}"] = replace(weights[name])
                places[id(copy)] = (name, side)

    def together(name: str, held: dict[str, Any]) -> InHand:
        note = subject.weights[name].note if name in subject.weights else ""
        return InHand(name, held.get("tensor"), held.get("start"), owners.get(name), shapes, note=note)

    held: dict[str, Any] = {}
    present = ""
    for weight, tensor in readable(queue, subject.faults, arrays=True):
        name, side = places[id(weight)]
        if name != present and held:
            yield together(present, held)
            held = {}
        present, held[side] = name, tensor
        del tensor
    if held:
        yield together(present, held)


def _known(subject: Subject, name: str, part: WeightPart, weight: str) -> Stored | None:
    return subject.store.get(f"weight {weight}: {name}", _fingerprint(subject, part, weight)[0])


def _put(subject: Subject, part: str, name: str, value: Any, arrays: Arrays) -> Stored | None:
    fingerprint, durable = _fingerprint(subject, _part(part), name)
    key = f"weight {name}: {part}"
    subject.store.put(key, value, fingerprint=fingerprint, arrays=arrays, durable=durable, soon=True)
    return subject.store.get(key, fingerprint)


def _fingerprint(subject: Subject, part: WeightPart, name: str) -> tuple[str, bool]:
    """What the part depends on, and whether that outlives the process: a file does, a model in memory does not."""
    found = [subject.weights.get(name), (subject.origin or {}).get(name) if part.uses_start else None]
    words = [str(part.version), *("none" if weight is None else weight.source or _version(weight) for weight in found)]
    return "|".join(words), all(weight.source for weight in found if weight is not None)


def _version(weight: Weight) -> str:
    """Of a tensor in memory, which costs nothing to read, how often it was changed in place."""
    try:
        return f"change {weight.read()._version}"
    except ValueError:  # a tensor that only says why it cannot be read
        return "unreadable"
