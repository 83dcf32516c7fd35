"""Lightning's Trainer, with its own loop."""

import logging
import tempfile
import warnings

import lightning.pytorch as lightning
import torch
from torch import nn
from torch.nn.functional import mse_loss

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        return mse_loss(self(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


lightning.seed_everything(3, verbose=False)
x = torch.randn(256, 5)
data = torch.utils.data.TensorDataset(x, x[:, :1] * x[:, 1:2])
model = Regression()
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=32, shuffle=True))
print(sum(p.double().sum().item() for p in model.parameters()))
