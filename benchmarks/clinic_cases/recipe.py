"""A training script in one frozen record: what a healthy run and its sick twin share, and the one thing in which they differ.

`setup_of(recipe, seed)` is the script itself, written out as people write it. `cured(recipe, suggested)` is the script with the
numbers of a suggestion typed in.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .data import Data, data_of, generator_of
from .networks import Network, draw

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Recipe:
    """One training script; edits are made in the order given, data before the network, the network before its optimizer."""

    architecture: str
    data: str
    network: Network
    optimizer: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    batch: int = 64
    steps: int = 300
    loss: str = ""  # the one that fits the data's kind
    warmup: int = 0
    decay: str = ""  # "cosine", or "exponential:0.9" for a factor at every step
    accumulate: int = 1
    clip: float = 0.0
    samples: int = 0  # all
    shuffle: bool = True
    dtype: torch.dtype = torch.float32
    zero_every: int = 1  # steps between two calls of zero_grad; 0: never
    edit_data: tuple[Callable[[Data], Data], ...] = ()
    edit_model: tuple[Callable[[nn.Module], nn.Module | None], ...] = ()
    parameters: Callable[[nn.Module], Iterable[nn.Parameter]] = nn.Module.parameters
    drawn: tuple[float, float] | None = None  # variances of weights and biases to draw anew with


class Batches:
    """A loader: the training set in batches, shuffled anew on every pass."""

    def __init__(self, x: Tensor, y: Tensor, batch: int, *, shuffle: bool, seed: int):
        self.x, self.y, self.batch, self.shuffle = x, y, batch, shuffle
        self.generator = generator_of(seed)

    def __len__(self) -> int:
        return max(len(self.x) // self.batch, 1)

    def __iter__(self) -> Iterator[Batch]:
        n = len(self.x)
        order = torch.randperm(n, generator=self.generator) if self.shuffle else torch.arange(n)
        for start in range(0, len(self) * self.batch, self.batch):
            rows = order[start : start + self.batch]
            yield self.x[rows], self.y[rows]


@dataclass
class Setup:
    """Everything a training script holds just before its first step."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loader: Batches
    loss: Callable[[Tensor, Tensor], Tensor]
    validation: tuple[Tensor, Tensor]
    steps: int
    train_step: Callable[[Batch], float]
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None
    kind: str = "classes"
    state_dict: dict[str, Tensor] | None = None  # a checkpoint, for ailments of weights alone
    notes: dict[str, Any] = field(default_factory=dict)


def _flat(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    return output.flatten(0, -2), target.flatten()


def _one_hot(output: Tensor, target: Tensor) -> Tensor:
    return F.one_hot(target, output.shape[-1]).to(output.dtype)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(*_flat(output, target)) if output.dim() == 3 else F.cross_entropy(output, target)


def mean_squares(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(output, target)


def softmax_mean_squares(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(output.softmax(-1), _one_hot(output, target))


def logit_mean_squares(output: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(output, _one_hot(output, target))


def class_number_squares(output: Tensor, target: Tensor) -> Tensor:
    """Squares between every output and the number of the class, as when a column is left to broadcast."""
    return ((output - target.unsqueeze(-1).to(output.dtype)) ** 2).mean()


def binary_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(output, _one_hot(output, target))


def broadcast_squares(output: Tensor, target: Tensor) -> Tensor:
    """An (n, 1) output against (n,) targets: every output against every target."""
    return ((output - target.squeeze(1)) ** 2).mean()


LOSSES = {
    loss.__name__: loss
    for loss in (
        cross_entropy,
        mean_squares,
        softmax_mean_squares,
        logit_mean_squares,
        class_number_squares,
        binary_cross_entropy,
        broadcast_squares,
    )
}


def _optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    parameters = [p for p in recipe.parameters(model) if p.requires_grad]
    common = {"lr": recipe.lr, "weight_decay": recipe.weight_decay}
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, momentum=recipe.momentum, **common)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}[recipe.optimizer](
        parameters, **common
    )


def _scheduler(recipe: Recipe, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler | None:
    if not recipe.warmup and not recipe.decay:
        return None
    updates = max(recipe.steps // recipe.accumulate, 1)

    def factor(step: int) -> float:
        rise = min(1.0, (step + 1) / recipe.warmup) if recipe.warmup else 1.0
        if recipe.decay == "cosine":
            return rise * 0.5 * (1 + float(torch.cos(torch.tensor(torch.pi * min(step / updates, 1.0)))))
        kind, _, number = recipe.decay.partition(":")
        return rise * float(number) ** step if kind == "exponential" else rise

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def _data(recipe: Recipe) -> Data:
    data = data_of(recipe.data)
    for edit in recipe.edit_data:
        data = edit(data)
    if recipe.samples:
        data = replace(data, x=data.x[: recipe.samples], y=data.y[: recipe.samples])
    return data


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype) if x.is_floating_point() else x


def network_of(recipe: Recipe, data: Data, seed: int) -> nn.Module:
    """The network with the weights this seed draws, its edits made."""
    torch.manual_seed(seed)
    model = recipe.network(data)
    for edit in recipe.edit_model:
        model = edit(model) or model
    if recipe.drawn:
        draw(model, weight_variance=recipe.drawn[0], bias_variance=recipe.drawn[1])
    return model.to(recipe.dtype)


def setup_of(recipe: Recipe, seed: int) -> Setup:
    """The script just before its first step."""
    data = _data(recipe)
    model = network_of(recipe, data, seed)
    optimizer = _optimizer(recipe, model)
    scheduler = _scheduler(recipe, optimizer)
    loss = LOSSES[recipe.loss or ("mean_squares" if data.kind == "numbers" else "cross_entropy")]
    x, y, x_held, y_held = (_cast(part, recipe.dtype) for part in (data.x, data.y, data.x_held, data.y_held))
    loader = Batches(x, y, min(recipe.batch, len(x)), shuffle=recipe.shuffle, seed=seed)
    done = 0

    def train_step(batch: Batch) -> float:
        nonlocal done
        model.train()
        inputs, targets = batch
        value = loss(model(inputs), targets)
        if recipe.zero_every and done % (recipe.accumulate * recipe.zero_every) == 0:
            optimizer.zero_grad()
        (value / recipe.accumulate).backward()
        done += 1
        if done % recipe.accumulate == 0:
            if recipe.clip:
                nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
        return float(value.detach())

    return Setup(
        model, optimizer, loader, loss, (x_held, y_held), recipe.steps, train_step, scheduler=scheduler, kind=data.kind
    )
