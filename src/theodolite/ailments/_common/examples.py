"""Small patients that the examples of ailments are made of; each is a function of a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES, INPUTS = 4, 16


def classes(seed: int, samples: int = 768) -> tuple[Tensor, Tensor]:
    """Points around one center a class, in no order."""
    generator = torch.Generator().manual_seed(seed)
    centers = 1.5 * torch.randn(CLASSES, INPUTS, generator=generator)
    labels = torch.randint(0, CLASSES, (samples,), generator=generator)
    return centers[labels] + torch.randn(samples, INPUTS, generator=generator), labels


def numbers(seed: int, samples: int = 768) -> tuple[Tensor, Tensor]:
    """Points and a smooth standardized function of them, a column."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, INPUTS, generator=generator)
    y = x[:, 0] + torch.sin(2 * x[:, 1]) + x[:, 2] * x[:, 3]
    return x, ((y - y.mean()) / y.std()).unsqueeze(1)


def patient(
    model: nn.Module,
    data: tuple[Tensor, Tensor],
    *,
    loss: Callable[[Any, Any], Tensor] = F.cross_entropy,
    optimizer: str = "adam",
    lr: float = 1e-2,
    batch_size: int = 32,
) -> dict[str, Any]:
    """The keywords of a diagnosis."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    makers: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "adam": lambda: torch.optim.Adam(wanted, lr=lr),
        "sgd": lambda: torch.optim.SGD(wanted, lr=lr, momentum=0.9),
    }
    x, y = data
    batches = [(x[i : i + batch_size], y[i : i + batch_size]) for i in range(0, len(x), batch_size)]
    return {"model": model, "data": batches, "loss": loss, "optimizer": makers[optimizer]()}


def seeded(seed: int, make: Callable[[], nn.Module]) -> nn.Module:
    """A module drawn from a seed; the random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def digits_like(seed: int, make: Callable[[], nn.Module], **options: Any) -> dict[str, Any]:
    """A classifier as a patient."""
    return patient(seeded(seed, make), classes(seed), **options)


def number_like(seed: int, make: Callable[[], nn.Module], **options: Any) -> dict[str, Any]:
    """A regression as a patient."""
    return patient(seeded(seed, make), numbers(seed), **{"loss": F.mse_loss, **options})


def stack(
    depth: int, *, width: int = 32, activation: type[nn.Module] = nn.ReLU, weight_variance: float | None = None
) -> nn.Module:
    """A plain deep network; PyTorch's own initialization where no variance is given."""
    layers: list[nn.Module] = []
    before = INPUTS
    for _ in range(depth):
        layers += [nn.Linear(before, width), activation()]
        before = width
    model = nn.Sequential(*layers, nn.Linear(before, CLASSES))
    if weight_variance is not None:
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=math.sqrt(weight_variance / layer.in_features))
                nn.init.zeros_(layer.bias)
    return model


class Around(nn.Module):
    """x + f(x)."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """The path around, and the layers beside it."""
        return x + self.inner(x)  # type: ignore[no-any-return]


def residual(depth: int, width: int = 32) -> nn.Module:
    """Blocks with a norm in front and a path around each, as in a pre-norm transformer."""

    def block() -> nn.Module:
        return Around(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        )

    blocks = [block() for _ in range(depth)]
    return nn.Sequential(nn.Linear(INPUTS, width), *blocks, nn.LayerNorm(width), nn.Linear(width, CLASSES))


Example = Callable[[int], dict[str, Any]]


def fresh(name: str, make: Callable[[], nn.Module], **options: Any) -> Example:
    """An example under this name: a classifier that was not trained yet, with small steps of Adam where nothing else is said."""

    def build(seed: int) -> dict[str, Any]:
        return digits_like(seed, make, **{"lr": 1e-3, **options})

    build.__name__ = name
    return build


def fresh_residual(depth: int, **options: Any) -> Example:
    """A network with a path around every block, which most ailments of depth spare."""
    return fresh("residual", lambda: residual(depth), **options)
