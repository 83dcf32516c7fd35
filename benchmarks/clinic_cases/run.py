"""The plain loop over a Setup, and how well its network does on data held out."""

from collections.abc import Callable

import torch
from torch import Tensor

from .recipe import Setup


def run(setup: Setup, *, watch: Callable[[int], object] | None = None, steps: int | None = None) -> list[float]:
    """The loss of every training step; watch(step) is called after each."""
    history: list[float] = []
    planned = setup.steps if steps is None else steps
    while len(history) < planned:
        for batch in setup.loader:
            if len(history) == planned:
                break
            history.append(setup.train_step(batch))
            if watch is not None:
                watch(len(history) - 1)
    return history


@torch.no_grad()
def outputs(setup: Setup, x: Tensor) -> Tensor:
    """What the network says in eval mode, in single precision."""
    setup.model.eval()
    said = torch.cat([setup.model(part) for part in x.split(500)]).float()
    setup.model.train()
    return said


def score(setup: Setup, x: Tensor, y: Tensor, *, balanced: bool = False) -> float:
    """Accuracy (the mean over classes where balanced), or the share of the targets' variance that is explained."""
    said = outputs(setup, x)
    if setup.kind == "numbers":
        target = y.float()
        share = 1 - ((said - target) ** 2).mean() / ((target - target.mean(0)) ** 2).mean()
        return max(float(share), -1.0) if share.isfinite() else -1.0
    right = (said.argmax(-1) == y).float()
    if balanced:
        return float(torch.stack([right[y == c].mean() for c in y.unique()]).mean())
    return float(right.mean())


def chance(setup: Setup, *, balanced: bool = False) -> float:
    """The score of the best constant answer."""
    if setup.kind == "numbers":
        return 0.0
    counts = torch.bincount(setup.validation[1].flatten())
    return 1 / int((counts > 0).sum()) if balanced else float(counts.max() / counts.sum())


def held_out_loss(setup: Setup) -> float:
    """The script's own loss on what was held out."""
    x, y = setup.validation
    return float(setup.loss(outputs(setup, x), y.float() if y.is_floating_point() else y))
