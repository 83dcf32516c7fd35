"""A model's expansion about its weights, products with its tangent kernel, and that kernel's largest eigenvalue."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import jvp, vjp

from theodolite.core.checks import InputError, at_least
from theodolite.core.reading import Estimate
from theodolite.core.state import untouched
from theodolite.measure.functional import Inputs, Stateless, count, placed, plain_attention, rows, stateless

_Expansion = Callable[[Mapping[str, Tensor], Inputs], Tensor]
"""Outputs (samples, outputs) as a function of parameters by name and a batch."""


def linearize(model: nn.Module) -> _Expansion:
    r"""$z_{lin}(\theta,x)=z(\theta_0,x)+\nabla z(\theta_0,x)\cdot(\theta-\theta_0)$ about the model's present weights.

    Train it beside the model to see what learning features adds.

    The answer is called with parameters by name (those left out stay at $\theta_0$) and a batch. Source: lee2019.

    >>> line = linearize(nn.Linear(1, 1, bias=False))
    >>> line({"weight": torch.tensor([[3.0]])}, torch.tensor([[2.0]])).item()
    6.0
    """
    return taylor_expand(model, 1)


def taylor_expand(model: nn.Module, order: int) -> _Expansion:
    r"""$\sum_{k\leq order}\frac{1}{k!}\,D^kz(\theta_0,x)[\theta-\theta_0]^k$, the expansion of a model in its weights.

    By nested forward derivatives: order k costs about $2^k$ forward passes and no stored Jacobian.

    >>> expansion = taylor_expand(nn.Sequential(nn.Linear(1, 1), nn.Tanh()), 2)
    """
    at_least(0, order=order)
    net = stateless(model)
    start = {name: tensor.detach().clone() for name, tensor in net.parameters.items()}

    def expansion(parameters: Mapping[str, Tensor], x: Inputs) -> Tensor:
        unknown = sorted(set(parameters) - set(start))
        if unknown:
            raise InputError(f"expected parameters among {sorted(start)[:4]}, got {unknown[:3]}")
        batch = placed(x, next(iter(start.values())))
        change = {name: parameters[name].to(value) - value for name, value in start.items() if name in parameters}
        still = {name: value for name, value in start.items() if name not in parameters}
        moving = {name: start[name] for name in change}
        with untouched(model), plain_attention():
            if not change:
                return net({**start}, batch)
            return taylor_sum(lambda p: net({**still, **p}, batch), moving, change, order)

    return expansion


def taylor_sum(
    function: Callable[[dict[str, Tensor]], Tensor], start: dict[str, Tensor], change: dict[str, Tensor], order: int
) -> Tensor:
    """The expansion of a function about a start, along a change.

    By forward derivatives; by reverse ones, about thrice as dear, where some operation has no forward derivative twice.
    """
    at_least(0, order=order)
    try:
        return _taylor_sum(function, start, change, order, _forward)
    except NotImplementedError:
        return _taylor_sum(function, start, change, order, _reverse)


def _taylor_sum(
    function: Callable[[dict[str, Tensor]], Tensor],
    start: dict[str, Tensor],
    change: dict[str, Tensor],
    order: int,
    directional: Callable[..., Callable[[dict[str, Tensor]], Tensor]],
) -> Tensor:
    terms = [function]
    for _ in range(order):
        terms.append(directional(terms[-1], change))
    values = [term(start) / math.factorial(k) for k, term in enumerate(terms)]
    return torch.stack(values).sum(0)


def _forward(
    function: Callable[[dict[str, Tensor]], Tensor], change: dict[str, Tensor]
) -> Callable[[dict[str, Tensor]], Tensor]:
    return lambda p: jvp(function, (p,), (change,))[1]


def _reverse(
    function: Callable[[dict[str, Tensor]], Tensor], change: dict[str, Tensor]
) -> Callable[[dict[str, Tensor]], Tensor]:
    def derivative(p: dict[str, Tensor]) -> Tensor:
        pair: Any = vjp(function, p)
        value, back = pair
        across: Any = vjp(lambda v: back(v)[0], torch.zeros_like(value))[1]  # the transpose of the transpose
        return across(change)[0]

    return derivative


class NtkProduct:
    r"""Products $\Theta v$ with the full tangent kernel of a batch, (nC,) to (nC,), without the kernel.

    $\Theta v=J(J^\top v)$: two backward passes for each product, the second through the first; memory as for training on
    the batch, or on one of the ``blocks`` of samples at a time.

    >>> product = NtkProduct(nn.Linear(2, 1), torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    >>> product(torch.tensor([1.0, 0.0])).tolist()
    [6.0, 3.0]
    """

    def __init__(self, model: nn.Module, x: Inputs, *, frozen: bool = False, block: int = 1024) -> None:
        self.net: Stateless = stateless(model, frozen=frozen)
        like = next(iter(self.net.parameters.values()))
        x = placed(x, like)
        self.parameters = {name: p.detach() for name, p in self.net.parameters.items()}
        self.parts = [rows(x, slice(start, start + block)) for start in range(0, count(x), block)]
        with untouched(model), torch.no_grad():
            self.outputs = self.net(self.parameters, rows(x, slice(0, 1))).shape[1]
        self.size = count(x) * self.outputs

    def __call__(self, vector: Tensor) -> Tensor:
        """The product with one vector."""
        with untouched(self.net.model), plain_attention():
            pieces = vector.reshape(-1, self.outputs)
            total: dict[str, Tensor] = {}
            start = 0
            backs = []
            for part in self.parts:
                back: Any = vjp(lambda p, part=part: self.net(p, part), self.parameters)[1]
                piece = pieces[start : start + count(part)]
                start += count(part)
                (gradient,) = back(piece)
                total = {name: total[name] + g if name in total else g for name, g in gradient.items()}
                backs.append((back, piece))
            found = []
            for back, piece in backs:
                forward: Any = vjp(lambda v, back=back: back(v)[0], piece)[1]
                found.append(forward(total)[0].detach())
            return torch.cat(found).flatten()


DENSE = 2000
"""Up to this many pairs of sample and output the kernel is formed and its eigenvalues are taken exactly."""


def top_ntk_eigenvalue(
    model: nn.Module, x: Inputs, *, frozen: bool = False, tolerance: float = 1e-4, dense_below: int = DENSE
) -> Estimate:
    r"""$\lambda_{\max}$ of the full tangent kernel on a batch: descent on $\frac12\sum(z-y)^2$ needs $\eta<2/\lambda_{\max}$.

    Exact where the kernel is small; else Lanczos with products, whose residual is the error given.

    >>> round(top_ntk_eigenvalue(nn.Linear(1, 1, bias=False), torch.tensor([[1.0], [2.0]])).value, 5)
    5.0
    """
    at_least(0, dense_below=dense_below)
    from theodolite.measure.kernels.tangent_kernel import empirical_ntk, kernel_spectrum

    product = NtkProduct(model, x, frozen=frozen)
    if product.size <= dense_below:
        return Estimate(kernel_spectrum(empirical_ntk(model, x, outputs="full", frozen=frozen)).largest)
    from scipy.sparse.linalg import LinearOperator, eigsh

    like = next(iter(product.parameters.values()))

    def times(v: np.ndarray) -> np.ndarray:
        return product(torch.as_tensor(v, dtype=like.dtype, device=like.device)).double().cpu().numpy()

    start = np.random.default_rng(0).standard_normal(product.size)
    operator = LinearOperator((product.size, product.size), matvec=times, dtype=np.float64)
    values, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=tolerance)
    residual = np.linalg.norm(times(vectors[:, 0]) - values[0] * vectors[:, 0])
    return Estimate(float(values[0]), float(residual))
