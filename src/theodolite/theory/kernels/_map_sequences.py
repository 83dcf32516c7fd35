"""A network as the sequence of maps that its kernels go through, and those maps on the diagonal and on single pairs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core.checks import InputError, InputTypeError
from theodolite.theory import Activation, Mlp, activation_of
from theodolite.theory.kernels._deep_chains import bow_of, chain_kernels
from theodolite.theory.kernels._duals.maps import Dual, Pairs, known_dual
from theodolite.theory.kernels._duals.series import series_dual


@dataclass(frozen=True)
class Dense:
    r"""A linear layer: weights $N(0,C_w/\mathrm{fan\,in})$, biases $N(0,C_b)$, with their rates of learning.

    Rates of None are the variances: the NTK parametrization. The map is $K\to C_b+C_wK$ and
    $\Theta\to\lambda_b+\lambda_wK+C_w\Theta$.
    """

    weight_variance: float
    bias_variance: float = 0.0
    weight_rate: float | None = None
    bias_rate: float | None = None

    def __post_init__(self) -> None:
        for name in ("weight_variance", "bias_variance", "weight_rate", "bias_rate"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"expected a finite {name} of at least 0, got {value!r}")

    @property
    def rates(self) -> tuple[float, float]:
        """The rates of weights and biases."""
        weight = self.weight_variance if self.weight_rate is None else self.weight_rate
        return weight, self.bias_variance if self.bias_rate is None else self.bias_rate


@dataclass(frozen=True)
class Nonlinear:
    r"""An activation: $K\to E\,\sigma\sigma$, $\Theta\to\Theta\,E\,\sigma'\sigma'$."""

    activation: Activation


@dataclass(frozen=True)
class Normalized:
    r"""Layer normalization of a signal of mean zero: $K\to K/\sqrt{(q+\epsilon)(q'+\epsilon)}$, the same for $\Theta$.

    q is the variance of a pixel's channels; of a ``whole`` image the mean over its pixels, as group normalization has it.
    """

    epsilon: float = 0.0
    whole: bool = False


@dataclass(frozen=True)
class Sum:
    """A residual sum of two branches that share no weights: their kernels add."""

    branch: tuple[Any, ...]  # layers of the kind it stands among
    skip: tuple[Any, ...] = ()


Program = tuple[Dense | Nonlinear | Normalized | Sum, ...]
Layers = Sequence[Dense | Nonlinear | Normalized | Sum]


def program_of(spec: Mlp | Layers, *, weight_rate: float | None = None, bias_rate: float | None = None) -> Program:
    """The maps of a specification; rates that are given replace those of every layer.

    >>> len(program_of(Mlp(3, "relu", 2.0)))
    7
    """
    if isinstance(spec, Mlp):
        made = {pair: Dense(*pair, weight_rate, bias_rate) for pair in set(spec.variances_of(None))}
        first, *others = (made[pair] for pair in spec.variances_of(None))
        between = Nonlinear(spec.sigma)
        return (first, *(layer for dense in others for layer in (between, dense)))
    found: list[Dense | Nonlinear | Normalized | Sum] = []
    for layer in spec:
        if isinstance(layer, Dense):
            weight = layer.weight_rate if weight_rate is None else weight_rate
            bias = layer.bias_rate if bias_rate is None else bias_rate
            found.append(Dense(layer.weight_variance, layer.bias_variance, weight, bias))
        elif isinstance(layer, Sum):
            parts = [program_of(p, weight_rate=weight_rate, bias_rate=bias_rate) for p in (layer.branch, layer.skip)]
            found.append(Sum(*parts))
        elif isinstance(layer, Nonlinear | Normalized):
            found.append(layer)
        else:
            raise InputTypeError(
                f"expected an Mlp or a sequence of Dense, Nonlinear, Normalized and Sum, got {type(layer).__name__} in it"
            )
    return tuple(found)


def dense_layers(
    weight_variances: Sequence[float],
    *,
    activation: str | Activation | Sequence[str | Activation] = "relu",
    bias_variances: Sequence[float] | float = 0.0,
) -> Program:
    """A multilayer perceptron whose variances (and activations) differ from layer to layer.

    ``weight_variances`` has one number for each weight matrix; there is one activation fewer.

    >>> dense_layers([2.0, 1.5], bias_variances=[0.0, 0.1])[2]
    Dense(weight_variance=1.5, bias_variance=0.1, weight_rate=None, bias_rate=None)
    """
    count = len(weight_variances)
    biases = [bias_variances] * count if isinstance(bias_variances, int | float) else list(bias_variances)
    names = [activation] * (count - 1) if isinstance(activation, str | Activation) else list(activation)
    if len(biases) != count or len(names) != count - 1:
        raise InputError(
            f"expected {count} bias variances and {count - 1} activations for {count} weight variances, "
            f"got {len(biases)} and {len(names)}"
        )
    found: list[Dense | Nonlinear] = []
    for position, (weight, bias) in enumerate(zip(weight_variances, biases, strict=True)):
        if position:
            found.append(Nonlinear(activation_of(names[position - 1])))
        found.append(Dense(float(weight), float(bias)))
    return tuple(found)


_known: dict[Activation, Dual | None] = {}


def dual_of(activation: Activation, low: float, high: float) -> Dual:
    """The dual of an activation for variances from ``low`` to ``high``: closed form if there is one, else a series."""
    return (_known[activation] if has_closed_form(activation) else None) or series_dual(activation, low, high)


def has_closed_form(activation: Activation) -> bool:
    """Whether the dual is known exactly."""
    if activation not in _known:
        _known[activation] = known_dual(activation.function)
    return _known[activation] is not None


@dataclass(frozen=True)
class DualStep:
    """What a nonlinearity or a normalization needs to know of the points: their variances, and the dual for them."""

    variances: Tensor  # (n,) float64, of all points
    constant: float | None  # the one variance of all points, if it is one
    dual: Dual | None
    activation: Activation | None = None


@dataclass(frozen=True)
class KernelDiagonals:
    """Variances and tangent kernel of each point with itself, behind the network, and all the steps on the way."""

    nngp: Tensor
    ntk: Tensor
    steps: tuple[DualStep, ...]


SPREAD = 2e-15  # relative; variances that differ by no more count as one


def diagonal_of(program: Program, squares: Tensor) -> KernelDiagonals:
    """Send the mean squares of the inputs, float64 (n,), through the network."""
    steps: list[DualStep] = []
    nngp, ntk = _diagonal(program, squares, torch.zeros_like(squares), steps)
    return KernelDiagonals(nngp, ntk, tuple(steps))


def _diagonal(program: Program, q: Tensor, ntk: Tensor, steps: list[DualStep]) -> tuple[Tensor, Tensor]:
    for layer in program:
        if isinstance(layer, Dense):
            weight, bias = layer.rates
            ntk = bias + weight * q + layer.weight_variance * ntk
            q = layer.bias_variance + layer.weight_variance * q
        elif isinstance(layer, Sum):
            first = _diagonal(layer.branch, q, ntk, steps)
            second = _diagonal(layer.skip, q, ntk, steps)
            q, ntk = first[0] + second[0], first[1] + second[1]
        else:
            if steps and isinstance(layer, Nonlinear) and _repeats(steps[-1], layer, q):
                steps.append(steps[-1])  # one object: what is worked out for it is worked out once
                q, ntk = _through(steps[-1], q, ntk)
                continue
            low, high = (float(q.min()), float(q.max())) if q.numel() else (1.0, 1.0)
            constant = high if high - low <= SPREAD * high else None
            if isinstance(layer, Normalized):
                steps.append(DualStep(q, constant, None))
                q, ntk = q / (q + layer.epsilon), ntk / (q + layer.epsilon)
                q, ntk = torch.nan_to_num(q, nan=0.0), torch.nan_to_num(ntk, nan=0.0)
                continue
            dual = dual_of(layer.activation, low if constant is None else high, high)
            steps.append(DualStep(q, constant, dual, layer.activation))
            q, ntk = _through(steps[-1], q, ntk)
    return q, ntk


def _repeats(step: DualStep, layer: Nonlinear, q: Tensor) -> bool:
    """Whether the nonlinearity before was the same and met the same variances, as at a fixed point."""
    return step.activation is layer.activation and torch.equal(step.variances, q)


def _through(step: DualStep, q: Tensor, ntk: Tensor) -> tuple[Tensor, Tensor]:
    dual = step.dual
    assert dual is not None
    tangent = dual.slope_moment(q) * ntk
    return dual.moment(q), torch.where(ntk == 0, 0.0, tangent) if dual.jumps else tangent


def pair_kernels(program: Program, steps: Sequence[DualStep], start: Pairs) -> tuple[Tensor, Tensor]:
    r"""NNGP and NTK of single pairs, from $1-c$ and $1+c$ of the inputs: no digits are lost as points become parallel."""
    slopes = _chain_slopes(program, steps)
    if slopes is not None and start.a.device.type == "cpu":
        apart = start.less.numpy(), start.more.numpy()
        found = chain_kernels(program, slopes, start.size.numpy(), apart)
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])
    at, ntk = _pairs(program, iter(steps), start, torch.zeros_like(start.a))
    return at.covariance, ntk


def _chain_slopes(program: Program, steps: Sequence[DualStep]) -> list[tuple[float, float]] | None:
    """The slopes of every nonlinearity, where all are homogeneous and no layer has a bias variance; else None."""
    if not all(
        layer.bias_variance == 0.0 if isinstance(layer, Dense) else isinstance(layer, Nonlinear) for layer in program
    ):
        return None
    found = [step.dual.slopes for step in steps if step.dual is not None]
    slopes = [pair for pair in found if pair is not None and any(pair)]
    return slopes if len(slopes) == len(steps) else None


def pair_layers(program: Program, steps: Sequence[DualStep], start: Pairs) -> tuple[list[Tensor], list[Tensor]]:
    r"""Of a chain, the $E\,\sigma\sigma$ that each linear layer is fed, and the $E\,\sigma'\sigma'$ between them."""
    at, left = start, iter(steps)
    fed, slopes = [], []
    for layer in program:
        if isinstance(layer, Dense):
            fed.append(at.covariance)
            at = _affine(at, layer.weight_variance, layer.bias_variance)
        else:
            dual = next(left).dual
            assert dual is not None
            at, slope = _behind_step(dual, at)
            slopes.append(slope)
    return fed, slopes


def _pairs(program: Program, steps: Iterator[DualStep], at: Pairs, ntk: Tensor) -> tuple[Pairs, Tensor]:
    for layer in program:
        if isinstance(layer, Dense):
            weight, bias = layer.rates
            ntk = bias + weight * at.covariance + layer.weight_variance * ntk
            at = _affine(at, layer.weight_variance, layer.bias_variance)
        elif isinstance(layer, Sum):
            first, one = _pairs(layer.branch, steps, at, ntk)
            second, two = _pairs(layer.skip, steps, at, ntk)
            at, ntk = _added(first, second), one + two
        elif isinstance(layer, Normalized):
            next(steps)
            a, b = at.a + layer.epsilon, at.b + layer.epsilon
            a, b = torch.where(a > 0, a, 1.0), torch.where(b > 0, b, 1.0)
            at, ntk = Pairs(at.a / a, at.b / b, at.less, at.more), ntk / (a * b).sqrt()
        else:
            dual = next(steps).dual
            assert dual is not None
            at, slope = _behind_step(dual, at)
            ntk = torch.where(ntk == 0, 0.0, slope * ntk) if dual.jumps else slope * ntk
    return at, ntk


def _behind_step(dual: Dual, at: Pairs) -> tuple[Pairs, Tensor]:
    """The pairs behind a nonlinearity, and the covariances of its slopes."""
    if dual.slopes is None:
        e, d = dual.pairs(at)
        return behind(dual, at, e), d
    right, left = dual.slopes
    square, product, gap = 0.5 * (right**2 + left**2), right * left, (right - left) ** 2
    if square == 0.0:
        return _checked(0 * at.a, 0 * at.b, at.less, at.more), torch.zeros_like(at.less)
    theta = at.angle
    bow = torch.from_numpy(bow_of(theta.cpu().numpy())).to(theta) / math.pi
    less = (product * at.less + 0.5 * gap * (at.less - bow)) / square
    more = (product * at.more + 0.5 * gap * (at.more + bow)) / square
    return _checked(square * at.a, square * at.b, less, more), product + gap * (0.5 - theta / (2 * math.pi))


def _affine(at: Pairs, weight: float, bias: float) -> Pairs:
    r"""$K\to C_b+C_wK$ for $1\mp c$, by $\sqrt{q q'}\mp(C_b+C_wk)$ written as sums of positive terms."""
    a, b = bias + weight * at.a, bias + weight * at.b
    if bias == 0.0 and weight > 0.0:
        return Pairs(a, b, at.less, at.more)
    size, inner = a.sqrt() * b.sqrt(), weight * at.size
    safe = torch.where(size > 0, size, 1.0)
    roots = at.a.sqrt(), at.b.sqrt()
    less = bias * weight * (roots[0] - roots[1]) ** 2 / (safe + bias + inner) + inner * at.less
    other = safe + (inner - bias)
    more = bias * weight * (roots[0] + roots[1]) ** 2 / torch.where(other > 0, other, 1.0) + inner * at.more
    more = torch.where(inner > bias, more, 2 * safe)  # then no covariance is negative, and ``less`` is what is kept
    return _checked(a, b, less / safe, more / safe)


def _added(first: Pairs, second: Pairs) -> Pairs:
    a, b = first.a + second.a, first.b + second.b
    size, one, two = a.sqrt() * b.sqrt(), first.size, second.size
    safe = torch.where(size > 0, size, 1.0)
    apart = (first.a.sqrt() * second.b.sqrt() - second.a.sqrt() * first.b.sqrt()) ** 2 / (safe + one + two)
    return _checked(
        a,
        b,
        (apart + one * first.less + two * second.less) / safe,
        (one * first.more + two * second.more + apart) / safe,
    )


def behind(dual: Dual, at: Pairs, e: Tensor) -> Pairs:
    """The pairs behind a nonlinearity, from the covariances ``e`` there."""
    a, b = dual.moment(at.a), dual.moment(at.b)
    size = a.sqrt() * b.sqrt()
    safe = torch.where(size > 0, size, 1.0)
    if dual.slopes is not None:
        return _behind_step(dual, at)[0]
    parallel = Pairs(at.a, at.b, torch.zeros_like(at.less), torch.full_like(at.less, 2.0))
    halfway = Pairs(at.a, at.b, 0.5 * at.less, 2 - 0.5 * at.less)
    lost = torch.where(at.a == at.b, 0.0, (size - dual.pairs(parallel)[0]).clamp(min=0.0))
    by_slope = lost + dual.pairs(halfway)[1] * at.size * at.less  # dE/dk is the covariance of slopes (Price)
    close = at.less < 1e-6
    less = torch.where(close & torch.isfinite(by_slope), by_slope, size - e)
    return _checked(a, b, less / safe, (size + e) / safe)


def _checked(a: Tensor, b: Tensor, less: Tensor, more: Tensor) -> Pairs:
    """Both within [0, 2] and summing to 2, the smaller one kept."""
    less, more = less.clamp(0.0, 2.0), more.clamp(0.0, 2.0)
    zero = (a == 0) | (b == 0)
    near = less <= more
    return Pairs(
        a,
        b,
        torch.where(zero, 1.0, torch.where(near, less, 2 - more)),
        torch.where(zero, 1.0, torch.where(near, 2 - less, more)),
    )
