"""From a program that was written down to what a watch takes: a model as a function of batches, the batches, and the loss.

``by_samples``: one module call whose answer is compared with one target, so that batches can be cut and mixed and the task is
known. ``by_steps``: whatever else trains (several calls or modules, masks, graphs, episodes): a sample is then a whole step,
done again with its own constants.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.model_wrappers import bare_model
from theodolite.core.state import untouched
from theodolite.evidence.thresholds import PARTS, SAME
from theodolite.verbs.running.tape import Constant, Made, Program, mapped, slots_of, tensors_of
from theodolite.verbs.running.tape import Parameter as Trained

LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "poisson_nll_loss",
)
"""Functions of torch.nn.functional whose first two arguments are an output and a target; loss modules call them too."""

_DROPPED = ("num_items_in_batch",)
"""Arguments of a model that are about the whole batch, and would be wrong for a part of it."""

CLOSE = 1e-3
"""By how much the loss of a batch may differ from those of its halves put together."""

Inner = Sequence[tuple[Any, tuple[Any, ...], Mapping[str, Any], Tensor]]
"""Calls of losses that were seen within modules: function, arguments, keywords and value."""


class Watched(nn.Module):
    """The model of a script as a function of one batch by names: ``arg0``, ``arg1``, ... are the tensors that it is given.

    It answers the tensors that the loss is given; what does not follow the batch (a hidden state, a table) stays as it was.
    Samples come first, also where the model has them second (``turned``: numbers of inputs, places of answers).
    """

    def __init__(
        self,
        model: nn.Module,
        args: Any,
        keywords: Any,
        fixed: Mapping[int, Tensor],
        places: Sequence[int],
        turned: tuple[Sequence[int], Sequence[int]] = ((), ()),
    ) -> None:
        super().__init__()
        self.model, self._call, self._fixed, self._places = model, (args, keywords), dict(fixed), tuple(places)
        self._turned = turned
        self.training = model.training  # its parts keep the modes that the script gave them

    def forward(self, **batch: Any) -> Any:
        """Call the model as the script does."""

        def given(slot: Constant) -> Any:
            value = batch.get(f"arg{slot.number}", self._fixed.get(slot.number))
            return _turned(value, slot.number in self._turned[0]) if isinstance(value, Tensor) else value

        args, keywords = (mapped(part, given, _is_constant) for part in self._call)
        found = list(tensors_of(self.model(*args, **keywords)))
        size = len(next(iter(batch.values()), ()))
        found = [_samples_first(t, size) if place in self._turned[1] else t for place, t in enumerate(found)]
        return found[self._places[0]] if len(self._places) == 1 else tuple(found[place] for place in self._places)


class Steps(nn.Module):
    """Whole steps of a script as samples: the answer to the numbers of some steps are their losses."""

    def __init__(self, parts: Sequence[nn.Module], parameters: Sequence[Tensor]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(bare_model(part) for part in parts)
        self.own = nn.ParameterList()
        for tensor in parameters:
            setattr(tensor, "_is_param", True)  # noqa: B010  a plain tensor that is trained is listed as one
            self.own.append(tensor)
        self._programs = Programs()
        self.training = all(part.training for part in self.parts)

    def forward(self, step: Tensor) -> Tensor:
        """The losses of these steps, done again."""
        return torch.stack([self._value(number) for number in step.reshape(-1).tolist()])

    def _value(self, number: int) -> Tensor:
        program, parts, own = self._programs[number]
        inner = any(call.name == "grad" for call in program.calls)  # a slope is part of the loss
        with torch.enable_grad() if inner else contextlib.nullcontext():
            found: Tensor = program.value([self.parts[n] for n in parts], [self.own[n] for n in own], program.constants)
        return found.reshape(())

    def add(self, program: Program) -> int | None:
        """One more step; its number, or None where it trains something else."""
        parts = [_place(bare_model(part), self.parts) for part in program.parts]
        own = [_place(tensor, self.own) for tensor in program.parameters]
        if None in (*parts, *own):
            return None
        self._programs.append((replace(program, outputs={}), parts, own))
        return len(self._programs) - 1

    def _done(self, number: int) -> tuple[Program, list[nn.Module], list[Tensor]]:
        """A step with the modules and tensors that it calls."""
        program, parts, own = self._programs[number]
        return program, [self.parts[n] for n in parts], [self.own[n] for n in own]

    def dealt_out(self) -> tuple[list[float], list[float], list[float]]:
        """Of the first steps, remembered the least: the loss, its comparison with targets, and that with targets dealt out anew.

        Targets are what a loss that torch has a name for, or an index into an answer, is given beside that answer.
        """
        whole: list[float] = []
        right: list[float] = []
        other: list[float] = []
        generator = torch.Generator().manual_seed(0)
        for number in range(min(PARTS, len(self._programs))):
            program, parts, own = self._done(number)
            compared = list(_compared(program))
            if len(compared) != 1:
                continue
            (root, target), constants = compared[0], list(program.constants)
            order = torch.randperm(len(constants[target]), generator=generator).to(constants[target].device)
            constants[target] = constants[target][order]
            part = replace(program, root=root)
            with untouched(self), torch.no_grad():
                whole.append(float(program.value(parts, own, program.constants)))
                right.append(float(part.value(parts, own, program.constants).mean()))
                other.append(float(part.value(parts, own, constants).mean()))
        return whole, right, other


def _compared(program: Program) -> Iterator[tuple[Made, int]]:
    """Where an answer is held against a constant whose rows are not all alike: what comes of it, and which constant it is."""
    for number in program.needed:
        call = program.calls[number]
        given = call.args[1] if len(call.args) > 1 else call.keywords.get("target")
        root = Made(number, 0)
        if call.name == "__getitem__" and isinstance(given, tuple) and len(given) == 2:
            given, root = given[1], program.root  # answers[range(n), targets]
        elif call.name not in LOSSES:
            continue
        if isinstance(given, Constant):
            target = program.constants[given.number]
            if target.ndim and len(target) > 1 and bool((target != target[:1]).any()):
                yield root, given.number


class Programs(list[Any]):
    """Steps that were written down; copies of a model share them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Programs:
        return self


@dataclass
class Probe:
    """What a watch is made of, how later steps become batches, and what was seen, in words."""

    model: nn.Module
    batch: Any
    loss: Callable[[Any, Any], Tensor]
    words: str
    batch_of: Callable[[Program], Any] = field(repr=False)
    size: int | None = None


def probe_of(program: Program, inner: Inner = ()) -> Probe:
    """The batches of samples where they can be cut and mixed, else whole steps."""
    for axis in (0, 1):
        for found in _by_samples(program, inner, axis):
            if _can_be_cut(found):
                return found
    return _by_steps(program)


def _by_steps(program: Program) -> Probe:
    model = Steps(program.parts, program.parameters)

    def batch_of(other: Program) -> Any:
        number = model.add(other)
        return None if number is None else (torch.tensor([number]), torch.tensor([float(number)]))

    calls = sum(call.part >= 0 for call in program.calls)
    words = f"loss of {_several(len(program.calls) - calls, 'operation')}"
    words += f" on {_several(calls, 'call')} of {_several(len(program.parts), 'module')}, done again step by step"
    return Probe(model, batch_of(program), _mean, words, batch_of)


def _by_samples(program: Program, inner: Inner, axis: int) -> Iterator[Probe]:
    """The ways in which a step is one call of a model and a loss of its answer and one target, the whole loss first.

    Samples lie along ``axis`` of the first input: recurrent networks have them second, behind the places of a sequence.
    """
    called = [number for number in program.needed if program.calls[number].part >= 0]
    if len(called) != 1 or any(
        True for _ in slots_of((program.calls[called[0]].args, program.calls[called[0]].keywords))
    ):
        return
    place, call = called[0], program.calls[called[0]]
    keywords = {name: value for name, value in call.keywords.items() if name not in _DROPPED}
    inputs = [slot.number for slot in _constants_in((call.args, keywords))]
    first = next((program.constants[n] for n in inputs if program.constants[n].ndim > axis), None)
    if first is None or first.is_sparse or not first.numel() or any(isinstance(s, Trained) for s in _trained_in(call)):
        return
    model = bare_model(program.parts[call.part])  # a look is on one process: the wrapper would wait for the others
    size = first.shape[axis]
    turned = [n for n in inputs if axis and program.constants[n].ndim > 1 and program.constants[n].shape[1] == size]
    follow = [n for n in inputs if n in turned or (program.constants[n].ndim and len(program.constants[n]) == size)]

    def built(loss: _Again, words: str) -> Probe:
        fixed = {n: program.constants[n] for n in inputs if n not in follow}
        watched = Watched(model, call.args, keywords, fixed, loss.places, (turned, loss.turned))

        def batch_of(other: Program) -> Any:
            if other.signature != program.signature:
                return None
            members = {f"arg{n}": _turned(other.constants[n], n in turned) for n in follow}
            count = len(members[f"arg{follow[0]}"])
            if any(len(member) != count for member in members.values()):
                return None
            target = loss.target_of(other, count)
            return None if target is None else {**members, "y": target}

        return Probe(watched, batch_of(program), loss, words, batch_of, size)

    answers = list(tensors_of(program.outputs[place]))
    if axis and (program.root.call == place or _is_scaled(program, place)):
        return
    if program.root.call == place or _is_scaled(program, place):
        for loss, name in _inner_losses(program, place, inner, answers):
            yield built(loss, f"loss {name}, which the model computes itself")
        end = program.root if program.root.call == place else _origin(program, place)
        yield built(_Own(program, place, (end.place,)), "whose loss the model computes itself")
        return
    second = {n for n, t in enumerate(answers) if axis and t.ndim > 1 and len(t) != size and _is_second(t, size)}
    for loss, words in _outer_losses(program, place, size):
        turned_answers = tuple(sorted(second.intersection(loss.places)))
        flat = tuple(n for n in turned_answers if answers[n].ndim < 2 or answers[n].shape[1] != size)
        yield built(replace(loss, turned=turned_answers, flat=flat), words)


def _outer_losses(program: Program, place: int, size: int) -> Iterator[tuple[_Again, str]]:
    """The loss as a function of answer and target: all of it, or the part of it that torch has a name for."""
    named = [n for n in program.needed if program.calls[n].name in LOSSES]
    alone = len(named) == 1 and not any(
        c.name in _REAL for c in (program.calls[n] for n in program.needed if n != place)
    )
    words = f"loss {program.calls[named[0]].name}" if alone else _loss_words(program, place, named)
    for root, told in [(program.root, words), *((Made(n, 0), f"loss {program.calls[n].name}") for n in named)]:
        whole = replace(program, root=root)
        rest = [n for n in whole.needed if n != place]
        if any(True for n in rest for _ in _trained_in(program.calls[n])):
            continue
        used = {s.number for n in rest for s in _constants_in((program.calls[n].args, program.calls[n].keywords))}
        follow = [n for n in used if (c := program.constants[n]).ndim and c.numel() >= size and c.numel() % size == 0]
        places = sorted({s.place for n in rest for s in _slots_in(program.calls[n]) if s.call == place})
        if len(follow) == 1 and places:
            part = "" if root == program.root or _is_multiple(program, root) else " (a part of what it minimizes)"
            plain = any(n in named for n in rest) and not any(program.calls[n].name in _REAL for n in rest)
            yield _Again(whole, place, tuple(places), follow[0], plain), told + part


_REAL = ("exp", "log", "sum", "pow", "square", "norm", "abs", "mm", "matmul", "logsumexp", "einsum")
"""Operations of a loss that is more than a named one with reshaped or scaled arguments."""


def _loss_words(program: Program, place: int, named: Sequence[int]) -> str:
    names = [program.calls[n].name for n in named]
    count = len([n for n in program.needed if n != place])
    return f"loss of {_several(count, 'operation')}" + (f" ({', '.join(dict.fromkeys(names))})" if names else "")


@dataclass
class _Again:
    """A loss that is done again as a function of the tensors of an answer and a target."""

    program: Program
    place: int
    places: tuple[int, ...]
    target: int = -1
    plain: bool = False  # one of the losses that torch has a name for, of the answer and the target themselves
    turned: tuple[int, ...] = ()  # answers that have their samples second, as the target has then
    flat: tuple[int, ...] = ()  # of those the ones in which places and samples are one axis

    def __deepcopy__(self, memo: dict[int, Any]) -> _Again:
        return self

    def __call__(self, output: Any, target: Any) -> Tensor:
        """Their loss."""
        constants = list(self.program.constants)
        shape = constants[self.target].shape[1:]
        target = _turned(target, bool(self.turned))
        constants[self.target] = target if self.turned and shape else target.reshape(-1, *shape)
        answers = [output] if isinstance(output, Tensor) else output
        outputs = {n: _turned(t, n in self.turned) for n, t in zip(self.places, answers, strict=True)}
        for n in set(self.turned).intersection(self.flat):
            outputs[n] = outputs[n].flatten(0, 1)
        answer = [outputs.get(n, torch.empty(0)) for n in range(max(self.places) + 1)]
        return self.program.value((), (), constants, given={self.place: answer}).reshape(())

    def target_of(self, program: Program, count: int) -> Tensor | None:
        """That of a later step with as many samples."""
        found = program.constants[self.target]
        if found.numel() % count:
            return None
        if self.turned:
            return _turned(found.reshape(-1, count) if found.ndim == 1 else found, True)
        found = found.reshape(count, -1, *found.shape[1:]) if len(found) != count else found
        return found


@dataclass
class _Own(_Again):
    """The loss that a model answers itself."""

    def __call__(self, output: Any, target: Any) -> Tensor:
        return output.reshape(())

    def target_of(self, program: Program, count: int) -> Tensor | None:
        return torch.arange(float(count))


@dataclass
class _Inner(_Again):
    """A loss that the model calls within itself on its answer and one of its inputs."""

    function: Callable[[Any, Any], Any] | None = None
    shapes: tuple[Any, Any] = ((), ())

    def __call__(self, output: Any, target: Any) -> Tensor:
        assert self.function is not None
        return self.function(output.reshape(-1, *self.shapes[0]), target.reshape(-1, *self.shapes[1]))


def _inner_losses(
    program: Program, place: int, inner: Inner, answers: Sequence[Tensor]
) -> Iterator[tuple[_Again, str]]:
    inputs = [s.number for s in _constants_in((program.calls[place].args, program.calls[place].keywords))]
    for function, args, keywords, _ in reversed(inner):
        rest = dict(keywords)
        both = [*args[:2], *(rest.pop(name) for name in ("input", "target")[len(args[:2]) :] if name in rest)]
        if len(both) != 2 or not all(isinstance(member, Tensor) for member in both):
            continue
        where = next((n for n, answer in enumerate(answers) if _is_of(both[0], answer)), None)
        target = next((n for n in inputs if _same_numbers(program.constants[n], both[1])), None)
        if where is not None and target is not None:
            called = _Called(function, args[2:], rest)
            shapes = both[0].shape[1:], both[1].shape[1:]
            yield _Inner(program, place, (where,), target, True, (), (), called, shapes), function.__name__


@dataclass(frozen=True)
class _Called:
    function: Any
    rest: tuple[Any, ...]
    keywords: Mapping[str, Any]

    def __call__(self, output: Any, target: Any) -> Any:
        return self.function(output, target, *self.rest, **self.keywords)


def _can_be_cut(probe: Probe) -> bool:
    """Whether samples do not mix: half a batch is answered as in the whole, and the halves make up its loss."""
    batch, size = probe.batch, probe.size
    assert isinstance(probe.loss, _Again)
    if batch is None or size is None or size < 2:
        return False
    half = size // 2
    inputs = {name: value for name, value in batch.items() if name != "y"}
    try:
        with untouched(probe.model), torch.no_grad():
            probe.model.eval()  # dropout would hide that samples mix
            whole, again = (list(tensors_of(probe.model(**inputs))) for _ in range(2))
            parts = [
                list(tensors_of(probe.model(**{name: value[rows] for name, value in inputs.items()})))
                for rows in (slice(0, half), slice(half, size))
            ]  # both: what only looks back (a sequence along the first axis) answers the first half alike
            if isinstance(probe.loss, _Own):
                return math.isfinite(float(parts[0][0]))
            if any(len(p) * size != len(w) * half for w, p in zip(whole, parts[0], strict=True)):
                return False
            alike = all(torch.equal(w, a) for w, a in zip(whole, again, strict=True))  # else it draws at random
            if alike and not all(
                _near(w, torch.cat([first, last])) for w, first, last in zip(whole, *parts, strict=True)
            ):
                return False
            values = [
                float(probe.loss(_rows(whole, rows, size), batch["y"][rows]))
                for rows in (slice(0, size), slice(0, half), slice(half, size))
            ]
    except Exception:  # samples of this batch belong together
        return False
    # weights and ignored places make the mean of the halves another one
    if probe.loss.plain or _is_spread(probe, whole, batch["y"]):
        return True
    mean, total = (half * values[1] + (size - half) * values[2]) / size, values[1] + values[2]
    near = CLOSE * abs(values[0]) + 1e-12
    return not all(map(math.isfinite, values)) or min(abs(values[0] - mean), abs(values[0] - total)) < near


def _is_spread(probe: Probe, answers: Sequence[Tensor], target: Tensor) -> bool:
    """Whether a column of answers meets a row of targets, and their order does not matter: each is held against all."""
    if len(answers) != 1 or {answers[0].shape, target.shape} != {target.shape[:1], (len(target), 1)}:
        return False
    with torch.no_grad():
        one, other = (float(probe.loss(answers[0], y)) for y in (target, target.flip(0)))
    return abs(one - other) <= SAME * abs(one)


def _rows(answers: Sequence[Tensor], rows: slice, size: int) -> Any:
    """Some samples of all that a model answered to a batch of so many."""
    cut = [answer[rows.start * len(answer) // size : rows.stop * len(answer) // size] for answer in answers]
    return cut[0] if len(cut) == 1 else tuple(cut)


def _near(one: Tensor, other: Tensor) -> bool:
    scale = float(other.abs().max()) if other.numel() else 0.0
    return bool((one - other).abs().max() <= CLOSE * scale + 1e-12) if scale == scale else True


def _turned(value: Tensor, whether: bool) -> Tensor:
    """With its first two axes exchanged, where it is to be."""
    return value.transpose(0, 1).contiguous() if whether else value


def _is_second(answer: Tensor, size: int) -> bool:
    """Whether samples may lie along the second axis, behind places, or both along the first."""
    return answer.shape[1] == size or (len(answer) > size and len(answer) % size == 0)


def _samples_first(answer: Tensor, size: int) -> Tensor:
    """The same with samples along the first axis, of an answer with places before them."""
    return (answer if answer.shape[1] == size else answer.reshape(-1, size, *answer.shape[1:])).transpose(0, 1)


def _is_constant(value: Any) -> bool:
    return isinstance(value, Constant)


def _constants_in(value: Any) -> Iterator[Constant]:
    found: list[Constant] = []
    mapped(value, found.append, _is_constant)
    return iter(dict.fromkeys(found))


def _trained_in(call: Any) -> Iterator[Trained]:
    found: list[Trained] = []
    mapped((call.args, call.keywords), found.append, lambda value: isinstance(value, Trained))
    return iter(found)


def _slots_in(call: Any) -> Iterator[Made]:
    return slots_of((call.args, call.keywords))


def _origin(program: Program, place: int) -> Made:
    return next(slot for n in program.needed for slot in _slots_in(program.calls[n]) if slot.call == place)


def _is_scaled(program: Program, place: int) -> bool:
    """Whether the root is one number that the model answered, times others: divided for accumulation, or scaled."""
    origins = {slot for n in program.needed if n != place for slot in _slots_in(program.calls[n]) if slot.call == place}
    answers = list(tensors_of(program.outputs[place]))
    plain = all(program.calls[n].name in _SCALING for n in program.needed if n != place)
    return plain and len(origins) == 1 and answers[next(iter(origins)).place].numel() == 1


_SCALING = (
    "__truediv__",
    "div",
    "div_",
    "mul_",
    "true_divide",
    "mul",
    "__mul__",
    "__rmul__",
    "mean",
    "sum",
    "__getitem__",
    "to",
    "float",
)


def _is_multiple(program: Program, root: Made) -> bool:
    """Whether the root of the program is this value, or was made from it alone by scaling."""
    after = [n for n in program.needed if n > root.call]
    return all(program.calls[n].name in _SCALING for n in after)


def _is_of(compared: Tensor, output: Tensor) -> bool:
    """Whether what was compared is the output itself, or the same numbers in another shape."""
    same = compared.untyped_storage().data_ptr() == output.untyped_storage().data_ptr()
    return compared is output or (same and compared.numel() == output.numel())


def _same_numbers(one: Tensor, other: Tensor) -> bool:
    alike = one.numel() == other.numel() and one.dtype == other.dtype
    return alike and torch.equal(one.reshape(-1), other.detach().reshape(-1))


def _mean(output: Any, target: Any) -> Tensor:
    return output.mean()


def _place(member: Any, among: Any) -> int | None:
    return next((n for n, other in enumerate(among) if other is member), None)


def _several(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
