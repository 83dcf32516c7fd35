"""Learners of one linear target, many problems side by side: least squares, and descent by any update to convergence."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from theodolite.core.checks import at_least, finite_values, one_of
from theodolite.nn import Squares
from theodolite.optim import EGU, EGUpm

Optimizer = Callable[[Iterable[Tensor]], torch.optim.Optimizer]

MULTIPLICATIVE = ("egu", "egupm", "spindly", "spindlypm")


def least_squares_weights(x: Tensor, y: Tensor) -> Tensor:
    """The least-norm weights that fit best, where gradient descent from zero ends: (..., k, d) and (..., k) to (..., d).

    >>> least_squares_weights(torch.eye(2, 3), torch.tensor([1.0, 2.0])).tolist()
    [1.0, 2.0, 0.0]
    """
    finite_values(x=x)
    return (torch.linalg.pinv(x) @ y[..., None])[..., 0]


def multiplicative_weights(
    x: Tensor, y: Tensor, *, update: str, lr: float, steps: int, initial_weight: float
) -> Tensor:
    r"""Weights after full-batch steps on half the mean square, (b, k, d) and (b, k) to (b, d), by the library's own updates.

    egu starts from equal weights ``initial_weight``; spindly is $w=u^2$ from the same weights with gradient steps on u of rate
    ``lr``/4, and spindlypm and egupm are their two-signed forms, from zero, with that much on either side.
    """
    one_of(MULTIPLICATIVE, update=update)
    w = torch.full((x.shape[0], x.shape[2]), initial_weight, dtype=x.dtype)
    if update.startswith("spindly"):
        squares = Squares(initial_weight**0.5, positive=update == "spindly")
        parts = squares.right_inverse(w if squares.positive else torch.zeros_like(w))
        own = [nn.Parameter(part) for part in ([parts] if isinstance(parts, Tensor) else parts)]
        optimizer: torch.optim.Optimizer = torch.optim.SGD(own, lr=lr / 4)
    elif update == "egu":
        own = [nn.Parameter(w)]
        optimizer = EGU(own, lr=lr)
    else:
        own = [nn.Parameter(torch.zeros_like(w))]
        optimizer = EGUpm(own, lr=lr, beta=2 * initial_weight)
    for _ in range(steps):
        with torch.no_grad():
            w = squares(*own) if update.startswith("spindly") else own[0]
            slope = _slope(x, y, w)
            if update.startswith("spindly"):
                for p, sign in zip(own, (2.0, -2.0), strict=False):
                    p.grad = sign * p * slope
            else:
                own[0].grad = slope
            optimizer.step()
    with torch.no_grad():
        return squares(*own) if update.startswith("spindly") else own[0].detach()


def descent_weights(
    x: Tensor, y: Tensor, *, optimizer: Optimizer, passes: int = 1, batch_size: int | None = None
) -> Tensor:
    """Weights from zero after passes by an elementwise optimizer, ``batch_size`` examples a step (None: all)."""
    at_least(0, passes=passes)
    at_least(1, batch_size=batch_size)
    w = nn.Parameter(torch.zeros(x.shape[0], x.shape[2], dtype=x.dtype))
    stepping = optimizer([w])
    size = batch_size or x.shape[1]
    for _ in range(passes):
        for place in range(0, x.shape[1], size):
            rows = slice(place, place + size)
            w.grad = _slope(x[:, rows], y[:, rows], w.detach())
            stepping.step()
    return w.detach()


def outside_span(x: Tensor, weights: Tensor) -> Tensor:
    """The share of the weights' norm off the span of the rows, (b, k, d) and (b, d) to (b,).

    >>> outside_span(torch.eye(2, 3)[None], torch.tensor([[3.0, 0.0, 4.0]])).item() - 0.8 < 1e-6
    True
    """
    basis = torch.linalg.qr(x.mT)[0]  # (b, d, k)
    rest = weights[..., None] - basis @ (basis.mT @ weights[..., None])
    return torch.as_tensor(rest[..., 0].norm(dim=-1) / weights.norm(dim=-1))


def _slope(x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    residual = (x @ w[..., None])[..., 0] - y
    return (x.mT @ residual[..., None])[..., 0] / x.shape[1]
