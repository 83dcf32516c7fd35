"""Losses that `torch.func.grad` and `grad_and_value` differentiate: their parameters are arguments, new tensors at every step.

A copy of these tensors, and of each module that is called with them, stands for what is trained: it takes the values of every
call, so that steps are seen as changes of its weights. Nothing of the script's own is touched.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

TRANSFORMS = ("grad", "grad_and_value")
"""Functions of torch.func whose loss is watched where no other transform is around it."""


def is_transformed() -> bool:
    """Whether this code runs within a transform of torch.func."""
    return torch._C._functorch.peek_interpreter_stack() is not None


class Functional:
    """``own`` are tensors that stand for the parameters of the calls."""

    def __init__(self) -> None:
        self.own: list[nn.Parameter] = []
        self.twins: dict[int, tuple[nn.Module, nn.Module]] = {}
        self.standing: dict[int, Tensor] = {}  # for the tensors of a transform, while it computes the loss
        self.root: Tensor | None = None

    @torch.no_grad()
    def take(self, parameters: Any) -> bool:
        """The values of a call; whether they are those of what was called first."""
        given = [t for t in tree_leaves(parameters) if isinstance(t, Tensor)]
        if not self.own and given and all(t.is_floating_point() for t in given):
            self.own = [t if isinstance(t, nn.Parameter) else nn.Parameter(t.detach().clone()) for t in given]
        if [(t.shape, t.dtype) for t in given] != [(t.shape, t.dtype) for t in self.own]:
            return False
        for own, now in zip(self.own, given, strict=True):
            if own is not now:
                own.copy_(now)
        return bool(given)

    def noting(self, inner: Callable[..., Any], argnums: int, ended: Callable[[], None]) -> Callable[..., Any]:
        """The loss, with what stands for its parameters known while it is computed; ``ended`` is called before they are gone."""

        def noted(*args: Any, **keywords: Any) -> Any:
            within = [t for t in tree_leaves(args[argnums]) if isinstance(t, Tensor)]
            self.standing.update({id(t): own for t, own in zip(within, self.own, strict=True)})
            try:
                found = inner(*args, **keywords)
                self.root = found if isinstance(found, Tensor) else found[0]
                ended()
                return found
            finally:
                self.standing.clear()
                self.root = None

        return noted

    def gradients(self, found: Any) -> dict[int, Tensor]:
        """Those of a call, by what stands for the parameters."""
        given = [t for t in tree_leaves(found) if isinstance(t, Tensor)]
        return {id(own): gradient for own, gradient in zip(self.own, given, strict=True)}

    def twin(self, module: nn.Module) -> nn.Module:
        """What stands for a module that is called with these parameters; the module itself where it is not."""
        named = list(module.parameters()) if self.standing else []
        if not named or not all(id(p) in self.standing for p in named):
            return module
        if id(module) not in self.twins:
            stands: dict[int, Any] = {id(p): self.standing[id(p)] for p in named}
            self.twins[id(module)] = module, copy.deepcopy(module, stands)
        return self.twins[id(module)][1]

    def called(self, parts: Sequence[nn.Module]) -> list[nn.Module]:
        """The modules of the script that these stand for."""
        return [module for module, twin in self.twins.values() if any(twin is part for part in parts)]


def bare(tensor: Tensor) -> Tensor:
    """A tensor as it is outside of all transforms."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor.detach()
