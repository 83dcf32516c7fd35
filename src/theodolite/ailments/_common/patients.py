"""Small networks, trained in well under a second, that have an ailment of training or look as if they had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from theodolite.ailments._common.chart import RunMoment

FEATURES, CLASSES = 12, 5


def clouds(seed: int, samples: int, *, spread: float = 0.6, noise: float = 0.0) -> tuple[Tensor, Tensor]:
    """Standardized points around two centers a class, a share ``noise`` of the labels drawn anew."""
    centers = torch.randn(2 * CLASSES, FEATURES, generator=torch.Generator().manual_seed(7))
    g = torch.Generator().manual_seed(seed)
    which = torch.randint(2 * CLASSES, (samples,), generator=g)
    x = centers[which] + spread * torch.randn(samples, FEATURES, generator=g)
    y = which % CLASSES
    drawn = torch.rand(samples, generator=g) < noise
    return x, torch.where(drawn, torch.randint(CLASSES, (samples,), generator=g), y)


def network(seed: int, *middle: Callable[[], nn.Module], width: int = 48) -> nn.Sequential:
    """Two hidden layers with ReLU; ``middle`` are made and put behind the first."""
    torch.manual_seed(seed)
    head = (nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))
    return nn.Sequential(nn.Linear(FEATURES, width), *(make() for make in middle), *head)


def batches_of(x: Tensor, y: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Whole batches in the order given."""
    return [(x[i : i + size], y[i : i + size]) for i in range(0, len(x) - size + 1, size)]


def trained(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: list[tuple[Tensor, Tensor]],
    *,
    validation: tuple[Tensor, Tensor],
    steps: int,
    schedule: Callable[[], object] | None = None,
) -> Mapping[str, Any]:
    """A run as people write it, and what a chart is told of it."""
    origin = {name: value.detach().clone() for name, value in model.state_dict().items()}
    history = []
    for step in range(steps):
        x, y = data[step % len(data)]
        optimizer.zero_grad()
        value = cross_entropy(model(x), y)
        torch.autograd.backward(value)
        optimizer.step()
        lr = float(optimizer.param_groups[0]["lr"])
        if schedule is not None:
            schedule()
        if step % max(1, steps // 20) == 0 or step == steps - 1:
            history.append(_moment(model, step + 1, lr, float(value.detach()), validation))
    return {
        "model": model,
        "data": data,
        "loss": cross_entropy,
        "optimizer": optimizer,
        "validation": validation,
        "origin": origin,
        "history": tuple(history),
        "steps": steps,
    }


@torch.no_grad()
def _moment(model: nn.Module, step: int, lr: float, loss: float, validation: tuple[Tensor, Tensor]) -> RunMoment:
    mode = model.training
    model.eval()
    said = model(validation[0])
    model.train(mode)
    accuracy = float((said.argmax(-1) == validation[1]).float().mean())
    return RunMoment(step, loss, float(cross_entropy(said, validation[1])), validation_accuracy=accuracy, lr=lr)


def patient(
    seed: int,
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
    *middle: Callable[[], nn.Module],
    steps: int = 300,
    batch: int = 32,
    samples: int = 1024,
    noise: float = 0.0,
) -> Mapping[str, Any]:
    """A run on the clouds; no steps: a network that is fresh, its run still planned."""
    x, y = clouds(seed, samples, noise=noise)
    validation = clouds(seed + 1000, 512, noise=noise)
    model = network(seed, *middle)
    stepper = optimizer(model.parameters())
    data = batches_of(x, y, batch)
    if steps:
        return trained(model, stepper, data, validation=validation, steps=steps)
    return {"model": model, "data": data, "loss": cross_entropy, "optimizer": stepper, "validation": validation}
