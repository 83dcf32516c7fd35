"""Steps that a script makes without an optimizer: ``p.data.add_(p.grad, alpha=-lr)``, ``p -= lr * p.grad``.

After a backward pass some entries of the weights are kept; when the model is called again and they are others, a step was made.
Where the change is a multiple of the gradient, it is plain descent, and the multiple is its step size.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

ENTRIES = 256
"""Entries of one parameter that tell a step."""
ALIKE = 0.999
"""The cosine of change and gradient from which on a step is plain descent."""


class StepsByHand:
    """``optimizer`` stands for them: plain descent on the same parameters with the step size that was seen."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.optimizer = torch.optim.SGD(list({id(p): p for p in parameters}.values()), lr=0.0)
        self.plain = True
        self.passes = 0
        self._waiting = False
        self._one = min(parameters, key=lambda p: (p.numel() < 2, p.numel()))
        self._version = -1
        self._began = [(p, _digest(p)) for p in parameters]
        self._before = self._entries(self._one)
        self._gradient: Tensor | None = None
        self._kept: Tensor | None = None

    def expect(self, gradients: Mapping[int, Tensor]) -> None:
        """A backward pass was made: a step may follow."""
        gradient = gradients.get(id(self._one), self._one.grad)
        if gradient is None:
            return
        # not added to, nor left over
        self.passes += gradient is not self._gradient or gradient._version > self._version + 1
        self._version = gradient._version
        self._before, self._gradient, self._kept = self._entries(self._one), gradient, self._entries(gradient)
        self._waiting = True
        for hook in list(self.optimizer._optimizer_step_pre_hooks.values()):
            hook(self.optimizer, (), {})

    def was_taken(self) -> bool:
        """Whether a step was made since the last pass; asked once, it is forgotten."""
        if not self._waiting:
            return False
        now = self._entries(self._one)
        if torch.equal(now, self._before):
            return False
        self._waiting = False
        self._measure(now - self._before)
        for hook in list(self.optimizer._optimizer_step_post_hooks.values()):
            hook(self.optimizer, (), {})
        return True

    def unmoved(self) -> bool:
        """Whether every weight is what it was at the first pass."""
        return all(_digest(p) == before for p, before in self._began)

    def _measure(self, change: Tensor) -> None:
        """The step size, by the gradient that was used: it may have been clipped in place since, and cleared after."""
        assert self._gradient is not None and self._kept is not None
        used = self._entries(self._gradient)
        used = used if bool(used.any()) else self._kept
        size = float(used.norm() * change.norm())
        self._gradient = None
        if size > 0 and bool(torch.isfinite(change).all()):
            cosine = -float(used @ change) / size
            self.plain = cosine > ALIKE
            self.optimizer.param_groups[0]["lr"] = float(change.norm() / used.norm())

    @staticmethod
    def _entries(tensor: Tensor) -> Tensor:
        return tensor.detach().reshape(-1)[:ENTRIES].double().cpu().clone()


def _digest(tensor: Tensor) -> tuple[float, float]:
    values = tensor.detach().double()
    return float(values.sum()), float(values.norm())
