"""A callback for the Trainer of transformers that watches the model while it trains."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import TrainerCallback

from theodolite.verbs.watching.alarms import Stopped
from theodolite.verbs.watching.watch import Watch


class WatchCallback(TrainerCallback):  # type: ignore[misc]  # of a package that need not be there
    """``Trainer(callbacks=[WatchCallback(every=100, page="run.html")])``; other keywords are those of `Watch`.

    ``probe`` is a batch as the collator makes it, labels among its keys: the first of training unless told. The loss is
    the cross-entropy of the logits with the labels, which is what classifiers train; for language models pass
    ``loss=next_token_loss``. Looks are taken before the step, on the first process only, with the Trainer's optimizer;
    ``stop_on="critical"`` ends the training. ``watch`` holds the `Watch` once training has begun; ``page`` is written at every
    look and at the end.
    """

    def __init__(self, *, probe: Any = None, page: str | Path | None = None, **options: Any) -> None:
        self.probe, self.page, self.options = probe, page, options
        self.watch: Watch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Choose the probe; the weights are those of the start."""
        if not state.is_world_process_zero:
            return
        probe = next(iter(kwargs["train_dataloader"])) if self.probe is None else self.probe
        if hasattr(probe, "items"):
            probe = {name: value for name, value in probe.items() if isinstance(value, Tensor)}
        told = {"optimizer": kwargs.get("optimizer"), "page_at": self.page}
        self.watch = Watch(kwargs["model"], probe=probe, **{**told, **self.options})

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look at the model if a look is due."""
        if self.watch is not None:
            try:
                self.watch(state.global_step)
            except Stopped:
                control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A last look, and the page."""
        if self.watch is None:
            return
        with contextlib.suppress(Stopped):
            self.watch.look(state.global_step)
        self.watch.close()
        if self.page is not None:
            self.watch.html(self.page)


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of each token given those before it; labels of -100 do not count.

    >>> import torch
    >>> round(next_token_loss(torch.zeros(1, 3, 4), torch.tensor([[0, 1, 2]])).item(), 4)  # log 4
    1.3863
    """
    return cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
