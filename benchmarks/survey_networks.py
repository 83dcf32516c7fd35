"""Networks that people have, written out: what the benchmarks of the survey are run on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Case = tuple[nn.Module, Any]


class BasicBlock(nn.Module):
    """Two convolutions with batch normalization beside an identity (he2016)."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(given, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.downsample = (
            nn.Sequential(nn.Conv2d(given, width, 1, stride, bias=False), nn.BatchNorm2d(width))
            if stride != 1 or given != width
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways."""
        inner = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(inner + self.downsample(x))


class ResNet18(nn.Module):
    """Eighteen layers, 11 million parameters, in the form for images of 32 x 32 pixels."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()
        widths, blocks = (64, 64, 128, 256, 512), []
        for place in range(4):
            stride = 1 if place == 0 else 2
            blocks += [BasicBlock(widths[place], widths[place + 1], stride)]
            blocks += [BasicBlock(widths[place + 1], widths[place + 1], 1)]
        self.blocks = nn.Sequential(*blocks)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return self.fc(self.pool(self.blocks(self.relu(self.bn1(self.conv1(x))))).flatten(1))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """Tokens or patches through an encoder; the mean over positions is read out."""

    def __init__(self, embed: nn.Module, *, positions: int, layers: int, norm_first: bool, classes: int = 10) -> None:
        super().__init__()
        self.embed = embed
        self.place = nn.Parameter(0.02 * torch.randn(1, positions, 128))
        layer = nn.TransformerEncoderLayer(
            128, 4, 512, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(128, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        seen = self.embed(x)
        seen = seen.flatten(2).transpose(1, 2) if seen.ndim == 4 else seen
        return self.head(self.encoder(seen + self.place).mean(1))  # type: ignore[no-any-return]


class Recurrent(nn.Module):
    """Rows of an image one after another through an LSTM; its last state is read out."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(96, 128, 2, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        return self.head(self.lstm(x.transpose(1, 2).flatten(2))[0][:, -1])  # type: ignore[no-any-return]


def perceptron(hidden_layers: int = 40, width: int = 128) -> nn.Sequential:
    """A deep chain of linear layers and ReLUs, critically initialized."""
    sizes = [3072, *[width] * hidden_layers, 10]
    parts: list[nn.Module] = [nn.Flatten()]
    for place, (given, made) in enumerate(pairwise(sizes)):
        linear = nn.Linear(given, made)
        nn.init.normal_(linear.weight, std=(2 / given) ** 0.5)
        nn.init.zeros_(linear.bias)
        parts += [linear, nn.ReLU()] if place < len(sizes) - 2 else [linear]
    return nn.Sequential(*parts)


def images(folder: Path | None, count: int = 256) -> tuple[Tensor, Tensor]:
    """CIFAR-10 pictures from a folder with ``train_first5000.png``, else noise of their shape with a class each."""
    if folder is not None and (folder / "train_first5000.png").exists():
        from PIL import Image

        pixels = np.asarray(Image.open(folder / "train_first5000.png"))[:count].reshape(count, 32, 32, 3)
        labels = np.frombuffer((folder / "train_first5000_labels.u8").read_bytes(), dtype=np.uint8)[:count]
        x = torch.from_numpy(pixels.astype(np.float32) / 255).permute(0, 3, 1, 2).contiguous()
        return (x - 0.47) / 0.25, torch.from_numpy(labels.astype(np.int64))
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 10, (count,), generator=generator)
    means = torch.randn(10, 3, 32, 32, generator=generator)
    return torch.randn(count, 3, 32, 32, generator=generator) + 0.5 * means[y], y


def tokens(count: int = 256, length: int = 64, words: int = 1000) -> tuple[Tensor, Tensor]:
    """Sentences of random words; the class is that of the first one."""
    x = torch.randint(0, words, (count, length), generator=torch.Generator().manual_seed(0))
    return x, x[:, 0] % 10


def trained_a_little(model: nn.Module, data: tuple[Tensor, Tensor], *, steps: int, lr: float) -> nn.Module:
    """Some steps of SGD, so that running means of normalizations and the loss are not those of the first moment."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for step in range(steps):
        rows = torch.arange(32) + 32 * (step % (len(data[0]) // 32))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0][rows]), data[1][rows]).backward()
        optimizer.step()
    return model.eval()


def network(name: str, folder: Path | None = None) -> Case:
    """One of the networks by name, with 256 samples."""
    torch.manual_seed(0)
    made: dict[str, Callable[[], nn.Module]] = {
        "resnet18": ResNet18,
        "vit": lambda: Transformer(nn.Conv2d(3, 128, 4, 4), positions=64, layers=6, norm_first=True),
        "bert": lambda: Transformer(nn.Embedding(1000, 128), positions=64, layers=6, norm_first=False),
        "lstm": Recurrent,
        "mlp40": perceptron,
    }
    data = tokens() if name == "bert" else images(folder)
    return trained_a_little(made[name](), data, steps=16, lr=0.01), data


NAMES = ("resnet18", "vit", "bert", "lstm", "mlp40")
