"""Ailments of language models and of losses of many shapes in forms that their tests do not have, each with a healthy twin.

    PYTHONPATH=src python -m benchmarks.other_forms [--out FILE] [case ...]

Of the sick one the ailment must be the first thing named, of its twin nothing above a note may be said. Other architectures than
in the tests, other shapes of batches (several inputs, mappings, parts with names) and of losses; each is watched in a plain loop
and takes 2 to 20 seconds on a quiet core.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from benchmarks.language import Gpt, token_loss, windows
from sklearn.datasets import load_digits
from torch import Tensor, nn

import theodolite as th

CONTEXT, VOCABULARY = 32, 256
CASES: dict[str, tuple[Callable[[bool], Any], str]] = {}


def case(name: str, wanted: str) -> Callable[[Callable[[bool], Any]], Callable[[bool], Any]]:
    def kept(build: Callable[[bool], Any]) -> Callable[[bool], Any]:
        CASES[name] = (build, wanted)
        return build

    return kept


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def picked(data: Any, rows: Tensor) -> Any:
    """Some rows of a tensor, or of each of a tuple or a mapping."""
    if isinstance(data, Tensor):
        return data[rows]
    return {k: v[rows] for k, v in data.items()} if isinstance(data, Mapping) else tuple(v[rows] for v in data)


def batch_of(inputs: Any, target: Any) -> Any:
    return {**inputs, "labels": target} if isinstance(inputs, Mapping) else [(inputs, target)]


def answered(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def fitted(
    model: nn.Module,
    data: tuple[Any, Any],
    held: tuple[Any, Any],
    loss: Callable[[Any, Any], Tensor],
    optimizer: torch.optim.Optimizer,
    steps: int,
    *,
    batch: int = 32,
    schedule: Any = None,
) -> th.Watch:
    """A watched training of so many steps."""
    inputs, target = data
    members = inputs.values() if isinstance(inputs, Mapping) else (inputs,) if isinstance(inputs, Tensor) else inputs
    count = len(next(iter(members)))
    first = torch.arange(64)
    watch = th.Watch(
        model,
        probe=batch_of(picked(inputs, first), picked(target, first)),
        loss=loss,
        optimizer=optimizer,
        validation=batch_of(*held),
        every=steps // 8,
        level="cheap",
    )
    model.train()
    draw = drawn()
    for step in range(steps):
        rows = torch.randint(0, count, (batch,), generator=draw)
        value = loss(answered(model, picked(inputs, rows)), picked(target, rows))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        watch(step)
    watch.look(steps)
    return watch


def adam(model: nn.Module, lr: float) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr)


def digits() -> tuple[Tensor, Tensor]:
    found = load_digits()
    order = torch.randperm(len(found.target), generator=drawn())
    return torch.tensor(found.images / 16, dtype=torch.float32)[order][:, None], torch.tensor(found.target)[order]


def split(x: Any, y: Any, count: int = 1400) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    rows = torch.arange(len(y))
    return (picked(x, rows[:count]), picked(y, rows[:count])), (picked(x, rows[count:]), picked(y, rows[count:]))


def text(count: int, held_out: bool) -> Tensor:
    return windows(count, CONTEXT, int(held_out), held_out=held_out)


def small_gpt2() -> nn.Module:
    sizes = {"vocab_size": VOCABULARY, "n_positions": CONTEXT, "n_embd": 48, "n_layer": 2, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))


def shifted(answer: Any, labels: Tensor) -> Tensor:
    """The loss that a causal model of transformers computes inside."""
    return token_loss(answer.logits[:, :-1], labels[:, 1:])


class Translator(nn.Module):
    def __init__(self, tokens: int = 20, width: int = 48) -> None:
        super().__init__()
        self.source, self.said = nn.Embedding(tokens, width), nn.Embedding(tokens, width)
        self.reads, self.says = (nn.GRU(width, width, batch_first=True) for _ in range(2))
        self.out = nn.Linear(width, tokens)

    def forward(self, source: Tensor, said: Tensor) -> Tensor:
        return self.out(self.says(self.said(said), self.reads(self.source(source))[1])[0])


def reversals(count: int, seed: int) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Rows of up to ten tokens and the same backwards, in up to 26 places: 17 ends, 18 begins, 19 is padding."""
    draw = drawn(seed)
    source = torch.randint(0, 10, (count, 10), generator=draw)
    sizes = torch.randint(3, 11, (count,), generator=draw).tolist()
    said = torch.full((count, 27), 19)
    said[:, 0] = 18
    for row, size in enumerate(sizes):
        source[row, size:] = 19
        said[row, 1 : size + 1], said[row, size + 1] = source[row, :size].flip(0), 17
    return (source, said[:, :-1].contiguous()), said[:, 1:].contiguous()


@case("padding of a translator", "padding-counted")
def _(sick: bool) -> Any:
    model, ignored = Translator(), -100 if sick else 19
    loss = lambda o, y: F.cross_entropy(o.flatten(0, 1), y.flatten(), ignore_index=ignored)  # noqa: E731
    return fitted(model, reversals(2000, 0), reversals(300, 1), loss, adam(model, 5e-3), 400)


def padded_text(count: int, seed: int, *, left: bool, counted: bool) -> tuple[dict[str, Tensor], Tensor]:
    rows = windows(count, CONTEXT - 1, seed, held_out=seed > 0)
    size, place = torch.randint(6, 16, (count, 1), generator=drawn(seed)), torch.arange(CONTEXT)
    real = place >= CONTEXT - size if left else place < size
    ids = rows.where(real, torch.zeros_like(rows))
    return {"input_ids": ids, "attention_mask": real.long()}, ids if counted else ids.where(
        real, torch.full_like(ids, -100)
    )


def padded_gpt2(sick: bool, *, left: bool) -> Any:
    model = small_gpt2()
    data, held = (padded_text(n, seed, left=left, counted=sick) for n, seed in ((1500, 0), (200, 1)))
    return fitted(model, data, held, shifted, adam(model, 3e-3), 300)


case("padding before the text", "padding-counted")(lambda sick: padded_gpt2(sick, left=True))
case("padding behind the text", "padding-counted")(lambda sick: padded_gpt2(sick, left=False))


def sentences(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of tokens, which of them are real, and whether most of these are small."""
    draw = drawn(seed)
    x, size = torch.randint(2, 40, (count, 24), generator=draw), torch.randint(3, 25, (count, 1), generator=draw)
    real = torch.arange(24) < size
    return x.where(real, torch.zeros_like(x)), real.long(), (((x < 20) & real).sum(1) > size[:, 0] / 2).long()


@case("BERT without its mask", "attention-unmasked")
def _(sick: bool) -> Any:
    sizes = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, intermediate_size=64, max_position_embeddings=24, pad_token_id=0)
    model = transformers.BertForSequenceClassification(config)

    def rows(count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        x, mask, y = sentences(count, seed)
        return {"input_ids": x, "attention_mask": torch.ones_like(mask) if sick else mask}, y

    loss = lambda o, y: F.cross_entropy(o.logits, y)  # noqa: E731
    return fitted(model, rows(1500, 0), rows(300, 1), loss, adam(model, 1e-3), 300)


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Of a normal code from the standard one."""
    return -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()


class TextVae(nn.Module):
    """A text through a code, read from it by a network that is given the text so far."""

    def __init__(self, width: int = 48, code: int = 8) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY)
        self.reads, self.says = (nn.GRU(width, width, batch_first=True) for _ in range(2))
        self.code, self.start = nn.Linear(width, 2 * code), nn.Linear(code, width)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        h = self.words(x)
        mean, log_variance = self.code(self.reads(h)[1][0]).chunk(2, -1)
        z = mean + torch.randn_like(mean) * (log_variance / 2).exp() * self.training
        logits = self.out(self.says(F.pad(h[:, :-1], (0, 0, 1, 0)), self.start(z)[None])[0])
        return {"logits": logits, "mean": mean, "log_variance": log_variance}


@case("a VAE of text", "posterior-collapsed")
def _(sick: bool) -> Any:
    model, patterns = TextVae(), torch.randint(97, 123, (8, 12), generator=drawn())

    def rows(count: int, seed: int) -> tuple[Tensor, Tensor]:
        x = patterns[torch.randint(0, 8, (count,), generator=drawn(seed))]
        noise = torch.randint(97, 123, x.shape, generator=drawn(seed + 90))
        x = x.where(torch.rand(x.shape, generator=drawn(seed + 50)) > 0.1, noise)
        return x, x

    def loss(o: Any, y: Tensor) -> Tensor:
        return token_loss(o["logits"], y) + (30.0 if sick else 0.02) * divergence(o["mean"], o["log_variance"])

    return fitted(model, rows(1500, 1), rows(300, 2), loss, adam(model, 5e-3), 400)


class ImageVae(nn.Module):
    """Answers with the image, the input, and mean and log variance of a code from which it always draws."""

    def __init__(self, code: int = 6) -> None:
        super().__init__()
        self.reads = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 2 * code))
        self.draws = nn.Sequential(
            nn.Linear(code, 256), nn.ReLU(), nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 1, 4, 2, 1)
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        mean, log_variance = self.reads(x).chunk(2, -1)
        return [self.draws(mean + torch.randn_like(mean) * (log_variance / 2).exp()), x, mean, log_variance]


@case("a VAE of images", "posterior-collapsed")
def _(sick: bool) -> Any:
    model, (x, _) = ImageVae(), digits()
    loss = lambda o, y: F.mse_loss(o[0], y) + (5.0 if sick else 1e-3) * divergence(o[2], o[3])  # noqa: E731
    return fitted(model, *split(x, x), loss, adam(model, 3e-3), 400)


class Towers(nn.Module):
    """Two encoders of two kinds of inputs, and a scale of its own."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
        self.other = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 16))
        self.scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    def forward(self, image: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return F.normalize(self.image(image), dim=-1), F.normalize(self.other(other), dim=-1), self.scale.exp()


def towers(sick: bool, temperature: float) -> Any:
    model, (x, y) = Towers(temperature if sick else 0.07), digits()
    other = x.flatten(1) @ torch.randn(64, 12, generator=drawn(3)) / 8
    other = other + 0.02 * torch.randn(other.shape, generator=drawn(4))

    def loss(o: Any, _: Tensor) -> Tensor:
        logits, own = o[2] * o[0] @ o[1].T, torch.arange(len(o[0]))
        return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2

    return fitted(model, *split((x, other), torch.zeros(len(y))), loss, adam(model, 1e-3), 300, batch=64)


case("two towers, far too hot", "temperature-off")(lambda sick: towers(sick, 100.0))
case("two towers, far too cold", "temperature-off")(lambda sick: towers(sick, 1e-4))


def pretrained(model: nn.Module, lr: float, steps: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The model trained on half of the digits, and all of them."""
    x, y = digits()
    own, optimizer = torch.where(y[:1400] < 5)[0], adam(model, lr)
    for step in range(steps):
        rows = own[torch.randint(0, len(own), (32,), generator=drawn(step))]
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    model.requires_grad_(False)
    return split(x, y)


@case("a new head frozen with the rest", "frozen-by-mistake")
def _(sick: bool) -> Any:
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3, 1, 1), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 32, 3, 2, 1), nn.BatchNorm2d(32),
        nn.ReLU(), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 5),
    )  # fmt: skip
    data = pretrained(model, 3e-3, 300)
    model[9] = nn.Linear(64, 10).requires_grad_(not sick)
    for norm in (model[1], model[4]):
        norm.requires_grad_(True)
    own = [p for p in model.parameters() if p.requires_grad]
    return fitted(model, *data, F.cross_entropy, torch.optim.SGD(own, 0.05, momentum=0.9), 300)


class Patches(nn.Module):
    """A transformer over patches of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.place = nn.Conv2d(1, 32, 2, 2), nn.Parameter(0.02 * torch.randn(16, 32))
        layer = nn.TransformerEncoderLayer(32, 2, 64, 0.0, batch_first=True, norm_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.cut(x).flatten(2).transpose(1, 2) + self.place).mean(1))


@case("validation images not scaled", "validation-differs")
def _(sick: bool) -> Any:
    model, (data, (x, y)) = Patches(), split(*digits())
    return fitted(model, data, (255 * x if sick else x, y), F.cross_entropy, adam(model, 3e-3), 300)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.rnn = nn.Embedding(VOCABULARY, 32), nn.GRU(32, 48, batch_first=True)
        self.out = nn.Linear(48, VOCABULARY)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.out(self.rnn(self.words(input_ids))[0])


def next_tokens(rows: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    return {"input_ids": rows[:, :-1]}, rows[:, 1:].contiguous()


@case("validation text in capitals", "validation-differs")
def _(sick: bool) -> Any:
    model, held = Recurrent(), text(300, True)
    held = held.where((held < 97) | (held > 122) | (not sick), held - 32)
    return fitted(model, next_tokens(text(1500, False)), next_tokens(held), token_loss, adam(model, 5e-3), 300)


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.first, self.last, self.act = nn.Linear(inputs, 64), nn.Linear(64, outputs), activation()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), activation(), nn.Linear(64, 64)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        h = self.act(self.first(x))
        for block in self.blocks:
            h = h + block(h)
        return self.last(h)


@case("a sound over time", "target-too-rough")
def _(sick: bool) -> Any:
    model, pitch = Residual(1, 1, nn.Tanh), math.pi * (40 if sick else 0.6)

    def rows(count: int, seed: int) -> tuple[Tensor, Tensor]:
        t = 2 * torch.rand(count, 1, generator=drawn(seed)) - 1
        return t, 0.7 * (pitch * t).sin() + 0.3 * (pitch / 3 * t).cos()

    return fitted(model, rows(3000, 0), rows(500, 1), F.mse_loss, adam(model, 2e-3), 500, batch=64)


@case("a checkerboard of classes", "target-too-rough")
def _(sick: bool) -> Any:
    model, squares = Residual(2, 2, nn.GELU), 7 if sick else 1

    def rows(count: int, seed: int) -> tuple[Tensor, Tensor]:
        x = 2 * torch.rand(count, 2, generator=drawn(seed)) - 1
        return x, (squares * x).floor().sum(1).long() % 2

    return fitted(model, rows(4000, 0), rows(600, 1), F.cross_entropy, adam(model, 2e-3), 500, batch=64)


class PostNorm(nn.Module):
    """Twelve layers, normalized after the residual, over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.place = nn.Linear(8, 48), nn.Parameter(0.1 * torch.randn(8, 48))
        layer = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), nn.Linear(48, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.rows(x[:, 0]) + self.place).mean(1))


@case("twelve post-norm layers", "warm-up-missing")
def _(sick: bool) -> Any:
    model = PostNorm()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    warm = 1 if sick else 100
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warm))
    return fitted(model, *split(*digits()), F.cross_entropy, optimizer, 400, schedule=schedule)


@case("a decay of epochs after each batch", "schedule-ended")
def _(sick: bool) -> Any:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8 if sick else 0.8 ** (1 / 44))
    return fitted(model, *split(*digits()), F.cross_entropy, optimizer, 400, schedule=schedule)


@case("a polynomial over one epoch", "schedule-ended")
def _(sick: bool) -> Any:
    model = Recurrent()
    optimizer = adam(model, 5e-3)
    schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, 20 if sick else 400)
    data, held = next_tokens(text(1500, False)), next_tokens(text(300, True))
    return fitted(model, data, held, token_loss, optimizer, 300, schedule=schedule)


class AdaptedConvolution(nn.Module):
    def __init__(self, base: nn.Conv2d, rank: int, gain: float) -> None:
        super().__init__()
        self.base, self.gain = base, gain
        self.squeeze = nn.Conv2d(base.in_channels, rank, 3, base.stride, 1, bias=False)
        self.expand = nn.Conv2d(rank, base.out_channels, 1, bias=False)
        nn.init.zeros_(self.expand.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.gain * self.expand(self.squeeze(x))


@case("adapters of convolutions, scaled by 4 // 8", "adapter-idle")
def _(sick: bool) -> Any:
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
    )
    data = pretrained(model, 2e-3, 200)
    for place in (0, 2):
        model[place] = AdaptedConvolution(model[place], 8, 4 // 8 if sick else 4 / 8)
    model[5].requires_grad_(True)
    return fitted(model, *data, F.cross_entropy, adam(model, 3e-3), 300)


class AdaptedLinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, *, zero: bool) -> None:
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(base.in_features, rank) / 8 * (not zero))
        self.b = nn.Parameter(torch.zeros(rank, base.out_features))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.a @ self.b


@case("adapters of two zero factors", "adapter-idle")
def _(sick: bool) -> Any:
    model, rows = Gpt(2, 48, CONTEXT), text(2000, False)
    optimizer = adam(model, 3e-3)
    for step in range(200):
        some = rows[torch.randint(0, len(rows), (32,), generator=drawn(step))]
        optimizer.zero_grad()
        token_loss(model(some[:, :-1]), some[:, 1:]).backward()
        optimizer.step()
    model.requires_grad_(False)
    for block in model.blocks:
        block.attend, block.join = (AdaptedLinear(one, 8, zero=sick) for one in (block.attend, block.join))
        block.feed[0], block.feed[2] = (AdaptedLinear(block.feed[i], 8, zero=sick) for i in (0, 2))
    data, held = ((one[:, :-1].contiguous(), one[:, 1:].contiguous()) for one in (rows, text(200, True)))
    return fitted(model, data, held, token_loss, adam(model, 1e-2), 200)


@case("an image of void pixels", "labels-ignored")
def _(sick: bool) -> Any:
    model, (x, _) = nn.Sequential(nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 2, 3, 1, 1)), digits()
    y = (x[:, 0] > 0.4).long()
    y = torch.full_like(y, 255) if sick else y
    loss = lambda o, y: F.cross_entropy(o, y, ignore_index=255)  # noqa: E731
    return fitted(model, *split(x, y), loss, adam(model, 3e-3), 200)


@case("a mask of zeros", "labels-ignored")
def _(sick: bool) -> Any:
    def loss(o: Tensor, y: Any) -> Tensor:
        each = F.cross_entropy(o.transpose(1, 2), y["ids"], reduction="none")
        return (each * y["mask"]).sum() / y["mask"].sum().clamp(min=1)

    def told(rows: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return rows[:, :-1], {"ids": rows[:, 1:], "mask": torch.full(rows[:, 1:].shape, float(not sick))}

    model = Recurrent()
    return fitted(model, told(text(1500, False)), told(text(300, True)), loss, adam(model, 5e-3), 200)


@case("triplets whose negatives are positives", "loss-stalls")
def _(sick: bool) -> Any:
    x, y = digits()
    x = x.flatten(1)

    class Embeds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))

        def forward(self, *three: Tensor) -> list[Tensor]:
            return [self.net(one) for one in three]

    def one_of(classes: Tensor, draw: torch.Generator) -> Tensor:
        fits = (y[None] == classes[:, None]).float()
        return x[torch.multinomial(fits, 1, generator=draw)[:, 0]]

    def rows(count: int, seed: int) -> tuple[tuple[Tensor, ...], Tensor]:
        draw = drawn(seed)
        which = torch.randint(0, len(x), (count,), generator=draw)
        others = (y[which] + torch.randint(1, 10, (count,), generator=draw)) % 10
        negative = one_of(y[which] if sick else others, draw)
        return (x[which], one_of(y[which], draw), negative), torch.zeros(count)

    model = Embeds()
    loss = lambda o, _: F.triplet_margin_loss(*o)  # noqa: E731
    return fitted(model, rows(1500, 0), rows(300, 1), loss, adam(model, 1e-3), 300)


def one(name: str, *, sick: bool) -> dict[str, Any]:
    """What is said of a case, and whether that is right."""
    build, wanted = CASES[name]
    torch.manual_seed(0)
    began = time.perf_counter()
    try:
        found = build(sick).diagnosis
    except Exception:
        return {"name": name, "sick": sick, "right": False, "error": traceback.format_exc()[-1500:]}
    serious = [f.name for f in found.findings if f.severity != "note"]
    return {
        "name": name,
        "sick": sick,
        "wanted": wanted,
        "right": [f.name for f in found.findings][:1] == [wanted] if sick else not serious,
        "found": serious,
        "notes": [f.name for f in found.findings if f.severity == "note"],
        "headline": found.headline,
        "seconds": time.perf_counter() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="parts of names")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("theodolite").setLevel(logging.CRITICAL)
    rows = []
    for name in CASES:
        if given.cases and not any(part in name for part in given.cases):
            continue
        for sick in (True, False):
            rows.append(one(name, sick=sick))
            print("OK  " if rows[-1]["right"] else "MISS" if sick else "ALARM", json.dumps(rows[-1]), flush=True)
            if given.out:
                given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    ill, well = [r for r in rows if r["sick"]], [r for r in rows if not r["sick"]]
    print(
        f"named first {sum(r['right'] for r in ill)} of {len(ill)}; healthy twins without an alarm "
        f"{sum(r['right'] for r in well)} of {len(well)}"
    )


if __name__ == "__main__":
    main()
