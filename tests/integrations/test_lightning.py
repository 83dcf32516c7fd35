"""A real Trainer, a few steps."""

import math

import lightning.pytorch as lightning
import pytest
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.integrations.lightning import WatchCallback

pytestmark = [  # Lightning's own: advice on loaders, and its use of a torch name that is on its way out
    pytest.mark.filterwarnings("ignore:.*does not have many workers.*"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
]


class Classifier(lightning.LightningModule):
    lr = 0.1

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        return cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.5)


def fitted(tmp_path, callbacks, logger=False):
    torch.manual_seed(0)
    x, y = torch.randn(48, 6), torch.arange(48) % 3
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=12)
    model = Classifier()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=1,
        logger=logger,
        callbacks=callbacks,
        enable_checkpointing=False,
        enable_progress_bar=False,
        log_every_n_steps=1,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(model, loader)
    return model


def test_a_fit_is_watched_and_left_as_it_was(tmp_path):
    page = tmp_path / "run.html"
    callback = WatchCallback(every=3, budget=math.inf, page=page, out=tmp_path / "watch")
    watched = fitted(tmp_path, [callback])
    alone = fitted(tmp_path, [])
    assert [record.step for record in callback.watch.records] == [0, 3, 6, 8]
    assert all(torch.equal(a, b) for a, b in zip(watched.parameters(), alone.parameters(), strict=True))
    record = callback.watch.records[-1]
    assert (record.lr, record.momentum) == (0.1, 0.5)
    assert record.value("largest Hessian eigenvalue") > 0
    assert record.value("relative distance from the starting weights") > 0
    assert "sharpness" in page.read_text()


def test_scalars_go_to_the_logger_of_the_trainer(tmp_path):
    logger = TensorBoardLogger(tmp_path, name="", version="")
    callback = WatchCallback(every=4, budget=math.inf, level="cheap")
    fitted(tmp_path, [callback], logger=logger)
    logger.experiment.flush()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert "theodolite/loss/loss-on-the-probe" in events.Tags()["scalars"]


def test_a_fit_that_goes_wrong_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(Classifier, "lr", 500.0)
    callback = WatchCallback(every=1, budget=math.inf, level="cheap", stop_on="critical")
    fitted(tmp_path, [callback])
    assert callback.watch.records[-1].step < 8
    assert callback.watch.findings[0].name == "step-too-large"
