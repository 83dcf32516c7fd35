"""A callback for the Trainer of transformers, and those of TRL, that watches the model while it trains."""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss
from transformers import TrainerCallback

from theodolite.core.ailment import Finding
from theodolite.core.state import untouched
from theodolite.verbs.watching.alarms import Stopped
from theodolite.verbs.watching.watch import Watch

LOG = logging.getLogger("theodolite")
SAME = 1e-3
"""The relative difference of two losses that is rounding, in half precision too."""


class WatchCallback(TrainerCallback):  # type: ignore[misc]  # of a package that need not be there
    """``Trainer(callbacks=[WatchCallback()])``, or ``SFTTrainer(...)``; other keywords are those of `Watch`.

    ``probe`` is a batch as the collator makes it, labels among its keys: the first of training unless told. The loss is the
    model's own, told by trying which one of classes, next tokens or numbers gives the value that the model gives; pass ``loss``
    where it is another. Looks are taken before the step, on the first process only, with the Trainer's optimizer; what they find
    stands in the Trainer's ``log_history`` and in the log, and so does the diagnosis at the end (``diagnose=False``: none).
    ``stop_on="critical"`` ends the training. ``watch`` holds the `Watch` once training has begun; ``page`` is written at every
    look and at the end.
    """

    def __init__(
        self, *, probe: Any = None, page: str | Path | None = None, diagnose: bool = True, **options: Any
    ) -> None:
        self.probe, self.page, self.diagnose, self.options = probe, page, diagnose, options
        self.watch: Watch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Choose the probe; the weights are those of the start."""
        if not state.is_world_process_zero:
            return
        model = kwargs["model"]
        probe = self.probe
        if probe is None:
            with untouched(None):  # a loader that shuffles must not be asked for its order twice
                probe = next(iter(kwargs["train_dataloader"]))
        if hasattr(probe, "items"):
            probe = {name: value for name, value in probe.items() if isinstance(value, Tensor)}
        told = {"optimizer": kwargs.get("optimizer"), "page_at": self.page, **self.options}
        if "loss" not in told:
            told["loss"] = own_loss(model, probe)
        heard = told.pop("on_finding", None)

        def on_finding(step: int, finding: Finding) -> None:
            _log(state, step, finding)
            if heard is not None:
                heard(step, finding)

        self.watch = Watch(model, probe=probe, on_finding=on_finding, **told)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look at the model if a look is due."""
        if self.watch is not None:
            try:
                self.watch(state.global_step)
            except Stopped:
                control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A last look, the diagnosis and the page."""
        if self.watch is None:
            return
        with contextlib.suppress(Stopped):
            self.watch.look(state.global_step)
        self.watch.close()
        if self.diagnose:
            found = self.watch.diagnosis
            LOG.warning("%s", found.headline)
            for finding in found.findings:
                _log(state, state.global_step, finding)
        if self.page is not None:
            self.watch.html(self.page)


def _log(state: Any, step: int, finding: Finding) -> None:
    """A finding as a row of what the Trainer has logged."""
    told = {"finding": finding.name, "severity": finding.severity, "says": finding.says, "remedy": finding.remedy}
    state.log_history.append({"step": step, **{f"theodolite/{name}": value for name, value in told.items()}})


def own_loss(model: Any, probe: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of logits and labels that gives what the model itself says; that of classes where none does."""
    labels = probe.get("labels") if hasattr(probe, "get") else None
    if not isinstance(labels, Tensor):
        return class_loss
    device = next(model.parameters()).device
    with untouched(model), torch.no_grad():
        found = model(**{name: value.to(device) for name, value in probe.items()})
        for loss in (next_token_loss, class_loss, number_loss):
            with contextlib.suppress(RuntimeError, ValueError, IndexError):
                value = float(loss(found["logits"], labels.to(device)))
                if abs(value - float(found["loss"])) <= SAME * abs(value):
                    return loss
    return class_loss


def class_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of classes, or of the tokens at all places; labels of -100 do not count."""
    return cross_entropy(logits.flatten(0, -2).float(), labels.flatten())


def number_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean square of one number a sample."""
    return mse_loss(logits.reshape(labels.shape).float(), labels.float())


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of each token given those before it; labels of -100 do not count.

    >>> import torch
    >>> round(next_token_loss(torch.zeros(1, 3, 4), torch.tensor([[0, 1, 2]])).item(), 4)  # log 4
    1.3863
    """
    if logits.ndim < 3:
        raise ValueError(f"expected logits (samples, places, tokens), got {tuple(logits.shape)}")
    return cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
