"""What the user has: a model with its data, loss and step size, or only the weights of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.batches import Batch, Batches
from theodolite.probe import check_finite, check_forward, check_loss, check_made
from theodolite.state import untouched


@dataclass(frozen=True)
class Weight:
    """One named tensor of a model or checkpoint; ``read()`` brings it into memory, nothing else does."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[], Tensor] = field(repr=False)


Weights = Mapping[str, Weight]


def weights_of(tensors: nn.Module | Mapping[str, Tensor]) -> dict[str, Weight]:
    """The parameters of a module (tied ones once), or the tensors of a state dict."""
    pairs = list(tensors.named_parameters() if isinstance(tensors, nn.Module) else tensors.items())
    for name, tensor in pairs:
        check_made(name, tensor)
    return {name: Weight(name, tuple(t.shape), t.dtype, t.detach) for name, t in pairs}


@dataclass(frozen=True)
class Subject:
    """Checked once when made: weights finite, forward runs, deterministic in eval mode, outputs and loss finite.

    ``data`` is a DataLoader, a Dataset, tensors, or any collection of batches that can be read again (see `Batches`).
    ``origin`` is the model, or its state dict, as it was before training. ``activation`` names the nonlinearity where
    it cannot be seen, as in a bare checkpoint: then ``model`` is None and ``weights`` maps names to `Weight`.
    """

    model: nn.Module | None = None
    _: KW_ONLY
    data: Any = None
    loss: Callable[[Any, Any], Tensor] | None = None
    lr: float | None = None
    momentum: float = 0.0
    origin: Any = None
    activation: str | None = None
    weights: Weights = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        model = self.model
        if model is not None and not isinstance(model, nn.Module):
            raise TypeError(f"expected an nn.Module, got {type(model).__name__}; for a file use theodolite.load.target")
        if model is None and (self.data is not None or not self.weights):
            raise ValueError("expected a model to run the data through, got none; pass the nn.Module")
        if self.lr is not None and not self.lr > 0:
            raise ValueError(f"expected a positive learning rate, got {self.lr}; pass the one that training uses")
        if model is not None:
            self._set(weights=weights_of(model), name=self.name or type(model).__name__)
            if self.data is not None and not isinstance(self.data, Batches):
                self._set(data=Batches(self.data, model))
        if self.origin is not None and not _are_weights(self.origin):
            self._set(origin=weights_of(self.origin))
        with untouched(model):
            self._check()

    def has(self, need: str) -> bool:
        """Whether the subject can give what an instrument needs."""
        if need == "loss":
            return self.loss is not None and self.data is not None and self.data.first().target is not None
        return bool(self.weights) if need == "weights" else getattr(self, need) is not None

    def batches(self) -> Iterator[Batch]:
        """Every batch, on the model's device and in its precision."""
        assert self.model is not None and self.data is not None, "an instrument that reads data must say so in needs"
        return (batch.on(self.model) for batch in self.data)

    def output(self, batch: Batch) -> Any:
        """All that the model answers to a batch."""
        assert self.model is not None, "an instrument that runs the model must say so in its needs"
        return self.model(*batch.inputs, **batch.keywords)

    def loss_on(self, batch: Batch) -> Tensor:
        """The user's loss on a batch; of an answer with named parts the loss is given ``logits``."""
        assert self.loss is not None, "an instrument that uses the loss must say so in its needs"
        answer = self.output(batch)
        named = isinstance(answer, Mapping) and "logits" in answer
        return self.loss(answer["logits"] if named else answer, batch.target)

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _check(self) -> None:
        for weight in self.weights.values():
            check_finite(weight.name, weight.read())
        if self.model is not None and self.data is not None:
            batch = self.data.first().on(self.model)
            check_forward(self.output, batch)
            if self.loss is not None and batch.target is not None:
                check_loss(self.loss_on, batch)


def _are_weights(origin: Any) -> bool:
    return isinstance(origin, Mapping) and all(isinstance(weight, Weight) for weight in origin.values())
