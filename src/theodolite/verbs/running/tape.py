"""What lies between the calls of a model and ``backward``: operations on tensors, written down so that they can be done again.

A mode of torch sees every function of tensors that a script calls outside its modules. From the value that backward is called on
the calls that led to it are followed back to module calls, to parameters, and to tensors that carry no gradient (data, targets,
masks, draws): these are the constants of that step. The rest is a program, and the same program on other constants is the same
loss on another batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from theodolite.verbs.running.functional import bare

MOST_CALLS = 20_000
"""Calls of one step that are kept: a script that makes more without a step is not written down."""


class Made(NamedTuple):
    """A tensor that an earlier call made: which call, and the place among its tensors."""

    call: int
    place: int


class Constant(NamedTuple):
    """A tensor without a gradient, by its number among those of the program."""

    number: int


class Parameter(NamedTuple):
    """A tensor that is trained, by its number among those of the program."""

    number: int


@dataclass(frozen=True)
class Call:
    """A function of tensors, or a module (``part``: its number), with `Made`, `Constant` and `Parameter` for tensors."""

    function: Callable[..., Any] | None
    args: Any
    keywords: Any
    part: int = -1

    @property
    def name(self) -> str:
        """As it is called in torch."""
        return getattr(self.function, "__name__", "module")


@dataclass(frozen=True)
class Program:
    """The calls from the constants of a step to the value that backward was called on."""

    calls: tuple[Call, ...]
    root: Made
    parts: tuple[nn.Module, ...]
    parameters: tuple[Tensor, ...]
    constants: tuple[Tensor, ...]
    # what each module answered when it was written
    outputs: Mapping[int, Any] = field(default_factory=dict, repr=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        """Nothing in it changes: copies of a model share it."""
        return self

    @property
    def signature(self) -> tuple[Any, ...]:
        """Alike for two steps that do the same with other constants."""
        return (
            self.root,
            *((call.name, call.part, _shape_of(call.args), _shape_of(call.keywords)) for call in self.calls),
        )

    @cached_property
    def needed(self) -> tuple[int, ...]:
        """The calls that the root rests on, in their order."""
        wanted = {self.root.call}
        for number in range(self.root.call, -1, -1):
            if number in wanted:
                wanted |= {slot.call for slot in slots_of((self.calls[number].args, self.calls[number].keywords))}
        return tuple(sorted(wanted))

    def value(
        self,
        parts: Sequence[nn.Module],
        parameters: Sequence[Tensor],
        constants: Sequence[Tensor],
        given: Mapping[int, Sequence[Tensor]] | None = None,
    ) -> Tensor:
        """Do it again, with these modules, parameters and constants; ``given`` are answers that are not computed anew."""
        return self.answers(parts, parameters, constants, given)[self.root.call][self.root.place]

    def answers(
        self,
        parts: Sequence[nn.Module],
        parameters: Sequence[Tensor],
        constants: Sequence[Tensor],
        given: Mapping[int, Sequence[Tensor]] | None = None,
    ) -> dict[int, Sequence[Tensor]]:
        """The same, with what each call answers."""
        made: dict[int, Sequence[Tensor]] = dict(given or {})

        def found(slot: Any) -> Tensor:
            if isinstance(slot, Made):
                return made[slot.call][slot.place]
            return constants[slot.number] if isinstance(slot, Constant) else parameters[slot.number]

        for number in self.needed:
            if number in made:
                continue
            call = self.calls[number]
            args, keywords = mapped(call.args, found, _is_slot), mapped(call.keywords, found, _is_slot)
            if call.part < 0 and _is_in_place(call.name) and isinstance(call.args[0], Constant):
                args = (args[0].clone(), *args[1:])
            function = parts[call.part] if call.part >= 0 else call.function
            assert function is not None
            made[number] = list(tensors_of(function(*args, **keywords)))
        return made


class Tape(TorchFunctionMode):
    """Writes down what a script does with tensors that carry a gradient; within modules only the losses are looked at."""

    def __init__(self, losses: Mapping[Any, str], standing: Mapping[int, Tensor] | None = None) -> None:
        super().__init__()
        self.inside = 0
        self.idle = self.is_over = False
        self.overflown = False
        self.losses = losses
        self.within: list[tuple[Any, tuple[Any, ...], Mapping[str, Any], Tensor]] = []
        self.used: set[int] = set()  # calls that led to a value that backward was called on
        self._lessons: dict[int, Any] = {}  # calls of modules in training mode, and what they were given
        self._calls: list[tuple[Any, Any, Any, nn.Module | None, Any]] = []
        self._made: dict[int, tuple[Tensor, Made]] = {}
        self.standing: Mapping[int, Tensor] = {} if standing is None else standing  # for the tensors of a transform

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if self.idle or torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return func(*args, **keywords)
        if self.inside:
            out = func(*args, **keywords)
            if func in self.losses and isinstance(out, Tensor) and out.requires_grad and out.numel() == 1:
                self.within = [*self.within[-3:], (func, args, keywords, out)]
            return out
        if args and _is_in_place(getattr(func, "__name__", "")) and isinstance(args[0], Tensor):
            known = id(args[0]) in self._made
            before = args[0] if known else args[0].detach().clone()  # its value is another one afterwards
            written = mapped((before, *args[1:]), self._slot, _is_tensor)
            out = func(*args, **keywords)
            if func is Tensor.__setitem__:
                self.note(_with_item, written, {}, args[0])
            else:
                self.note(func, written, keywords, out)
            return out
        out = func(*args, **keywords)
        if isinstance(out, Tensor | tuple | list):
            self.note(func, args, keywords, out)
        return out

    def note(self, function: Any, args: Any, keywords: Any, out: Any, module: nn.Module | None = None) -> None:
        """One more call, where its answer carries a gradient."""
        own = [(place, t) for place, t in enumerate(tensors_of(out)) if t.requires_grad and t.grad_fn is not None]
        if not own:
            return
        if len(self._calls) >= MOST_CALLS:
            self.overflown = True
            return
        number = len(self._calls)
        both = mapped(args, self._slot, _is_tensor), mapped(keywords, self._slot, _is_tensor)
        self._calls.append((function, *both, module, out))
        if module is not None and module.training:
            self._lessons[number] = id(module), [tuple(t.shape) for t in tensors_of((args, keywords))]
        for place, tensor in own:
            self._made[id(tensor)] = tensor, Made(number, place)  # held, so that its number is nobody else's

    def _slot(self, tensor: Tensor) -> Any:
        known = self._made.get(id(tensor))
        return self.standing.get(id(tensor), tensor) if known is None else known[1]

    def on(self) -> None:
        """See what is called from now on."""
        self.__enter__()  # type: ignore[no-untyped-call]

    def off(self) -> None:
        """See nothing any more."""
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """See nothing for good, also after what is aside at present."""
        self.idle = self.is_over = True
        self.clear()
        if self.is_on_top():
            self.off()

    def is_on_top(self) -> bool:
        """Whether it is the innermost of torch's modes, so that it can be taken off and put back."""
        depth = torch._C._len_torch_function_stack()
        return depth > 0 and torch._C._get_function_stack_at(depth - 1) is self

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """For code that is not to be seen, nor to see that it is watched."""
        seen, before, self.idle = self.is_on_top(), self.idle, True
        if seen:
            self.off()
        try:
            yield
        finally:
            self.idle = before or self.is_over
            if seen and not self.is_over:
                self.on()

    def clear(self) -> None:
        """A step was made: what led to it is forgotten."""
        self._calls, self._made, self.within, self.overflown = [], {}, [], False
        self.used, self._lessons = set(), {}

    def unused(self) -> int:
        """How many calls of modules in training mode led to no value that backward was called on, beside some that did."""
        taught = [given for number, given in self._lessons.items() if number in self.used]
        return sum(given in taught for number, given in self._lessons.items() if number not in self.used)

    def program(self, roots: Sequence[Tensor], held: Set[int] = frozenset()) -> Program | None:
        """The calls that led to the sum of these values; None where one of them was not seen to be made.

        ``held`` are those that optimizers train: where there are any, other tensors that ask for a gradient are constants (a
        penalty on the slope at some inputs).
        """
        places = [self._made.get(id(root)) for root in roots]
        if self.overflown or not places or any(place is None for place in places):
            return None
        ends = [place[1] for place in places if place is not None]
        wanted = {end.call for end in ends}
        for number in range(max(wanted), -1, -1):
            if number in wanted:
                wanted |= {slot.call for slot in slots_of(self._calls[number][1:3])}
        self.used |= wanted
        order = {old: new for new, old in enumerate(sorted(wanted))}
        parts: list[nn.Module] = []
        parameters: list[Tensor] = []
        constants: list[Tensor] = []
        numbers: dict[int, Any] = {}

        def placed(slot: Any) -> Any:
            if isinstance(slot, Made):
                return Made(order[slot.call], slot.place)
            if id(slot) not in numbers:
                if slot.requires_grad and (not held or id(slot) in held or isinstance(slot, nn.Parameter)):
                    numbers[id(slot)] = Parameter(len(parameters))
                    parameters.append(slot)
                else:
                    numbers[id(slot)] = Constant(len(constants))
                    constants.append(slot)
            return numbers[id(slot)]

        calls, outputs = [], {}
        for old in sorted(wanted):  # a tensor with a history that was not seen cannot be made again
            function, args, keywords, module, out = self._calls[old]
            part = -1
            if module is not None:
                outputs[order[old]] = out
                part = next((n for n, each in enumerate(parts) if each is module), len(parts))
                parts += [module] if part == len(parts) else []
            both = (mapped(args, placed, _is_written), mapped(keywords, placed, _is_written))
            calls.append(Call(None if module is not None else function, *both, part))
        if len(ends) == 1:
            root = Made(order[ends[0].call], ends[0].place)
        else:
            root = Made(len(calls), 0)
            calls.append(Call(_sum, tuple(Made(order[end.call], end.place) for end in ends), {}))
        if any(not tensor.is_leaf for tensor in (*parameters, *constants)):
            return None
        if self.standing:
            constants, outputs = [bare(constant) for constant in constants], mapped(outputs, bare, _is_tensor)
        copies = [constant.detach().clone() for constant in constants]
        kept = tuple(
            new.requires_grad_() if old.requires_grad else new for old, new in zip(constants, copies, strict=True)
        )
        return Program(tuple(calls), root, tuple(parts), tuple(parameters), kept, outputs)


def program_of_sum(programs: Sequence[Program]) -> Program:
    """One program whose value is the sum of those of these."""
    calls: list[Call] = []
    parts: list[nn.Module] = []
    parameters: list[Tensor] = []
    constants: list[Tensor] = []
    outputs: dict[int, Any] = {}
    roots = []

    def place(member: Any, among: list[Any]) -> int:
        found = next((n for n, other in enumerate(among) if other is member), len(among))
        among += [member] if found == len(among) else []
        return found

    for program in programs:
        shift, first = len(calls), len(constants)
        constants += program.constants
        own = [place(p, parameters) for p in program.parameters]
        numbers = [place(p, parts) for p in program.parts]

        def moved(slot: Any, shift: int = shift, first: int = first, own: list[int] = own) -> Any:
            if isinstance(slot, Made):
                return Made(slot.call + shift, slot.place)
            return Constant(slot.number + first) if isinstance(slot, Constant) else Parameter(own[slot.number])

        for call in program.calls:
            both = (mapped(call.args, moved, _is_slot), mapped(call.keywords, moved, _is_slot))
            calls.append(Call(call.function, *both, numbers[call.part] if call.part >= 0 else -1))
        outputs |= {number + shift: out for number, out in program.outputs.items()}
        roots.append(Made(program.root.call + shift, program.root.place))
    calls.append(Call(_sum, tuple(roots), {}))
    return Program(tuple(calls), Made(len(calls) - 1, 0), tuple(parts), tuple(parameters), tuple(constants), outputs)


def _sum(*values: Tensor) -> Tensor:
    return torch.stack([value.reshape(()) for value in values]).sum()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _is_slot(value: Any) -> bool:
    return isinstance(value, Made | Constant | Parameter)


def _is_written(value: Any) -> bool:
    return isinstance(value, Tensor | Made)


_IN_PLACE = {
    f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "pow", "mod", "matmul", "and", "or", "xor")
}


def _is_in_place(name: str) -> bool:
    """Whether a function changes its first argument: ``add_``, ``__iadd__``."""
    return name in _IN_PLACE or name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _with_item(tensor: Tensor, key: Any, value: Any) -> Tensor:
    """What ``tensor[key] = value`` leaves."""
    found = tensor.clone()
    found[key] = value
    return found


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Every tensor of an answer, however nested, in one order; of plain objects those of their attributes."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from tensors_of(member)
    elif isinstance(value, tuple | list):
        for member in value:
            yield from tensors_of(member)
    elif hasattr(value, "__dict__") and not isinstance(value, type | nn.Module) and not callable(value):
        for member in vars(value).values():
            if isinstance(member, Tensor | tuple | list | Mapping):
                yield from tensors_of(member)


def slots_of(value: Any) -> Iterator[Made]:
    """The tensors of earlier calls in written arguments."""
    if isinstance(value, Made):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from slots_of(member)
    elif isinstance(value, tuple | list) and not isinstance(value, Constant | Parameter):
        for member in value:
            yield from slots_of(member)
    elif isinstance(value, slice):
        yield from slots_of((value.start, value.stop, value.step))


def mapped(value: Any, change: Callable[[Any], Any], applies: Callable[[Any], bool]) -> Any:
    """The same structure with some members changed."""
    if applies(value):
        return change(value)
    if isinstance(value, Tensor | Made | Constant | Parameter | str):
        return value
    if isinstance(value, slice):
        return slice(*(mapped(member, change, applies) for member in (value.start, value.stop, value.step)))
    if isinstance(value, tuple | list):
        members = [mapped(member, change, applies) for member in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*members)
        return tuple(members) if isinstance(value, tuple) else members
    if type(value) is dict:
        return {key: mapped(member, change, applies) for key, member in value.items()}
    return value


def _shape_of(value: Any) -> Any:
    """The structure of written arguments without plain numbers, which may follow the size of a batch."""
    if isinstance(value, Made | Constant | Parameter):
        return type(value).__name__, tuple(value)
    if isinstance(value, Mapping):
        return tuple((key, _shape_of(member)) for key, member in value.items())
    if isinstance(value, tuple | list):
        return tuple(map(_shape_of, value))
    return None
