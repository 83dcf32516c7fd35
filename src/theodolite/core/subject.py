"""What the user has: a model with its data, loss and step size, or only the weights of a checkpoint."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from theodolite.core.budget import Allowance
from theodolite.core.checks import (
    InputError,
    InputTypeError,
    NotFiniteError,
    check_finite,
    check_forward,
    check_labels,
    check_loss,
    check_loss_function,
    check_lr,
    check_optimizer,
    explain_refusal,
    is_finite_tensor,
    ran_on,
    tensors_in,
)
from theodolite.core.lazy_torch import is_module, torch
from theodolite.core.model_wrappers import OfWholeAnswer, as_batches, bare_model, part_for, prepared, takes_whole
from theodolite.core.state import untouched
from theodolite.io.store import Store
from theodolite.io.weights import Weights, are_weights, weights_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from theodolite.core.run import Run
    from theodolite.io.batches import Batch


Fact = TypeVar("Fact")


class Progress:
    """``progress(label, done, total)``: how far work on one thing is, told to whoever ``listener`` is."""

    listener: Callable[[str, int, int], None] | None = None

    def __call__(self, label: str, done: int, total: int) -> None:
        """Tell it, if anyone listens."""
        if self.listener is not None:
            self.listener(label, done, total)


def once(name: str) -> Callable[[Callable[[Subject], Fact]], Callable[[Subject], Fact]]:
    """Of a function of a subject: a fact about it, measured when first asked for and kept under this name."""

    def kept(measure: Callable[[Subject], Fact]) -> Callable[[Subject], Fact]:
        return functools.wraps(measure)(lambda subject: subject.once(name, lambda: measure(subject)))

    return kept


@dataclass(frozen=True)
class Subject:
    """A model with its data, loss and optimizer, or the weights of a checkpoint; checked when created.

    The checks: weights are finite, the forward pass runs, outputs and loss are finite; random answers in eval mode are
    noted. ``model`` may be compiled or wrapped for several devices: the model inside is used. Lazy layers are
    initialized from the data, on a copy. ``data`` is a DataLoader, a Dataset, tensors, a DataFrame, the path of an
    .npz, or any collection of batches that can be read again (see `Batches`). ``optimizer`` is the one that trains it,
    and gives learning rate and momentum; ``validation`` is held-out data; ``origin`` is the model, or its state dict,
    from before training; ``run`` is what is known of its training so far.

    For a checkpoint alone ``model`` is None and ``weights`` maps names to `Weight`; nothing is read at first, and tensors
    that turn out missing, damaged or not finite are named in ``faults``. For a low-rank adapter ``adapter`` has the
    factors of each module, and the weights are those of its file, or with a base those it changes. ``activation`` names
    what weights do not show. ``allowance`` is the time that measuring may take (unlimited unless a survey sets it);
    ``seen`` is what passes over the data have shown, shared by all instruments.
    """

    model: nn.Module | Any = None  # None of a checkpoint alone; who wants one says so in `needs`
    _: KW_ONLY
    data: Any = None
    loss: Callable[[Any, Any], Tensor] | Any = None
    lr: float | None = None
    momentum: float = 0.0
    optimizer: Any = None
    validation: Any = None
    origin: Any = None
    run: Run | None = None
    activation: str | None = None
    adapter: Mapping[str, Any] | None = None
    weights: Weights = field(default_factory=dict)
    name: str = ""
    checked: bool = True  # False: taken as it is, for a diagnosis, which finds faults itself
    store: Store = field(default_factory=Store, compare=False, repr=False)
    progress: Progress = field(default_factory=Progress, compare=False, repr=False)
    faults: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    allowance: Allowance = field(default_factory=Allowance, init=False, compare=False, repr=False)
    seen: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        model = bare_model(self.model)
        if model is not None and not is_module(model):
            raise InputTypeError(
                f"expected an nn.Module, got {type(model).__name__}; a path or weights go to th.survey"
            )
        self._set(model=model)
        check_loss_function(self.loss)
        check_lr(self.lr)
        check_optimizer(self.optimizer)
        if self.optimizer is not None and self.lr is None:
            self._set(**_step_of(self.optimizer))
        if model is None and (self.data is not None or not self.weights):
            raise InputError("expected a model to run the data through, got none; pass the nn.Module")
        if model is not None:
            self._take(model)
        if self.origin is not None and not are_weights(self.origin):
            self._set(origin=weights_of(self.origin))
        if self.checked:
            with untouched(self.model):
                self._check()

    def _take(self, model: nn.Module) -> None:
        """The data as batches of the model, the model made where it waits for its first one, and its weights."""
        model, data, loss = prepared(model, self.data, self.loss)
        data = as_batches(data, model)
        self._set(model=model, data=data, loss=loss, weights=weights_of(model), name=self.name or type(model).__name__)

    def has(self, need: str) -> bool:
        """Whether the subject can give what an instrument needs; of data that is read once, for a loader may start workers."""
        if need == "loss":
            return self.loss is not None and self.has("data") and self.once("targets", self._targets)
        if need == "data":
            return self.data is not None and not self.once("empty", lambda: self.data.empty)
        return bool(self.weights) if need == "weights" else getattr(self, need) is not None

    def _targets(self) -> bool:
        return self.data.first().target is not None

    def storing(self, folder: Path) -> Subject:
        """The same subject, not checked again, with what is found kept in this folder."""
        same = copy.copy(self)
        same._set(store=Store(folder))
        return same

    def within(self, allowance: Allowance) -> Subject:
        """The same subject, not checked again, read in at most this time; what was seen of it is shared."""
        same = copy.copy(self)
        same._set(allowance=allowance)
        return same

    def stepping(self, lr: float | None, momentum: float = 0.0) -> Subject:
        """The same subject, not checked again, with another step size."""
        same = copy.copy(self)
        same._set(lr=lr, momentum=momentum, seen={})
        return same

    def of_data(self, data: Any) -> Subject:
        """The same subject, not checked again, with other data of which nothing was measured yet."""
        same = copy.copy(self)
        same._set(data=data, seen={})
        return same

    def batches(self) -> Iterator[Batch]:
        """Every batch, on the model's device and in its precision."""
        assert self.model is not None and self.data is not None, "an instrument that reads data must say so in needs"
        return (batch.on(self.model) for batch in self.data)

    def output(self, batch: Batch) -> Any:
        """All that the model answers to a batch."""
        assert self.model is not None, "an instrument that runs the model must say so in its needs"
        return self.model(*batch.inputs, **batch.keywords)

    def answer(self, batch: Batch, model: nn.Module | None = None) -> Any:
        """What the loss is given: all that the model (or a copy of it) answers, or its ``logits`` where parts have names."""
        found = self.output(batch) if model is None else model(*batch.inputs, **batch.keywords)
        return part_for(self.loss, found)

    def loss_on(self, batch: Batch, model: nn.Module | None = None) -> Tensor:
        """The user's loss of the model, or of a copy of it, on a batch."""
        assert self.loss is not None, "an instrument that uses the loss must say so in its needs"
        return self.loss(self.answer(batch, model), batch.target)

    def once(self, name: str, measured: Callable[[], Any]) -> Any:
        """A fact about the subject, measured when first asked for and kept."""
        if name not in self.seen:
            self.seen[name] = measured()
        return self.seen[name]

    def at(self, model: nn.Module) -> Subject:
        """The same subject with another model of the same kind in its place, of which nothing was measured yet."""
        same = copy.copy(self)
        same._set(model=model, weights=weights_of(model), seen={})
        return same

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _check(self) -> None:
        if self.model is None:
            return
        for weight in self.weights.values():
            check_finite(weight.name, weight.read())
        if self.data is not None:
            batch = self.data.first().on(self.model)
            note = check_forward(self.output, batch)
            if note:
                self.seen["random"] = note
            if self.loss is not None and batch.target is not None:
                self._check_loss(batch)

    def check_runs(self) -> None:
        """Model and loss run on the first batch, in eval or in training mode; what is not finite is left to a diagnosis."""
        if self.model is None or self.data is None:
            return
        self._check_runs(self.data)
        if self.validation is not None:
            try:
                self._check_runs(as_batches(self.validation, self.model))
            except InputError as error:
                raise type(error)(f"{error} (in validation=)") from error

    def _check_runs(self, data: Any) -> None:
        assert self.model is not None
        with untouched(self.model):  # a loader that shuffles draws from the user's random numbers
            batch = data.first().on(self.model)
        try:
            self._run(batch)
        except NotFiniteError:
            return
        except InputError:
            tensors = (*self.model.parameters(), *batch.tensors(), *tensors_in(batch.target))
            if not all(is_finite_tensor(tensor) for tensor in tensors):
                return
            with contextlib.suppress(InputError):
                self._run(batch, training=True)
                return
            raise

    def _run(self, batch: Batch, *, training: bool = False) -> None:
        with untouched(self.model, training=training), torch.no_grad():
            ran_on(self.output, batch)
            if self.loss is not None and batch.target is not None:
                self._check_loss(batch)

    def _check_loss(self, batch: Batch) -> None:
        assert self.loss is not None
        with torch.no_grad():
            whole = self.output(batch)
            if takes_whole(self.loss, whole, batch.target):
                self._set(loss=OfWholeAnswer(self.loss))
            answer = part_for(self.loss, whole)
        check_labels(answer, batch.target, self.loss, self.data.target_column)
        try:
            check_loss(self.loss_on, batch)
        except NotFiniteError:
            raise
        except InputError:
            explain_refusal(answer, batch.target, self.loss)
            raise


def _step_of(optimizer: Any) -> dict[str, float | None]:
    """The step size of the group that takes the largest steps, and the momentum (of Adam its first beta)."""
    groups = optimizer.param_groups
    lr = max((float(group.get("lr", 0.0)) for group in groups), default=0.0)
    first = groups[0] if groups else {}
    betas = first.get("betas") or (0.0,)
    return {"lr": lr or None, "momentum": float(first.get("momentum", betas[0]) or 0.0)}
