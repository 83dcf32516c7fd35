"""The networks of the field, small enough for one core."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def mlp(*sizes: int, act: Callable[[], nn.Module] = nn.ReLU, end: nn.Module | None = None) -> nn.Sequential:
    """Linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        layers += [nn.Linear(fan_in, fan_out), *([act()] if i < len(sizes) - 2 else [])]
    return nn.Sequential(*layers, *([end] if end is not None else []))


def he_(model: nn.Module) -> nn.Module:
    """Weights with variance 2 / fan-in, biases 0."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)
    return model


def xavier_(model: nn.Module, gain: float = 1.0) -> nn.Module:
    """Weights as Glorot draws them, biases 0."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.xavier_normal_(module.weight, gain=gain)
            nn.init.zeros_(module.bias)
    return model


def normal_(model: nn.Module, std: float) -> nn.Module:
    """Weights of one deviation everywhere, biases 0."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.normal_(module.weight, std=std)
            nn.init.zeros_(module.bias)
    return model


def cnn(
    *,
    norm: str = "",
    act: Callable[[], nn.Module] = nn.ReLU,
    dropout: float = 0.0,
    classes: int = 10,
    momentum: float = 0.1,
) -> nn.Sequential:
    """Two convolutions and a linear layer for images of 8 x 8."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in ((1, 8), (8, 16)):
        layers.append(nn.Conv2d(fan_in, fan_out, 3, padding=1))
        if norm == "batch":
            layers.append(nn.BatchNorm2d(fan_out, momentum=momentum))
        if norm == "group":
            layers.append(nn.GroupNorm(4, fan_out))
        layers += [act(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), *([nn.Dropout(dropout)] if dropout else []), nn.Linear(64, classes)]
    return nn.Sequential(*layers)


class Rnn(nn.Module):
    """A recurrent network over (batch, time, features) whose last state is classified."""

    def __init__(self, cell: type[nn.RNNBase], features: int, hidden: int, classes: int, **options: Any):
        super().__init__()
        self.rnn = cell(features, hidden, **options)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class Attention(nn.Module):
    """Self-attention written out, with what people forget as options."""

    def __init__(self, width: int, heads: int, *, causal: bool, axis: int = -1, scaled: bool = True):
        super().__init__()
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal, self.axis, self.scaled = heads, causal, axis, scaled

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        n, t, width = x.shape
        q, k, v = self.into(x).view(n, t, self.heads, -1).transpose(1, 2).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1)
        if self.scaled:
            scores = scores * (width / self.heads) ** -0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -1e9)
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None, None, :], -1e9)
        return self.out((scores.softmax(self.axis) @ v).transpose(1, 2).reshape(n, t, width))


class Block(nn.Module):
    """Attention and two linear layers, each added to the stream; the norm before the branch or after the sum."""

    def __init__(self, width: int, heads: int = 2, *, post_norm: bool = False, **options: Any):
        super().__init__()
        self.attention = Attention(width, heads, **options)
        self.feed = mlp(width, 2 * width, width, act=nn.GELU)
        self.first, self.second, self.post_norm = nn.LayerNorm(width), nn.LayerNorm(width), post_norm

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        if self.post_norm:
            x = self.first(x + self.attention(x, hidden))
            return self.second(x + self.feed(x))
        x = x + self.attention(self.first(x), hidden)
        return x + self.feed(self.second(x))


class Transformer(nn.Module):
    """Symbols in, a row of logits at every place, or one row for the whole where `pooled`."""

    def __init__(
        self,
        symbols: int,
        outputs: int,
        *,
        width: int = 32,
        layers: int = 2,
        length: int = 32,
        positions: bool = True,
        pooled: bool = False,
        padding: int | None = None,  # the symbol that is not attended to
        causal: bool = False,
        **options: Any,
    ):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.places = nn.Embedding(length, width) if positions else None
        self.blocks = nn.ModuleList(Block(width, causal=causal, **options) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs)
        self.pooled, self.padding = pooled, padding

    def forward(self, x: Tensor) -> Tensor:
        hidden = None if self.padding is None else x == self.padding
        stream = self.embed(x)
        if self.places is not None:
            stream = stream + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            stream = block(stream, hidden)
        stream = self.norm(stream)
        if not self.pooled:
            return self.head(stream)
        if hidden is None:
            return self.head(stream.mean(1))
        kept = (~hidden).unsqueeze(-1).float()
        return self.head((stream * kept).sum(1) / kept.sum(1))


def token_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy over all places that count."""
    return F.cross_entropy(logits.flatten(0, -2), target.flatten())


class Residual(nn.Module):
    """A branch added to its input."""

    def __init__(self, branch: nn.Module):
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


class Call(nn.Module):
    """Any function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Vae(nn.Module):
    """An autoencoder with a Gaussian code; gives (reconstruction, mean, log-variance)."""

    def __init__(self, features: int = 64, hidden: int = 64, code: int = 8):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 2 * code))
        self.decode = mlp(code, hidden, features)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encode(x).chunk(2, dim=-1)
        noise = torch.randn_like(mean) if self.training else torch.zeros_like(mean)
        return self.decode(mean + noise * (0.5 * log_variance).exp()), mean, log_variance


class LoraLinear(nn.Module):
    """A frozen linear layer and two thin factors beside it."""

    def __init__(self, base: nn.Linear, rank: int = 4, scale: float = 2.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * base.in_features**-0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T
