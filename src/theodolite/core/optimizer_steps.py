"""Steps of descent and of Adam, to the last digit those of torch, whose optimizers load its compiler first: seconds."""

from collections.abc import Iterable
from math import sqrt
from typing import Any

import torch
from torch import Tensor


def made_optimizer(kind: type[torch.optim.Optimizer], parameters: Iterable[Tensor], **settings: Any) -> Any:
    """An optimizer of torch, made without loading its compiler; that of a kind may still do so when it steps."""
    add = kind.add_param_group
    light = type(kind.__name__, (kind,), {"add_param_group": getattr(add, "__wrapped__", add)})
    made = light(parameters, **settings)
    made.__class__ = kind
    made._patch_step_function()
    return made


class Descent:
    """Plain gradient descent."""

    def __init__(self, parameters: Iterable[Tensor], *, lr: float) -> None:
        self.parameters, self.lr = list(parameters), lr

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for p in self.parameters:
            p.grad = None if set_to_none or p.grad is None else torch.zeros_like(p.grad)

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for place, p in enumerate(self.parameters):
            if p.grad is not None:
                self.move(place, p, p.grad)

    def move(self, place: int, p: Tensor, slope: Tensor) -> None:
        """Move one parameter along its gradient."""
        p.add_(slope, alpha=-self.lr)


class AdamDescent(Descent):
    """Adam with its usual constants."""

    def __init__(self, parameters: Iterable[Tensor], *, lr: float) -> None:
        super().__init__(parameters, lr=lr)
        self.means: dict[int, tuple[int, Tensor, Tensor]] = {}

    def move(self, place: int, p: Tensor, slope: Tensor) -> None:
        """Move one parameter along the mean of its gradients over the root of the mean of their squares."""
        if place not in self.means:
            self.means[place] = (0, torch.zeros_like(p), torch.zeros_like(p))
        steps, mean, square = self.means[place]
        steps += 1
        self.means[place] = (steps, mean, square)
        mean.lerp_(slope, 1 - 0.9)
        square.mul_(0.999).addcmul_(slope, slope, value=1 - 0.999)
        size = (square.sqrt() / sqrt(1 - 0.999**steps)).add_(1e-8)
        p.addcdiv_(mean, size, value=-self.lr / (1 - 0.9**steps))
