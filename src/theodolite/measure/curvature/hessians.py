r"""The matrices of curvature of a loss over a data set, and the ends of their spectra with error bounds.

With outputs $z$, loss $L=\frac{1}{N}\sum_i\ell(z_i,y_i)$ and Jacobian $J=\partial z/\partial\theta$: the Hessian is
$H=\frac{1}{N}\sum J^T(\nabla_z^2\ell)J+\sum_c\frac{\partial\ell}{\partial z_c}\nabla^2z_c$, its first term the Gauss-Newton
matrix $G$. Batches of different size count by their number of samples.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from theodolite.core.checks import InputError, InputTypeError, one_of
from theodolite.io.batches import Batch
from theodolite.io.overlapped_work import memory_given_back
from theodolite.measure.curvature.lanczos import Eigenpairs, extreme_eigenpairs
from theodolite.measure.curvature.operators import (
    MEMORY,
    Graph,
    Loss,
    Operator,
    Point,
    Product,
    Reduction,
    derivative,
    operator_of,
    point_of,
)

Likelihood = Literal["categorical", "gaussian", "bernoulli"]


def hessian(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    names: Sequence[str] = (),
    reduction: Reduction = "mean",
    memory: int = MEMORY,
    distributed: bool = False,
) -> Operator:
    r"""$H=\nabla^2_\theta L$ over all the data, exact, in evaluation mode, for the trainable parameters.

    ``loss(output, target)`` averages over its batch, or sums (``reduction="sum"``: then L is the sum over all the data).
    ``data`` is anything `Batches` takes;
    ``names`` restricts to parameters or modules; ``memory`` bounds the graphs that are kept for reuse; ``distributed``
    sums over a running process group, whose processes must all call. Source: pearlmutter1994.

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> hessian(nn.Linear(1, 1, bias=False), nn.functional.mse_loss, (x, x))(torch.ones(1)).item()
    10.0
    """
    point = point_of(model, loss, names=names)
    graph = _hessian_graph(reduction)
    return operator_of(point, data, graph, memory=memory, distributed=distributed, averaged=reduction == "mean")


def hessian_again(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    sample_bytes: float | None,
    memory: int = MEMORY,
    roots: Mapping[str, Tensor] | None = None,
) -> Operator:
    """The Hessian of a model as it is now, which it is only until its weights move: it has no copy of them.

    ``sample_bytes`` is what an earlier operator of the same data found: what was checked and measured then is not checked again;
    None: there was none. With ``roots``, one tensor a parameter by name, it is D H D, where D has them on its diagonal.

    >>> x, layer = torch.tensor([[1.0], [3.0]]), nn.Linear(1, 1, bias=False)
    >>> first = hessian(layer, nn.functional.mse_loss, (x, x))
    >>> hessian_again(layer, nn.functional.mse_loss, (x, x), sample_bytes=first.sample_bytes)(torch.ones(1)).item()
    10.0
    """
    point = replace(point_of(model, loss, shared=True), roots=roots)
    return operator_of(point, data, _hessian_graph("mean"), memory=memory, sample_bytes=sample_bytes)


def gauss_newton(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    names: Sequence[str] = (),
    reduction: Reduction = "mean",
    memory: int = MEMORY,
    distributed: bool = False,
) -> Operator:
    r"""$G=\frac{1}{N}\sum_iJ_i^T(\nabla_z^2\ell_i)J_i$: the Hessian of the loss in the outputs, carried to the parameters.

    Arguments as for `hessian`; the model must answer one tensor. Source: schraudolph2002.

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> gauss_newton(nn.Linear(1, 1, bias=False), nn.functional.mse_loss, (x, x))(torch.ones(1)).item()
    10.0
    """

    def middle(point: Point, output: Tensor, batch: Batch) -> tuple[Product, float]:
        slope = torch.autograd.grad(point.value(output, batch), output, create_graph=True)[0]

        def product(vectors: Tensor) -> Tensor:
            (found,) = derivative([slope], [output], [vectors])
            return torch.zeros_like(vectors) if found is None else found

        return product, _weight(batch, reduction)

    point, graph = point_of(model, loss, names=names), _sandwich(middle)
    return operator_of(point, data, graph, memory=memory, distributed=distributed, averaged=reduction == "mean")


def fisher(
    model: nn.Module,
    data: Any,
    *,
    likelihood: Likelihood = "categorical",
    names: Sequence[str] = (),
    memory: int = MEMORY,
    distributed: bool = False,
) -> Operator:
    r"""$F=\frac{1}{N}\sum_iE_{y\sim p_\theta(\cdot|x_i)}[\nabla\log p\,\nabla\log p^T]=\frac{1}{N}\sum J_i^TM_iJ_i$, exact.

    ``likelihood``: ``categorical`` over the outputs' axis 1 (softmax; $M=\mathrm{diag}\,p-pp^T$), ``gaussian`` of unit
    variance ($M=I$), ``bernoulli`` ($M=p(1-p)$). N counts samples, times positions where categorical outputs have more
    axes. Labels are not used. Source: martens2020.

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> fisher(nn.Linear(1, 1, bias=False), x, likelihood="gaussian")(torch.ones(1)).item()
    5.0
    """
    one_of(("categorical", "gaussian", "bernoulli"), likelihood=likelihood)

    def middle(point: Point, output: Tensor, batch: Batch) -> tuple[Product, float]:
        z, terms = output.detach(), len(output)
        if likelihood == "categorical":
            if z.ndim < 2:
                raise InputError(f"expected logits (samples, classes, ...), got {tuple(z.shape)}")
            p, terms = torch.softmax(z, 1), z.numel() // z.shape[1]
            return (lambda v: (p * v - p * (p * v).sum(2, keepdim=True)) / terms), float(terms)
        if likelihood == "gaussian":
            return (lambda v: v / terms), float(terms)
        p = torch.sigmoid(z)
        return (lambda v: p * (1 - p) * v / terms), float(terms)

    return operator_of(point_of(model, names=names), data, _sandwich(middle), memory=memory, distributed=distributed)


def empirical_fisher(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    names: Sequence[str] = (),
    memory: int = MEMORY,
    distributed: bool = False,
) -> Operator:
    r"""$\frac{1}{N}\sum_ig_ig_i^T$ with the gradients $g_i$ of the samples at their *given* labels; not the Fisher matrix.

    What many natural-gradient methods precondition with: lay its eigenvalues beside those of the Hessian before trusting it.

    ``loss`` averages over its batch, and a sample's output depends on that sample alone. Source: kunstner2019.

    >>> x = torch.tensor([[1.0], [2.0]])
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> empirical_fisher(model, nn.functional.mse_loss, (x, x))(torch.ones(1)).item()  # ((2 x 1)^2 + (2 x 4)^2) / 2
    34.0
    """

    def middle(point: Point, output: Tensor, batch: Batch) -> tuple[Product, float]:
        slope = torch.autograd.grad(point.value(output, batch), output)[0]
        own = slope.reshape(len(slope), -1)  # a sample's gradient over n

        def product(vectors: Tensor) -> Tensor:
            along = (vectors.reshape(len(vectors), *own.shape) * own).sum(2, keepdim=True)
            return (len(own) * own * along).reshape(vectors.shape)

        return product, float(len(batch))

    graph = _sandwich(middle)
    return operator_of(point_of(model, loss, names=names), data, graph, memory=memory, distributed=distributed)


def top_hessian_eigenvalues(
    model: nn.Module,
    loss: Loss,
    data: Any,
    *,
    count: int = 10,
    lowest: bool = False,
    tolerance: float | None = None,
    start: Tensor | None = None,
) -> Eigenpairs:
    r"""The largest eigenvalues of the Hessian, largest first, each with an error bound; the lowest with ``lowest``.

    Arguments as for `hessian` (build that yourself for names, memory or processes) and `extreme_eigenpairs`. ``start`` is
    a vector near the ones sought, such as the sum of earlier eigenvectors.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    >>> found = top_hessian_eigenvalues(nn.Linear(2, 1, bias=False), nn.functional.mse_loss, (x, x[:, :1]), count=2)
    >>> [round(value, 5) for value in found.values]
    [9.0, 1.0]
    """
    return extreme_eigenpairs(hessian(model, loss, data), count=count, lowest=lowest, tolerance=tolerance, start=start)


def _weight(batch: Batch, reduction: Reduction) -> float:
    one_of(("mean", "sum"), reduction=reduction)
    return float(len(batch)) if reduction == "mean" else 1.0


def _hessian_graph(reduction: Reduction) -> Graph:
    def graph(point: Point, batch: Batch) -> tuple[Product, float]:
        own = list(point.parameters.values())
        value = point.value(point.output(batch), batch)
        slopes = list(torch.autograd.grad(value, own, create_graph=True, materialize_grads=True))
        _check_twice(slopes)
        roots = None if point.roots is None else [point.roots[name] for name in point.parameters]
        if roots is not None:
            for place, root in enumerate(roots):  # each is let go of when the next is made
                slopes[place] = slopes[place] * root
        long = sum(p.numel() for p in own) >= LONG and own[0].device.type == "cpu"
        ends = [get_gradient_edge(y) if y.requires_grad else None for y in slopes] if long else []
        if long:  # only the graph is needed, not the values at its end
            slopes.clear()

        def product(vectors: Tensor) -> Tensor:
            pieces = point.split(vectors)
            if long:
                found = _gathered(ends, own, [piece[0] for piece in pieces])
            else:
                found = point.join(derivative(slopes, own, pieces), len(vectors))
            for piece, root in zip(point.split(found), roots or [], strict=False):
                piece.mul_(root)
            return found

        return product, _weight(batch, reduction)

    return graph


class OnceDifferentiableError(InputError):
    """A second backward pass would leave out what goes through some function."""


def _check_twice(slopes: Sequence[Tensor]) -> None:
    """A function marked ``once_differentiable`` ends the graph of a gradient: torch would leave it out without a word."""
    waiting: list[Any] = [slope.grad_fn for slope in slopes if slope.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if node.name() == "torch::autograd::Error":
            raise OnceDifferentiableError(
                "expected a model that can be differentiated twice, got a function that can be once; use sharpness_by_differences"
            )
        ahead = {other for other, _ in node.next_functions if other is not None} - seen
        seen |= ahead
        waiting += ahead


LONG = 1 << 20
"""Entries from which on a vector is not held twice in the memory of a processor."""


def _gathered(ends: Sequence[GradientEdge | None], inputs: Sequence[Tensor], direction: Sequence[Tensor]) -> Tensor:
    """`derivative` along one vector as a row (1, P): each part is let go of when it is at its place."""
    live = [(y, v) for y, v in zip(ends, direction, strict=True) if y is not None]
    found = inputs[0].new_zeros(sum(x.numel() for x in inputs))  # not taken before it is written to
    if not live:
        return found[None]
    ys, vs = zip(*live, strict=True)
    parts: list[Tensor | None] = list(torch.autograd.grad(ys, inputs, vs, retain_graph=True, allow_unused=True))
    memory_given_back()  # what a product takes in pieces is as much as all else
    for index, place in enumerate(torch.split(found, [x.numel() for x in inputs])):
        part, parts[index] = parts[index], None
        if part is not None:
            place.copy_(part.reshape(-1))
    memory_given_back()
    return found[None]


def _sandwich(middle: Callable[[Point, Tensor, Batch], tuple[Product, float]]) -> Graph:
    """Products with $J^TMJ$, where ``middle`` gives those with M, which acts on the outputs of a batch."""

    def graph(point: Point, batch: Batch) -> tuple[Product, float]:
        own = list(point.parameters.values())
        output = point.output(batch)
        if not isinstance(output, Tensor):
            raise InputTypeError(
                f"expected a model that answers one tensor, got {type(output).__name__}; wrap it to return one"
            )
        inner, weight = middle(point, output.detach().requires_grad_(), batch)
        probe = torch.zeros_like(output, requires_grad=True)  # J^T u is linear in u: its derivative by u is J
        back = torch.autograd.grad(output, own, probe, create_graph=True, materialize_grads=True)

        def product(vectors: Tensor) -> Tensor:
            (forward,) = derivative(back, [probe], point.split(vectors))
            if forward is None:
                return torch.zeros_like(vectors)
            return point.join(derivative([output], own, [inner(forward).detach()]), len(vectors))

        return product, weight

    return graph
