"""A Lightning callback that watches the module while the Trainer fits it."""

import contextlib
import logging
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback

from theodolite.verbs.watching.alarms import Stopped
from theodolite.verbs.watching.watch import Watch

LOG = logging.getLogger("theodolite")


class WatchCallback(Callback):  # type: ignore[misc]  # of a package that need not be there
    """``Trainer(callbacks=[WatchCallback(every=100, page="run.html")])``; other keywords are those of `Watch`.

    ``probe`` is the first batch of training unless told; scalars go to the Trainer's logger where it has ``add_scalar``.
    Looks are taken before the step, on the first process only, with the Trainer's first optimizer; ``stop_on="critical"`` ends
    the fit. What is found is a line in the log, and so is the diagnosis at the end (``diagnose=False``: none). ``watch`` holds
    the `Watch` once training has begun; ``page`` is written at every look and at the end.
    """

    def __init__(
        self, *, probe: Any = None, page: str | Path | None = None, diagnose: bool = True, **options: Any
    ) -> None:
        super().__init__()
        self.probe, self.page, self.diagnose, self.options = probe, page, diagnose, options
        self.watch: Watch | None = None

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Look at the module if a look is due."""
        if not trainer.is_global_zero:
            return
        if self.watch is None:
            writer = getattr(trainer.logger, "experiment", None)
            told = {"writer": writer} if hasattr(writer, "add_scalar") else {}
            probe = batch if self.probe is None else self.probe
            optimizer = trainer.optimizers[0] if trainer.optimizers else None
            told |= {"optimizer": optimizer, "page_at": self.page}
            self.watch = Watch(pl_module, probe=probe, **{**told, **self.options})
        try:
            self.watch(trainer.global_step)
        except Stopped:
            trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """A last look, the diagnosis and the page."""
        if self.watch is None:
            return
        with contextlib.suppress(Stopped):
            self.watch.look(trainer.global_step)
        self.watch.close()
        if self.diagnose:
            LOG.warning("%s", self.watch.diagnosis.headline)
        if self.page is not None:
            self.watch.html(self.page)
