"""A small reservoir of what training really puts through the model, so that trials are trained on the run's own batches.

Inputs are seen by a hook on the model. The target is not: it is looked for among the tensors that the function which called the
model holds, and accepted only where the user's loss with it gives the very gradient in the outputs that training sends back.
A model that is given its labels by name and computes its loss itself shows them. Where none does, inputs still tell the size of a
batch. Nothing is changed, and once the reservoir is full nothing is done.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import tensors_in
from theodolite.core.model_wrappers import part_for
from theodolite.evidence.drawn_outputs import members_of, rebuilt
from theodolite.io.batches import TARGETS, Batch
from theodolite.verbs.watching.training_hooks.harmless_hooks import harmless

MOST_BATCHES, MOST_SAMPLES, MOST_BYTES = 2048, 16_384, 1 << 26
"""What is kept at most."""
FRAMES, TRIES = 4, 3
"""Callers that are looked into, and batches after which a target that was not found is not looked for any more."""
LARGEST = 20_000_000
"""Numbers of a column in which the samples of a batch are looked for."""
ALIKE = 0.9999
"""The cosine of two gradients that are the same but for rounding and a factor (scaled losses, accumulated batches)."""
PROVED = 1 << 22
"""Numbers of an answer whose gradient is compared: of a large one its first samples tell as well, in a fraction of the memory."""
TELLING = 8
"""Numbers of a gradient from which on a multiple of it is no chance."""

Path = tuple[int, str, Any]
"""Where a target was found: the caller, the name of its variable, and the key inside it (None: the variable itself)."""


class TrainingBatches:
    """Batches in the order in which training had them, until there are enough."""

    def __init__(
        self, model: nn.Module, loss: Callable[[Any, Any], Tensor], heard: Callable[[Tensor, Batch], None] | None = None
    ) -> None:
        self.kept: list[Batch] = []
        self._heard = heard
        self._label = ""
        self.sizes: Counter[int] = Counter()
        self._loss, self._failed, self._idle = loss, 0, False
        self._samples = self._bytes = 0
        self._marks: dict[Any, Any] = {}
        self._path: Path | None = None
        self._handle: Any = model.register_forward_hook(self._ran, with_kwargs=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> TrainingBatches:
        """A copy of the model is no training of the user's: its hook does nothing."""
        other = object.__new__(TrainingBatches)
        other._idle, other.kept, other.sizes = True, [], Counter()
        return other

    @property
    def batch_size(self) -> int | None:
        """The size that most batches had; None where none was seen."""
        return self.sizes.most_common(1)[0][0] if self.sizes else None

    def remove(self) -> None:
        """Watch no longer; what was seen stays."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """For a look of our own, which is no training."""
        before, self._idle = self._idle, True
        try:
            yield
        finally:
            self._idle = before

    @harmless
    def _ran(self, module: nn.Module, args: tuple[Any, ...], keywords: Mapping[str, Any], output: Any) -> None:
        if self._idle or torch.compiler.is_compiling() or not module.training or not torch.is_grad_enabled():
            return
        members = [t for t in tensors_in(output) if t.requires_grad and t.is_floating_point()]
        batch = Batch(tuple(args), dict(keywords))
        if not members or not len(batch):
            return
        self.sizes[len(batch)] += 1
        enough = self._samples >= MOST_SAMPLES or len(self.kept) >= MOST_BATCHES or self._bytes >= MOST_BYTES
        if self._path is not None:
            wanted = self._heard is not None or not enough
            target = self._target_at(sys._getframe(1), batch, wait=not enough) if wanted else None
            if target is not None:
                self._tell(batch, output, target)
                if not enough:
                    self._keep(batch, target)
            return
        if self._label and self._heard is not None:
            self._tell_own(batch, output)
        if enough or self._failed >= TRIES:
            if self.sizes.total() > MOST_BATCHES and (self._heard is None or not self._label):
                self.remove()
            return
        named = self._named(batch, output)
        if named is not None:
            self._keep(named, named.target)
            return
        found = [*_candidates(sys._getframe(1), len(batch)), *self._indexed(sys._getframe(1), batch)]
        self._prove(batch, found, output, members)

    def _named(self, batch: Batch, output: Any) -> Batch | None:
        """The batch with the labels that the model was given by name, where its own loss is the watched one of them."""
        name = next((n for n in TARGETS if isinstance(batch.keywords.get(n), Tensor)), None)
        own = output.get("loss") if isinstance(output, Mapping) else None
        if name is None or not isinstance(own, Tensor):
            return None
        target = batch.keywords[name]
        if not isinstance(output.get("logits"), Tensor):  # fused into the loss, and there is nothing to compare it with
            self._label = name
            return _without(batch, name)
        try:
            with torch.no_grad(), self.aside():
                value = float(self._loss(part_for(self._loss, output), target))
        except Exception:  # not what the loss takes
            return None
        if not 0 < float(own.detach()) < 1.01 * value:  # where batches are accumulated it is a part of it
            return None
        self._label = name
        return _without(batch, name)

    def _tell_own(self, batch: Batch, output: Any) -> None:
        """The loss that the model computes itself to whoever listens."""
        assert self._heard is not None
        own = output.get("loss") if isinstance(output, Mapping) else None
        if isinstance(own, Tensor) and isinstance(batch.keywords.get(self._label), Tensor):
            self._heard(own.detach(), _without(batch, self._label))

    def _tell(self, batch: Batch, output: Any, target: Tensor) -> None:
        """The loss of this batch to whoever listens; of a large answer that of its first samples."""
        if self._heard is None:
            return
        answer = part_for(self._loss, output)
        rows = len(batch)
        if isinstance(answer, Tensor) and answer.ndim and len(answer) == rows:
            rows = max(1, min(rows, LARGEST // max(1, answer[0].numel())))
            answer = answer[:rows]
        try:
            with torch.no_grad(), self.aside():
                value = self._loss(answer, target[:rows])
        except Exception:  # a loss that has no value for this batch
            return
        self._heard(value, Batch(batch.inputs, batch.keywords, target))

    def _target_at(self, frame: Any, batch: Batch, *, wait: bool) -> Tensor | None:
        """The tensor at the place where the target was found first; looked up, not searched for.

        Rows of a whole column on a device are found only where the device may be waited for.
        """
        assert self._path is not None
        depth, name, key = self._path
        held = next((h for d, h in _callers(frame) if d == depth), {})
        found = held.get(name)
        if isinstance(key, str) and isinstance(found, Tensor):  # rows of a whole column
            given, whole = batch.tensors()[0], held.get(key)
            if not isinstance(whole, Tensor) or (given.device.type != "cpu" and not wait):
                return None
            rows = self._rows_of(whole, given)
            return None if rows is None else found[rows]
        if key is not None:
            try:
                found = held[name][key]
            except (KeyError, IndexError, TypeError):
                return None
        return found if isinstance(found, Tensor) and found.ndim and len(found) == len(batch) else None

    def _indexed(self, frame: Any, batch: Batch) -> Iterator[tuple[Path, Tensor]]:
        """Rows of whole columns that the callers hold: of ``loss(model(x[rows]), y[rows])`` no batch has a name."""
        given = batch.tensors()[0]
        for depth, held in _callers(frame):
            columns = {n: t for n, t in dict(held).items() if isinstance(t, Tensor) and t.ndim and len(t) > len(given)}
            for name, whole in columns.items():
                if whole.shape[1:] != given.shape[1:] or whole.dtype != given.dtype or whole.numel() > LARGEST:
                    continue
                rows = self._rows_of(whole, given)
                if rows is not None:
                    same = {n: t for n, t in columns.items() if len(t) == len(whole) and not t.requires_grad}
                    yield from (((depth, other, name), t[rows]) for other, t in same.items())

    def _rows_of(self, whole: Tensor, given: Tensor) -> Tensor | None:
        """The places at which the samples of a batch stand in a column; None where one does not."""
        key = (whole.data_ptr(), len(whole), whole._version)
        mark = torch.linspace(0.5, 1.5, given[:1].numel(), dtype=torch.float64).sin().to(given.device)
        if key not in self._marks:
            self._marks = {key: (whole.detach().reshape(len(whole), -1).double() @ mark).sort()}
        values, order = self._marks[key]
        places = torch.searchsorted(values, given.detach().reshape(len(given), -1).double() @ mark).clamp(
            max=len(values) - 1
        )
        rows = order[places]
        return rows if torch.equal(whole[rows], given) else None

    def _prove(self, batch: Batch, found: list[tuple[Path, Tensor]], output: Any, members: list[Tensor]) -> None:
        """Ask the gradient that comes back which of the tensors is the target."""
        waiting = [(path, tensor.detach().clone()) for path, tensor in found]
        rows = len(batch)
        if isinstance(output, Tensor) and output.ndim and len(output) == rows:
            rows = max(1, min(rows, PROVED // max(1, output[0].numel())))
            output = output[:rows]
        inputs = Batch(_cloned(batch.inputs), {name: _cloned(value) for name, value in batch.keywords.items()})
        answer = _detached(output)

        def back(gradient: Tensor) -> None:
            if self._path is None:
                with self.aside():
                    self._ask(inputs, waiting, answer, gradient.detach(), rows)

        members[0].register_hook(back)  # type: ignore[no-untyped-call]
        self._failed += 1

    @harmless
    def _ask(self, batch: Batch, found: list[tuple[Path, Tensor]], answer: Any, arrived: Tensor, rows: int) -> None:
        """The target is the one whose gradient arrived; else one whose gradient is a multiple of it, as of accumulated steps.

        A few numbers are soon a multiple of others: one always is.
        """
        slopes = [(path, target, _slope(self._loss, answer, target[:rows])) for path, target in found]
        own = (arrived[:rows] if rows < len(batch) else arrived).double().reshape(-1)
        known = [(path, target, s.double().reshape(-1)) for path, target, s in slopes if s is not None]
        known = [(path, target, s) for path, target, s in known if len(s) == len(own)]
        same = [one for one in known if float((one[2] - own).norm()) <= (1 - ALIKE) * float(own.norm())]
        if len(own) >= TELLING:
            same += [one for one in known if float(one[2] @ own) > ALIKE * float(one[2].norm() * own.norm())]
        if same and float(own.norm()) > 0:
            self._path, self._failed = same[0][0], 0
            self._keep(batch, same[0][1])

    def _keep(self, batch: Batch, target: Tensor) -> None:
        whole = Batch(
            _cloned(batch.inputs),
            {name: _cloned(value) for name, value in batch.keywords.items()},
            target.detach().clone(),
        )
        self.kept.append(whole)
        self._samples += len(whole)
        self._bytes += sum(t.numel() * t.element_size() for t in (*whole.tensors(), whole.target))


def _without(batch: Batch, name: str) -> Batch:
    """The batch with one of its keywords as the target, and such others as have a row a sample."""
    rest = {
        n: v
        for n, v in batch.keywords.items()
        if n != name and isinstance(v, Tensor) and v.ndim and len(v) == len(batch)
    }
    return Batch(batch.inputs, rest, batch.keywords[name])


def _candidates(frame: Any, count: int) -> Iterator[tuple[Path, Tensor]]:
    """Tensors of a batch's length that the callers hold, nearest first; torch's own frames are passed over."""
    for depth, held in _callers(frame):
        for name, value in dict(held).items():
            yield from _members(depth, name, value, count)


def _callers(frame: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The variables of the functions that called the model, nearest first, those of modules included."""
    depth = 0
    while frame is not None and depth < FRAMES:
        if "torch" not in frame.f_globals.get("__name__", "").split("."):
            yield depth, frame.f_locals
            depth += 1
        frame = frame.f_back


def _members(depth: int, name: str, value: Any, count: int) -> Iterator[tuple[Path, Tensor]]:
    def fits(tensor: Any) -> bool:
        return isinstance(tensor, Tensor) and tensor.ndim > 0 and len(tensor) == count and not tensor.requires_grad

    if fits(value):
        yield (depth, name, None), value
    elif isinstance(value, Mapping):
        yield from (((depth, name, key), t) for key, t in value.items() if fits(t))
    elif isinstance(value, tuple | list) and len(value) <= 8:
        yield from (((depth, name, place), t) for place, t in enumerate(value) if fits(t))


def _slope(loss: Any, answer: Any, target: Tensor) -> Tensor | None:
    """The gradient of the loss with this target in the first output; None where it does not take it."""
    import warnings

    free = [t.clone().requires_grad_() for t in members_of(answer)]
    given = part_for(loss, rebuilt(answer, free))
    try:
        with torch.enable_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = loss(given, target)
            found: tuple[Tensor | None, ...] = torch.autograd.grad(value, free, allow_unused=True)
    except Exception:  # not what the loss takes
        return None
    return found[0]


def _cloned(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    return tuple(_cloned(member) for member in value) if isinstance(value, tuple) else value


def _detached(answer: Any) -> Any:
    if isinstance(answer, Tensor):
        return answer.detach().clone()
    if isinstance(answer, Mapping):
        return {name: _detached(value) for name, value in answer.items()}
    return type(answer)(_detached(value) for value in answer) if isinstance(answer, tuple | list) else answer
