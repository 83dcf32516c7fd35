"""Learners by name, each a function of (x, y, test, seed, rotation), for asking which of them treat all directions alike."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from theodolite.core.checks import finite, not_negative
from theodolite.measure.experiments.network_learners import Slopes, gaussian_start, network_outputs, trained_networks
from theodolite.measure.experiments.sparse_learners import Optimizer, least_squares_weights, multiplicative_weights

Learner = Callable[..., Tensor]
STEPS, WIDTH = 5, 8


def _network_learner(
    optimizer: Optimizer,
    *,
    gradient_map: Callable[[], Slopes] | None = None,
    input_map: Callable[[Tensor], Tensor] | None = None,
) -> Learner:
    """A tanh network of one hidden layer, some steps of an optimizer; its Gaussian first layer turns with the data."""

    def learn(x: Tensor, y: Tensor, test: Tensor, *, seed: int, rotation: Tensor | None = None) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        own = gaussian_start(1, (x.shape[1], WIDTH, 1), activation="tanh", generator=generator, rotation=rotation)
        fed, asked = (x, test) if input_map is None else (input_map(x), input_map(test))
        along = gradient_map() if gradient_map is not None else None
        own = trained_networks(
            own, fed[None], y[None], activation="tanh", optimizer=optimizer, steps=STEPS, gradient_map=along
        )
        return network_outputs(own, asked[None], "tanh")[0]

    return learn


def _linear_learner(weights: Callable[[Tensor, Tensor], Tensor]) -> Learner:
    """A linear learner given by the weights it finds, from a start that knows no direction."""
    return lambda x, y, test: test @ weights(x, y)


def ridge_weights(x: Tensor, y: Tensor) -> Tensor:
    """Ridge regression, where Newton's method on the penalized square ends in one step."""
    return torch.as_tensor(torch.linalg.solve(x.T @ x + torch.eye(x.shape[1], dtype=x.dtype), x.T @ y))


def online_weights(x: Tensor, y: Tensor, *, exponent: float, lr: float = 0.3) -> Tensor:
    r"""Online steps $w-\eta A_t^{-p}g_t$, $A_t=I+\sum g_jg_j^\top$: p = 1 is online Newton, 1/2 full-matrix Adagrad."""
    finite(exponent=exponent)
    not_negative(lr=lr)
    d = x.shape[1]
    w, matrix = torch.zeros(d, dtype=x.dtype), torch.eye(d, dtype=x.dtype)
    for row, label in zip(x, y, strict=True):
        slope = (row @ w - label) * row
        matrix = matrix + torch.outer(slope, slope)
        values, vectors = torch.linalg.eigh(matrix)
        w = w - lr * vectors @ (values**-exponent * (vectors.T @ slope))
    return w


def vaw_predictions(x: Tensor, y: Tensor, test: Tensor) -> Tensor:
    r"""The Vovk-Azoury-Warmuth forecast at each test point: $x\cdot A^{-1}\sum_jy_jx_j$, with x itself counted in A."""
    A = torch.eye(x.shape[1], dtype=x.dtype) + x.T @ x
    grown = A + test[:, :, None] * test[:, None, :]
    return (test * torch.linalg.solve(grown, (x.T @ y).expand(len(test), -1))).sum(1)


def _lasso_weights(x: Tensor, y: Tensor) -> Tensor:
    """Proximal steps on the square with an absolute penalty."""
    step, w = 1 / float(torch.linalg.matrix_norm(x, 2)) ** 2, torch.zeros(x.shape[1], dtype=x.dtype)
    for _ in range(60):
        w = torch.nn.functional.softshrink(w - step * x.T @ (x @ w - y), 0.3 * step)
    return w


def _layer_normed(x: Tensor) -> Tensor:
    """Each row centered and scaled, as by LayerNorm on the input."""
    return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)


def _root_mean_square_normed(x: Tensor) -> Tensor:
    """Each row scaled to unit mean square, as by RMSNorm on the input."""
    return x / x.square().mean(1, keepdim=True).sqrt()


def _capped(x: Tensor) -> Tensor:
    """Each feature cut at one root mean square of all: any map feature by feature, such as standardization, is alike."""
    return x.clamp(-1.0, 1.0)


def _normalized_slopes() -> Slopes:
    """Gradients over their common norm."""
    return lambda own, slopes: [g / torch.cat([s.flatten() for s in slopes]).norm() for g in slopes]


def _layerwise_slopes() -> Slopes:
    """Gradients scaled to the norm of each layer's weights (LARS)."""
    return lambda own, slopes: [0.1 * (1 + p.norm()) * g / g.norm() for p, g in zip(own, slopes, strict=True)]


def _signed_slopes() -> Slopes:
    """The signs of the gradients."""
    return lambda own, slopes: [0.1 * g.sign() for g in slopes]


def _polar_slopes() -> Slopes:
    """The orthogonal factor of each matrix of momenta (Muon, without the approximation)."""
    kept: list[Tensor] = []

    def along(own: list[Tensor], slopes: list[Tensor]) -> list[Tensor]:
        kept[:] = [0.9 * m + g for m, g in zip(kept, slopes, strict=True)] if kept else slopes
        return [_polar(m) for m in kept]

    return along


def _shampoo_slopes() -> Slopes:
    """Gradients between inverse fourth roots of the sums of their squares from either side (Shampoo)."""
    sides: list[tuple[Tensor, Tensor]] = []

    def along(own: list[Tensor], slopes: list[Tensor]) -> list[Tensor]:
        if not sides:
            sides[:] = [(_unit(g.shape[1]), _unit(g.shape[2])) for g in slopes]
        sides[:] = [(a + (g @ g.mT)[0], b + (g.mT @ g)[0]) for (a, b), g in zip(sides, slopes, strict=True)]
        return [_root(a) @ g @ _root(b) for (a, b), g in zip(sides, slopes, strict=True)]

    return along


def _unit(side: int) -> Tensor:
    return 1e-2 * torch.eye(side, dtype=torch.float64)


def _root(matrix: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(matrix)
    return (vectors * values**-0.25) @ vectors.T


def _polar(matrix: Tensor) -> Tensor:
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    return 0.3 * left @ right


SGD, ADAM = torch.optim.SGD, torch.optim.Adam

INVARIANT: dict[str, Learner] = {
    "gradient descent": _network_learner(partial(SGD, lr=0.3)),
    "momentum": _network_learner(partial(SGD, lr=0.2, momentum=0.9)),
    "Nesterov": _network_learner(partial(SGD, lr=0.2, momentum=0.9, nesterov=True)),
    "weight decay": _network_learner(partial(SGD, lr=0.3, weight_decay=0.1)),
    "normalized": _network_learner(partial(SGD, lr=0.3), gradient_map=_normalized_slopes),
    "LARS": _network_learner(partial(SGD, lr=1.0), gradient_map=_layerwise_slopes),
    "Muon": _network_learner(partial(SGD, lr=1.0), gradient_map=_polar_slopes),
    "Shampoo": _network_learner(partial(SGD, lr=0.3), gradient_map=_shampoo_slopes),
    "RMSNorm on inputs": _network_learner(partial(SGD, lr=0.3), input_map=_root_mean_square_normed),
    "least squares": _linear_learner(least_squares_weights),
    "ridge": _linear_learner(ridge_weights),
    "online Newton": _linear_learner(partial(online_weights, exponent=1.0)),
    "full Adagrad": _linear_learner(partial(online_weights, exponent=0.5)),
    "VAW": vaw_predictions,
}
NOT_INVARIANT: dict[str, Learner] = {
    "Adagrad": _network_learner(partial(torch.optim.Adagrad, lr=0.1)),
    "Adam": _network_learner(partial(ADAM, lr=0.1)),
    "AdamW": _network_learner(partial(torch.optim.AdamW, lr=0.1)),
    "NAdam": _network_learner(partial(torch.optim.NAdam, lr=0.1)),
    "RMSprop": _network_learner(partial(torch.optim.RMSprop, lr=0.1)),
    "Adadelta": _network_learner(partial(torch.optim.Adadelta, lr=50.0)),
    "Rprop": _network_learner(partial(torch.optim.Rprop, lr=0.1)),
    "sign descent": _network_learner(partial(SGD, lr=1.0), gradient_map=_signed_slopes),
    "LayerNorm on inputs": _network_learner(partial(SGD, lr=0.3), input_map=_layer_normed),
    "features capped": _network_learner(partial(SGD, lr=0.3), input_map=_capped),
    "lasso": _linear_learner(_lasso_weights),
    "EGU": _linear_learner(
        lambda x, y: multiplicative_weights(
            x[None], y[None], update="egu", lr=0.2, steps=60, initial_weight=1 / x.shape[1]
        )[0]
    ),
    "Spindly": _linear_learner(
        lambda x, y: multiplicative_weights(
            x[None], y[None], update="spindlypm", lr=0.2, steps=60, initial_weight=1 / x.shape[1]
        )[0]
    ),
}
