r"""Multiplicative updates as ordinary optimizers: exponentiated gradient, for positive weights and for weights of any sign.

Gradient descent adds; these multiply, $w\leftarrow we^{-\eta g}$. On a target that needs few of many features they learn
from about $\log d$ examples where every rotation-invariant learner needs about $d$.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor

from theodolite.core.checks import InputError

HALF = (torch.float16, torch.bfloat16)


class _Mirror(torch.optim.Optimizer, ABC):
    """Descent in other coordinates: the weights are a function of a dual, and the dual moves by $-\\eta g$.

    In float32 and float64 the dual is recomputed from the weights at every step: there is no state, and weights that
    were loaded or clipped between steps are taken as they are. In half precision a step is often smaller than the
    spacing of the weights, so the dual is kept in float32 in the state; where the weights were changed from outside it
    is taken from them anew.
    """

    def __init__(self, params: Iterable[Any], lr: float, defaults: dict[str, Any]) -> None:
        if not (math.isfinite(lr) and lr >= 0):
            raise InputError(f"expected a learning rate of at least zero, got {lr}; pass lr=0.01, say")
        super().__init__(params, {"lr": lr, **defaults})

    @abstractmethod
    def _moved(self, weights: list[Tensor], steps: list[Tensor], group: dict[str, Any]) -> None:
        """Move full-precision weights in place, their duals by ``steps``; the steps may be overwritten."""

    @abstractmethod
    def _dual(self, weight: Tensor, group: dict[str, Any]) -> Tensor:
        """The dual of weights."""

    @abstractmethod
    def _primal(self, dual: Tensor, group: dict[str, Any]) -> Tensor:
        """The weights of a dual."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; the closure, if any, is called first and its loss returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            sign = 1.0 if group["maximize"] else -1.0
            moving = [p for p in group["params"] if p.grad is not None]
            for p in moving:
                if p.grad.is_sparse or p.is_complex():
                    raise InputError("expected dense real gradients, got sparse or complex ones; use another optimizer")
            full = [p for p in moving if p.dtype not in HALF]
            size = float(group["lr"])
            for part in _alike(full) if group["foreach"] else [[p] for p in full]:
                steps = torch._foreach_mul([cast(Tensor, p.grad) for p in part], sign * size)
                self._moved(part, list(steps), group)
            for p in moving:
                if p.dtype in HALF:
                    self._half_step(p, sign * size, group)
        return loss

    def _half_step(self, p: Tensor, size: float, group: dict[str, Any]) -> None:
        assert p.grad is not None
        kept, fresh = self.state[p].get("dual"), self._dual(p.float(), group)
        if kept is not None:  # bit for bit what was written last: nobody else changed it
            fresh = torch.where(self._primal(kept, group).to(p.dtype) == p, kept, fresh)
        self.state[p]["dual"] = fresh.add_(p.grad.float(), alpha=size)
        p.copy_(self._primal(self.state[p]["dual"], group))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As every optimizer's, but the float32 duals of half-precision weights stay in float32."""
        super().load_state_dict(state_dict)
        own = [p for group in self.param_groups for p in group["params"]]
        saved = [index for group in state_dict["param_groups"] for index in group["params"]]
        for index, p in zip(saved, own, strict=True):
            if "dual" in state_dict["state"].get(index, {}):
                self.state[p]["dual"] = (
                    state_dict["state"][index]["dual"].detach().to(p.device, torch.float32, copy=True)
                )


class EGU(_Mirror):
    r"""Exponentiated gradient, unnormalized: $w\leftarrow w\,e^{-\eta g}$, for weights that are and stay positive.

    Start from equal small weights, such as 1/d each, or smaller: the smaller, the sparser the solution. A safe rate for the
    loss $\tfrac12(x\cdot w-y)^2$, alone or averaged over a batch, with $|x_i|\le X$ and a target of norm U is
    $1/(X^2UW_d)$, where $W_d$ is a little above log d (`theory.bias.multiplicative_safe_lr`); half of it
    without the half. So scale the inputs, and average instead of summing. A weight never falls below the smallest normal
    number, so that it can return.

    ``lr``, ``maximize`` and ``foreach`` (all tensors in one call) may differ between parameter groups. There is no state in
    float32 and float64; in half precision the logarithm of the weights is accumulated in float32.
    Source: kivinen1997.

    >>> w = torch.nn.Parameter(torch.tensor([0.5, 0.5]))
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> EGU([w], lr=math.log(2)).step()
    >>> [round(v, 6) for v in w.tolist()]
    [0.25, 1.0]
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 0.01, *, maximize: bool = False, foreach: bool = True
    ) -> None:
        super().__init__(params, lr, {"maximize": maximize, "foreach": foreach})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, all of whose weights must be positive."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for place, p in enumerate(group["params"]):
            least = float(p.detach().min()) if p.numel() else 1.0
            if not least > 0:  # nan included
                name = f" ({group['param_names'][place]})" if "param_names" in group else ""
                where = f"parameter {place}{name} of group {len(self.param_groups) - 1}"
                self.param_groups.pop()
                raise InputError(
                    f"expected positive weights, got {least:g} in {where}; start from small equal weights, or use EGUpm"
                )

    def _moved(self, weights: list[Tensor], steps: list[Tensor], group: dict[str, Any]) -> None:
        torch._foreach_exp_(steps)
        torch._foreach_mul_(weights, steps)
        torch._foreach_clamp_min_(weights, torch.finfo(weights[0].dtype).tiny)

    def _dual(self, weight: Tensor, group: dict[str, Any]) -> Tensor:
        return weight.clamp(min=torch.finfo(torch.float32).tiny).log()

    def _primal(self, dual: Tensor, group: dict[str, Any]) -> Tensor:
        return dual.exp()


class EGUpm(_Mirror):
    r"""Exponentiated gradient for weights of any sign: $w=w^+-w^-$, $w^\pm\leftarrow w^\pm e^{\mp\eta g}$.

    The product $w^+w^-=\beta^2/4$ never changes, so the pair is a function of its difference, $w=\beta\sinh\theta$ with
    $\theta\leftarrow\theta-\eta g$ (the mirror map called hypentropy): any weights may start, zeros included, and nothing
    beside them is kept; `parts` gives the pair. Small ``beta`` is sparse, of the order of 1/d as in EGU or less; as it
    grows the update becomes gradient descent of rate $\beta\eta$. Safe rates as for `EGU`, with $|w^+|_1+|w^-|_1$ for the
    norm.

    ``lr``, ``beta``, ``maximize`` and ``foreach`` may differ between groups. No state in float32 and float64; in half
    precision $\theta$ is accumulated in float32.
    Source: kivinen1997; ghai2020.

    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([1.0, -1.0])
    >>> EGUpm([w], lr=1.0, beta=1.0).step()
    >>> [round(v, 6) for v in w.tolist()], round(math.sinh(1.0), 6)
    ([-1.175201, 1.175201], 1.175201)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        *,
        beta: float = 1e-3,
        maximize: bool = False,
        foreach: bool = True,
    ) -> None:
        super().__init__(params, lr, {"beta": beta, "maximize": maximize, "foreach": foreach})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its beta must be positive."""
        beta = param_group.get("beta", self.defaults["beta"])
        if not (math.isfinite(beta) and beta >= 1e-15):  # its square must stay a float32
            raise InputError(f"expected a positive beta, 1e-15 or more, got {beta}; pass beta=1e-3, say")
        super().add_param_group(param_group)

    @torch.no_grad()
    def parts(self, parameter: Tensor) -> tuple[Tensor, Tensor]:
        r"""The positive pair $w^+,w^-$ behind a parameter, in at least float32."""
        group = next((g for g in self.param_groups if any(p is parameter for p in g["params"])), None)
        if group is None:
            raise InputError("expected a parameter of this optimizer, got another tensor; pass one it was given")
        kept = self.state[parameter].get("dual") if parameter in self.state else None
        wide = parameter.float() if parameter.dtype in HALF else parameter
        dual = self._dual(wide, group) if kept is None else kept
        return group["beta"] / 2 * dual.exp(), group["beta"] / 2 * (-dual).exp()

    def _moved(self, weights: list[Tensor], steps: list[Tensor], group: dict[str, Any]) -> None:
        # beta sinh(theta + t) by the addition theorem, w cosh t + sqrt(w^2 + beta^2) sinh t: a third of the time that asinh
        # and sinh take. It rounds by exp(2|t|) of the last digit, nothing for steps that are safe (t below one).
        roots = torch._foreach_mul(weights, weights)
        torch._foreach_add_(roots, group["beta"] ** 2)
        torch._foreach_sqrt_(roots)
        torch._foreach_exp_(steps)
        falls = torch._foreach_reciprocal(steps)
        torch._foreach_mul_(weights, torch._foreach_add(steps, falls))
        torch._foreach_sub_(steps, falls)
        torch._foreach_addcmul_(weights, roots, steps)
        torch._foreach_mul_(weights, 0.5)

    def _dual(self, weight: Tensor, group: dict[str, Any]) -> Tensor:
        return torch.asinh(weight / group["beta"])

    def _primal(self, dual: Tensor, group: dict[str, Any]) -> Tensor:
        return torch.as_tensor(group["beta"] * dual.sinh())


def _alike(tensors: list[Tensor]) -> list[list[Tensor]]:
    """Tensors of one device and type together, as one fast call needs them; large ones on the CPU alone, in its cache."""
    found: dict[Any, list[Tensor]] = {}
    for place, tensor in enumerate(tensors):
        alone = place if tensor.device.type == "cpu" and tensor.numel() > 2**14 else None
        found.setdefault((tensor.device, tensor.dtype, alone), []).append(tensor)
    return list(found.values())
