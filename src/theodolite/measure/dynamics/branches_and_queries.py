"""Where in a forward pass queries are made and residual branches are added, found by running it once and asking autograd."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from theodolite.core.checks import tensors_in
from theodolite.core.state import untouched

_PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)
_SOFTMAX = (F.softmax, torch.softmax, Tensor.softmax)
_SUMS = (torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__)


@dataclass(frozen=True)
class QueryPlace:
    """Scores of heads of ``head_size`` made in module ``where``; ``channels`` of the outputs of ``module`` are the queries.

    ``module`` is empty where no module's output is the queries alone. Of nn.MultiheadAttention it is the layer itself, whose
    ``key`` is what can be multiplied: a bias of the keys adds the same to all scores of a query.
    """

    where: str
    head_size: int
    module: str
    channels: tuple[int, ...] = ()
    by_key: bool = False


@dataclass(frozen=True)
class BranchPlace:
    """A sum in module ``where`` of a stream and what was made of it; ``module`` made it (empty: no module's output is it)."""

    where: str
    module: str


@dataclass(frozen=True)
class StreamSum:
    """A residual sum: mean squares of the ``stream``, of the ``branch`` that ``module`` made and of their sum, sample by sample.

    ``width`` is the number of channels; ``goes_on`` says whether the stream is, unchanged, the sum before.
    """

    where: str
    module: str
    stream: tuple[float, ...]
    branch: tuple[float, ...]
    total: tuple[float, ...]
    width: int
    goes_on: bool


@dataclass
class _Event:
    where: str
    order: int
    tensors: tuple[Tensor, ...]


class _Recorder(TorchFunctionMode):
    """Scores and sums of two tensors, in the module in which each was made."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = [""]
        self.clock = 0
        self.outputs: list[tuple[str, int, Tensor]] = []
        self.products: list[_Event] = []
        self.scores: list[_Event] = []
        self.sums: list[_Event] = []
        self.with_weights: set[str] = set()

    def event(self, *tensors: Tensor) -> _Event:
        self.clock += 1
        return _Event(self.stack[-1], self.clock, tensors)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (Tensor.add_, Tensor.__iadd__):  # else the stream would be gone
            func = Tensor.add
        out = func(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            q, k, v = (kwargs.get(name, args[i] if i < len(args) else None) for i, name in enumerate(_QKV))
            self.scores.append(self.event(q, k, v))
        elif func in _PRODUCTS and _all_computed(args[:2]):
            self.products.append(self.event(args[0], args[1], out))
        elif func in _SOFTMAX and isinstance(args[0], Tensor):
            self._from_product(args[0])
        elif func in _SUMS and _all_computed(args[:2]) and args[0].shape == args[1].shape:
            self.sums.append(self.event(args[0], args[1], out))
        return out

    def _from_product(self, scores: Tensor) -> None:
        """A softmax over what a product of two computed tensors became is attention written out."""
        near = [p for p in self.products if p.where == self.stack[-1]]
        if not near or not scores.requires_grad:
            return
        reached = _slopes(scores, [p.tensors[2] for p in near])
        last = [p for p, slope in zip(near, reached, strict=True) if slope is not None][-1:]
        for product in last:
            self.scores.append(_Event(product.where, product.order, product.tensors[:2]))


_QKV = ("query", "key", "value")


def _all_computed(tensors: Sequence[Any]) -> bool:
    return len(tensors) == 2 and all(isinstance(t, Tensor) and t.grad_fn is not None for t in tensors)


def _slopes(of: Tensor, to: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Derivatives of a random sum of a tensor's entries; None where it does not depend."""
    if not to or not of.requires_grad:
        return [None] * len(to)
    draw = torch.randn(of.shape, generator=torch.Generator().manual_seed(0)).to(of)
    with torch.enable_grad():
        return torch.autograd.grad(of, list(to), draw, retain_graph=True, allow_unused=True)


def forward_places(
    model: nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any] | None = None
) -> tuple[list[QueryPlace], list[BranchPlace]]:
    """Where ``model(*inputs)`` makes queries and adds residual branches, in the order in which it does.

    >>> block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> queries, branches = forward_places(block, (torch.randn(2, 3, 8),))
    >>> [place.head_size for place in queries], [place.module for place in branches]
    ([4], ['dropout1', 'dropout2'])
    """
    heads = {name: m for name, m in model.named_modules() if isinstance(m, nn.MultiheadAttention)}
    with _recorded(model, inputs, keywords or {}) as recorder:
        called = {name for name, _, _ in recorder.outputs}
        queries = [QueryPlace(n, int(m.head_dim), n, by_key=True) for n, m in heads.items() if n in called]
        queries += [_query(recorder, event) for event in recorder.scores if event.where not in heads]
        branches = [place for event in recorder.sums if (place := _branch(recorder, event)) is not None]
    return queries, [BranchPlace(event.where, names[-1] if names else "") for event, names, _, _ in branches]


def residual_sums(
    model: nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any] | None = None
) -> list[StreamSum]:
    """The residual sums of ``model(*inputs)`` in the order in which they are made, with the sizes of what is added.

    >>> block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> [(one.module, one.goes_on) for one in residual_sums(block, (torch.randn(2, 3, 8),))]
    [('self_attn', False), ('linear2', True)]
    """
    found: list[StreamSum] = []
    with _recorded(model, inputs, keywords or {}) as recorder:
        last = None
        for event, names, stream, branch in filter(None, (_branch(recorder, event) for event in recorder.sums)):
            given, added, total = (_mean_squares(tensor) for tensor in (stream, branch, event.tensors[2]))
            width = stream.shape[1] if stream.ndim == 4 else stream.shape[-1]
            name = names[0] if names else ""
            found.append(StreamSum(event.where, name, given, added, total, width, goes_on=last is stream))
            last = event.tensors[2]
    return found


def _mean_squares(tensor: Tensor) -> tuple[float, ...]:
    return tuple(tensor.detach().double().flatten(1).square().mean(1).tolist())


@contextmanager
def _recorded(model: nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any]) -> Iterator[_Recorder]:
    """The recorder of one pass through the model, while the model is as it was in that pass."""
    recorder = _Recorder()
    with untouched(model), torch.enable_grad():
        for name, module in model.named_modules():
            recorder.with_weights |= {name} if next(module.parameters(), None) is not None else set()
            module.register_forward_pre_hook(partial(_enter, recorder, name))
            module.register_forward_hook(partial(_leave, recorder, name))
        for parameter in model.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        given = [_traced(value) for value in inputs]
        with recorder:
            model(*given, **keywords)
        yield recorder


def _traced(value: Any) -> Any:
    """Inputs that autograd follows, so that a sum with them is one of two computed tensors."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    return value.detach().clone().requires_grad_().view_as(value)


def _enter(recorder: _Recorder, name: str, module: nn.Module, args: Any) -> None:
    recorder.stack.append(name)


def _leave(recorder: _Recorder, name: str, module: nn.Module, args: Any, output: Any) -> None:
    recorder.stack.pop()
    recorder.clock += 1
    found = [t for t in tensors_in(output) if t.grad_fn is not None]
    if found:
        recorder.outputs.append((name, recorder.clock, found[0]))


def _query(recorder: _Recorder, event: _Event) -> QueryPlace:
    """The last module inside whose output, or some channels of it, are the queries and nothing else."""
    q, others = event.tensors[0], event.tensors[1:]
    size = int(q.shape[-1])
    inside = event.where + "." if event.where else ""
    near = [(n, z) for n, order, z in recorder.outputs if order < event.order and n.startswith(inside)]
    slopes = _slopes(q, [z for _, z in near])
    for (name, z), slope in reversed(list(zip(near, slopes, strict=True))):
        if slope is None:
            continue
        own = _channels(slope)
        shared = [found for other in others for found in _slopes(other, [z]) if found is not None]
        if any(bool((_channels(found) & own).any()) for found in shared):
            break
        return QueryPlace(event.where, size, name, () if bool(own.all()) else tuple(own.nonzero().flatten().tolist()))
    return QueryPlace(event.where, size, "")


def _channels(slope: Tensor) -> Tensor:
    return slope.abs().reshape(-1, slope.shape[-1]).amax(0) > 0


def _branch(recorder: _Recorder, event: _Event) -> tuple[_Event, list[str], Tensor, Tensor] | None:
    """The sum, the modules whose output its branch is, stream and branch; None where neither is made of the other.

    A sum in a module without weights is part of an activation.
    """
    a, b = event.tensors[:2]
    for stream, branch in ((a, b), (b, a)) if event.where in recorder.with_weights else ():
        if _slopes(branch, [stream])[0] is not None:
            names = [name for name, order, z in recorder.outputs if z is branch and order < event.order]
            return event, names, stream, branch
    return None
