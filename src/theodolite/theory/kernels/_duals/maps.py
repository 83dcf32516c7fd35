"""Dual activations: what a nonlinearity does to a whole block of covariances at once, where it is known exactly."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from theodolite.theory.kernels._memory_blocks import Scratch, affine_, constant

Side = Tensor | float
"""The variances of the points of one side of a block, as a column or a row, or one number for all of them."""


@dataclass(frozen=True)
class Pairs:
    r"""Pairs of Gaussians: variances ``a``, ``b``, and $1-c$ and $1+c$, each to full relative precision where small."""

    a: Tensor
    b: Tensor
    less: Tensor
    more: Tensor

    @property
    def size(self) -> Tensor:
        r"""$\sqrt{ab}$."""
        return self.a.sqrt() * self.b.sqrt()

    @property
    def covariance(self) -> Tensor:
        r"""$k=\sqrt{ab}\,c$."""
        return self.size * torch.where(self.less < 1, 1 - self.less, self.more - 1)

    @property
    def determinant(self) -> Tensor:
        r"""$ab-k^2$ without cancellation."""
        return self.a * self.b * self.less * self.more

    @property
    def angle(self) -> Tensor:
        r"""$\theta=2\arctan\sqrt{(1-c)/(1+c)}$, which keeps its digits at both ends."""
        return 2 * torch.atan2(self.less.sqrt(), self.more.sqrt())


BlockMap = Callable[[Tensor, Side, Side, Scratch], tuple[Tensor, Tensor | float]]


def _ones(q: Tensor) -> Tensor:
    return torch.ones_like(q)


@dataclass(frozen=True, kw_only=True)
class Dual:
    r"""$E\,\sigma(u)\sigma(v)$ and $E\,\sigma'(u)\sigma'(v)$ for variances a, b and covariance k.

    ``block(r, a, b, scratch)`` takes $r=k/(A(a)A(b))$, which it overwrites, and returns e and d with
    $E\,\sigma\sigma=B(a)B(b)e$ and $E\,\sigma'\sigma'=D(a)D(b)d$; A, B, D are ``scale``, ``gain``, ``slope_gain``.
    Where it is ``sharp`` it loses digits as |r| nears 1; ``pairs`` does not. ``jumps``: slopes are infinite.
    """

    moment: Callable[[Tensor], Tensor]
    slope_moment: Callable[[Tensor], Tensor]
    block: BlockMap
    pairs: Callable[[Pairs], tuple[Tensor, Tensor]]
    scale: Callable[[Tensor], Tensor] = _ones
    gain: Callable[[Tensor], Tensor] = _ones
    slope_gain: Callable[[Tensor], Tensor] = _ones
    sharp: bool = False
    jumps: bool = False
    slopes: tuple[float, float] | None = field(default=None)  # right and left of 0, if positively homogeneous


def _root_of_complement(r: Tensor, scratch: Scratch) -> Tensor:
    """The root of 1 - r²."""
    return torch.addcmul(constant(1.0, r), r, r, value=-1.0, out=scratch.like(r)).sqrt_()


def homogeneous_dual(right: float, left: float) -> Dual:
    r"""Positively homogeneous: slope ``right`` above 0 and ``left`` below; identity, ReLU, leaky ReLU, |z|.

    With $\theta$ the angle, $g=(s_+-s_-)^2$: $E\sigma'\sigma'=s_+s_-+g(\pi-\theta)/2\pi$ and
    $E\sigma\sigma=\sqrt{ab}(\cos\theta\,E\sigma'\sigma'+g\sin\theta/2\pi)$. Source: cho2009, equation 6.
    """
    square, product, gap = 0.5 * (right**2 + left**2), right * left, (right - left) ** 2

    def block(r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
        if gap == 0.0:
            return r.mul_(product), product
        d = affine_(torch.acos(r, out=scratch.like(r)), -gap / (2 * math.pi), product + 0.5 * gap)
        s = _root_of_complement(r, scratch)
        r.mul_(d).add_(s, alpha=gap / (2 * math.pi))
        scratch.release(s)
        return r, d

    def pairs(at: Pairs) -> tuple[Tensor, Tensor]:
        slope = product + gap * (math.pi - at.angle) / (2 * math.pi)
        return at.covariance * slope + gap / (2 * math.pi) * at.determinant.sqrt(), slope

    return Dual(
        moment=lambda q: square * q,
        slope_moment=lambda q: torch.full_like(q, square),
        block=block,
        pairs=pairs,
        scale=torch.sqrt,
        gain=torch.sqrt,
        sharp=gap > 0.0,
        slopes=(right, left),
    )


def step_dual(right: float, left: float) -> Dual:
    r"""A step from ``left`` to ``right`` at 0: $E\sigma\sigma=\bar s^2+(s_+-s_-)^2\arcsin(c)/2\pi$; slopes are infinite."""
    middle, gap = 0.5 * (right + left), (right - left) ** 2

    def block(r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
        return affine_(torch.asin(r, out=r), gap / (2 * math.pi), middle**2), math.inf

    def pairs(at: Pairs) -> tuple[Tensor, Tensor]:
        value = middle**2 + gap * (math.pi / 2 - at.angle) / (2 * math.pi)
        return value, torch.full_like(value, math.inf)

    return Dual(
        moment=lambda q: torch.full_like(q, 0.5 * (right**2 + left**2)),
        slope_moment=lambda q: torch.full_like(q, math.inf),
        block=block,
        pairs=pairs,
        scale=torch.sqrt,
        sharp=True,
        jumps=True,
    )


def _erf_block(r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
    d = _root_of_complement(r, scratch).reciprocal_()
    return torch.asin(r, out=r).mul_(2 / math.pi), d


def _erf_pairs(at: Pairs) -> tuple[Tensor, Tensor]:
    root = (1 + 2 * (at.a + at.b) + 4 * at.determinant).sqrt()
    return 2 / math.pi * torch.atan2(2 * at.covariance, root), 4 / math.pi / root


ERF = Dual(  # Source: williams1997, equation 11
    moment=lambda q: 2 / math.pi * torch.atan2(2 * q, (1 + 4 * q).sqrt()),
    slope_moment=lambda q: 4 / math.pi / (1 + 4 * q).sqrt(),
    block=_erf_block,
    pairs=_erf_pairs,
    scale=lambda q: (0.5 + q).sqrt(),
    slope_gain=lambda q: (4 / math.pi / (1 + 2 * q)).sqrt(),
    sharp=True,
)


def _gelu_block(r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
    # with p = 1 / (1 + a): E = r (1/4 + asin r / 2π) + (p p' / s - (p + p' - 1) s) / 2π
    first, second = 1 / (1 + a), 1 / (1 + b)
    s = _root_of_complement(r, scratch)
    inverse = torch.reciprocal(s, out=scratch.like(r))
    d = affine_(torch.asin(r, out=scratch.like(r)), 1 / (2 * math.pi), 0.25)
    e = torch.mul(r, d, out=scratch.like(r))
    r.mul_(inverse)
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        sums = torch.add(first, second, out=scratch.like(r))
        e.addcmul_(s, sums, value=-1 / (2 * math.pi))
        total: Side = sums
    else:
        total = float(first + second)
        e.add_(s, alpha=-total / (2 * math.pi))
    e.add_(s, alpha=1 / (2 * math.pi))
    each = torch.mul(inverse, first, out=s).mul_(second)
    e.add_(each, alpha=1 / (2 * math.pi))
    inverse.mul_(each).add_(total)
    d.addcmul_(r, inverse, value=1 / (2 * math.pi))
    scratch.release(s, inverse, r, total)
    return e, d


def _gelu_pairs(at: Pairs) -> tuple[Tensor, Tensor]:
    a, b, k = at.a, at.b, at.covariance
    determinant = 1 + a + b + at.determinant
    root = determinant.sqrt()
    both, density = 0.25 + torch.atan2(k, root) / (2 * math.pi), 1 / (2 * math.pi * root)
    each = 1 / (1 + a) + 1 / (1 + b)
    # a b - k² is taken from 1 - c and 1 + c: as a difference it would lose all digits of large variances
    return k * both + density * (at.determinant + k * k * each), both + density * k * (each + 1 / determinant)


def _on_diagonal(pairs: Callable[[Pairs], tuple[Tensor, Tensor]], which: int) -> Callable[[Tensor], Tensor]:
    return lambda q: pairs(Pairs(q, q, torch.zeros_like(q), torch.full_like(q, 2.0)))[which]


GELU = Dual(
    moment=_on_diagonal(_gelu_pairs, 0),
    slope_moment=_on_diagonal(_gelu_pairs, 1),
    block=_gelu_block,
    pairs=_gelu_pairs,
    scale=lambda q: (1 + q).sqrt(),
    gain=lambda q: (1 + q).sqrt(),
    sharp=True,
)


def _plain(pairs: Callable[[Side, Side, Tensor], tuple[Tensor, Tensor]]) -> Dual:
    """A dual that is well conditioned in the covariance itself."""

    def block(r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
        e, d = pairs(a, b, r)
        return e, d

    def of_pairs(at: Pairs) -> tuple[Tensor, Tensor]:
        return pairs(at.a, at.b, at.covariance)

    return Dual(moment=_on_diagonal(of_pairs, 0), slope_moment=_on_diagonal(of_pairs, 1), block=block, pairs=of_pairs)


def _waves(a: Side, b: Side, k: Tensor) -> tuple[Tensor, Tensor]:
    """exp(-(a + b) / 2) times the hyperbolic sine and cosine of k, without overflow and without cancellation."""
    mean = 0.5 * (a + b)
    up, down = torch.exp(k - mean), torch.exp(-k - mean)
    small = torch.sinh(k.clamp(-1.0, 1.0)) * torch.exp(-(k * 0 + mean))
    return torch.where(k.abs() < 1, small, 0.5 * (up - down)), 0.5 * (up + down)


def _cosines(a: Side, b: Side, k: Tensor) -> tuple[Tensor, Tensor]:
    sine, cosine = _waves(a, b, k)
    return cosine, sine


def _exponentials(a: Side, b: Side, k: Tensor) -> tuple[Tensor, Tensor]:
    value = torch.exp(k + 0.5 * (a + b))
    return value, value.clone()


def _gaussian_bells(a: Side, b: Side, k: Tensor) -> tuple[Tensor, Tensor]:
    root = (1 + 2 * (a + b) + 4 * (a * b - k * k)).rsqrt()
    return root, 4 * k * root**3


def monomial_dual(power: int) -> Dual:
    r"""$z^m$: $E\,u^mv^m=\sum_j\frac{m!^2}{j!\,(((m-j)/2)!)^22^{m-j}}(ab)^{(m-j)/2}k^j$ over j of m's parity.

    >>> two = monomial_dual(2).pairs(Pairs(*(torch.tensor(v) for v in (1.0, 1.0, 0.5, 1.5))))
    >>> [round(value.item(), 6) for value in two]
    [1.5, 2.0]
    """

    def moment(degree: int, a: Side, b: Side, k: Tensor) -> Tensor:
        total = torch.zeros_like(k)
        for j in range(degree % 2, degree + 1, 2):
            half = (degree - j) // 2
            weight = math.factorial(degree) ** 2 / (math.factorial(j) * math.factorial(half) ** 2 * 4**half)
            total = total + weight * (a * b) ** half * k**j
        return total

    return _plain(lambda a, b, k: (moment(power, a, b, k), power**2 * moment(power - 1, a, b, k)))


CLOSED: dict[str, tuple[Callable[[Tensor], Tensor], Dual]] = {
    "erf": (torch.erf, ERF),
    "gelu": (torch.nn.functional.gelu, GELU),
    "sin": (torch.sin, _plain(_waves)),
    "cos": (torch.cos, _plain(_cosines)),
    "exp": (torch.exp, _plain(_exponentials)),
    "gaussian": (lambda z: torch.exp(-z * z), _plain(_gaussian_bells)),
}


def known_dual(function: Callable[[Tensor], Tensor]) -> Dual | None:
    """The closed form of a function that is recognized by its values on a grid, or None.

    >>> known_dual(lambda z: z.clamp(min=0)).slopes
    (1.0, 0.0)
    """
    near, far = torch.logspace(-6, 6, 241, dtype=torch.float64), torch.linspace(0.005, 32.0, 1499, dtype=torch.float64)
    grid = torch.cat([near, far])
    with torch.no_grad():
        right, left = function(grid.clone()), function(-grid)
    plus, minus = float(right[120]), float(left[120])
    size = max(abs(plus), abs(minus))
    for power in range(7) if size > 0 else ():
        powers = grid**power
        error = torch.maximum((right / powers - plus).abs().max(), (left / powers - minus).abs().max())
        if float(error) <= 1e-13 * size:
            if power == 1:
                return homogeneous_dual(plus, 0.0 - minus)
            if abs(minus - (-1) ** power * plus) <= 1e-13 * size and power > 1:
                return scaled_dual(monomial_dual(power), plus)
            return step_dual(plus, minus) if power == 0 and plus != minus else None
    both, seen = torch.cat([far, -far]), torch.cat([right[241:], left[241:]])
    for original, dual in CLOSED.values():
        expected = original(both)
        if bool(torch.isfinite(seen).all()) and float((seen - expected).abs().div(1 + expected.abs()).max()) <= 4e-16:
            return dual
    return None


def scaled_dual(dual: Dual, factor: float) -> Dual:
    """The dual of a multiple of the function."""
    if factor == 1.0:
        return dual
    square = factor**2

    def block(r: Tensor, a: Side, b: Side, scratch: Scratch) -> tuple[Tensor, Tensor | float]:
        e, d = dual.block(r, a, b, scratch)
        return e.mul_(square), d * square

    def pairs(at: Pairs) -> tuple[Tensor, Tensor]:
        e, d = dual.pairs(at)
        return square * e, square * d

    return replace(
        dual,
        moment=lambda q: square * dual.moment(q),
        slope_moment=lambda q: square * dual.slope_moment(q),
        block=block,
        pairs=pairs,
    )
