"""The networks of the clinic, each a function of the data it is for; `stack` is the plain deep one that ailments grow in."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .data import LENGTH, Data

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU, "silu": nn.SiLU}
Network = Callable[[Data], nn.Module]


def draw(model: nn.Module, *, weight_variance: float, bias_variance: float = 0.0) -> None:
    """All matrices and kernels anew: normal, this variance over fan-in; biases normal of their variance."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.normal_(module.weight, std=math.sqrt(weight_variance / module.weight[0].numel()))
            if module.bias is not None:
                nn.init.normal_(module.bias, std=math.sqrt(bias_variance))


def mlp(*widths: int, activation: str = "relu", norm: str = "", dropout: float = 0.0) -> Network:
    """Hidden layers of these widths and a linear output."""

    def network(data: Data) -> nn.Module:
        layers: list[nn.Module] = [nn.Flatten()]
        before = data.x[0].numel()
        for width in widths:
            layers.append(nn.Linear(before, width))
            layers += [{"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}[norm](width)] if norm else []
            layers += [ACTIVATIONS[activation](), *([nn.Dropout(dropout)] if dropout else [])]
            before = width
        return nn.Sequential(*layers, nn.Linear(before, data.outputs))

    return network


def cnn(*channels: int, activation: str = "relu", norm: bool = False, dropout: float = 0.0, pool: int = 3) -> Network:
    """3 x 3 convolutions, the first `pool` of them each followed by a halving while there are four pixels, and a head."""

    def network(data: Data) -> nn.Module:
        layers: list[nn.Module] = []
        before, side = data.x.shape[1], data.x.shape[-1]
        for place, width in enumerate(channels):
            layers += [
                nn.Conv2d(before, width, 3, padding=1, bias=not norm),
                *([nn.BatchNorm2d(width)] if norm else []),
            ]
            layers.append(ACTIVATIONS[activation]())
            if side >= 4 and place < pool:
                layers.append(nn.MaxPool2d(2))
                side //= 2
            before = width
        layers += [nn.Flatten(), *([nn.Dropout(dropout)] if dropout else []), nn.Linear(before * side**2, data.outputs)]
        return nn.Sequential(*layers)

    return network


class Residual(nn.Module):
    """x + f(x)."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


def resnet(width: int = 12, blocks: int = 3, *, momentum: float = 0.1) -> Network:
    """A stem, blocks of two convolutions with a path around them, an average over pixels."""

    def network(data: Data) -> nn.Module:
        def conv(inputs: int) -> list[nn.Module]:
            return [nn.Conv2d(inputs, width, 3, padding=1, bias=False), nn.BatchNorm2d(width, momentum=momentum)]

        body: list[nn.Module] = [*conv(data.x.shape[1]), nn.ReLU(), nn.MaxPool2d(2)]
        for _ in range(blocks):
            body += [Residual(nn.Sequential(*conv(width), nn.ReLU(), *conv(width))), nn.ReLU()]
        return nn.Sequential(*body, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, data.outputs))

    return network


class Attention(nn.Module):
    """Softmax attention with four heads."""

    def __init__(self, width: int, *, causal: bool):
        super().__init__()
        self.mixed = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.mixed(x).view(n, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    """A transformer's block, normalized first; without its paths around when `skip` is false."""

    def __init__(self, width: int, *, causal: bool, skip: bool = True, dropout: float = 0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, causal=causal)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(dropout)
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.dropout(self.attention(self.norm1(x)))
        x = x + mixed if self.skip else mixed
        changed = self.dropout(self.mlp(self.norm2(x)))
        return x + changed if self.skip else changed


class Transformer(nn.Module):
    """Embedding and places, blocks, a norm, a head on every place or on their mean."""

    def __init__(self, embed: nn.Module, places: int, width: int, outputs: int, blocks: list[Block], *, every: bool):
        super().__init__()
        self.embed = embed
        self.places = nn.Parameter(0.1 * torch.randn(places, width))
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, outputs)
        self.every = every

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        x = self.norm(self.blocks(x + self.places[: x.shape[1]]))
        return self.head(x if self.every else x.mean(1))


class Patches(nn.Module):
    """An image cut into squares, each mapped linearly."""

    def __init__(self, side: int, stride: int, channels: int, width: int):
        super().__init__()
        self.map = nn.Conv2d(channels, width, side, stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x).flatten(2).transpose(1, 2)


def vit(width: int = 32, depth: int = 2, *, skip: bool = True, dropout: float = 0.0) -> Network:
    def network(data: Data) -> nn.Module:
        side, stride = {8: (2, 2), 14: (4, 3), 16: (4, 4)}[
            data.x.shape[-1]
        ]  # sixteen squares; of 14 pixels they overlap
        blocks = [Block(width, causal=False, skip=skip, dropout=dropout) for _ in range(depth)]
        patches = Patches(side, stride, data.x.shape[1], width)
        return Transformer(patches, 16, width, data.outputs, blocks, every=False)

    return network


def encoder(width: int = 32, depth: int = 2, *, skip: bool = True, dropout: float = 0.0) -> Network:
    def network(data: Data) -> nn.Module:
        blocks = [Block(width, causal=False, skip=skip, dropout=dropout) for _ in range(depth)]
        return Transformer(nn.Embedding(27, width), LENGTH, width, data.outputs, blocks, every=False)

    return network


def decoder(width: int = 32, depth: int = 2, *, skip: bool = True, dropout: float = 0.0) -> Network:
    def network(data: Data) -> nn.Module:
        blocks = [Block(width, causal=True, skip=skip, dropout=dropout) for _ in range(depth)]
        places = data.x.shape[1]
        return Transformer(nn.Embedding(data.outputs, width), places, width, data.outputs, blocks, every=True)

    return network


class Recurrent(nn.Module):
    """A recurrent layer read at its last place."""

    def __init__(self, cell: nn.RNNBase, embed: nn.Module, outputs: int):
        super().__init__()
        self.embed = embed
        self.cell = cell
        self.head = nn.Linear(cell.hidden_size, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(self.embed(x))[0][:, -1])


def recurrent(kind: str = "lstm", width: int = 32, layers: int = 1) -> Network:
    def network(data: Data) -> nn.Module:
        words = not data.x.is_floating_point()
        inputs = 16 if words else data.x.shape[-1]
        cell = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind](inputs, width, layers, batch_first=True)
        return Recurrent(cell, nn.Embedding(27, inputs) if words else nn.Identity(), data.outputs)

    return network


def autoencoder(*widths: int, activation: str = "relu") -> Network:
    """Down through these widths and up again; the last is the code."""
    *outer, _ = widths
    return mlp(*widths, *reversed(outer), activation=activation)


def stack(
    depth: int, width: int = 64, *, activation: str = "relu", gain: float | None = None, norm: str = ""
) -> Network:
    """A plain deep network; gain is the variance of a weight times fan-in, PyTorch's own (one third) where not given."""

    def network(data: Data) -> nn.Module:
        model = mlp(*(width,) * depth, activation=activation, norm=norm)(data)
        if gain is not None:
            draw(model, weight_variance=gain)
        return model

    return network


def conv_stack(depth: int, width: int = 12, *, activation: str = "relu", gain: float | None = None) -> Network:
    """A plain deep convolutional network; gain as in `stack`."""

    def network(data: Data) -> nn.Module:
        model = cnn(*(width,) * depth, activation=activation, pool=2)(data)
        if gain is not None:
            draw(model, weight_variance=gain)
        return model

    return network
