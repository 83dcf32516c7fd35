"""A nonlinearity known by its Gaussian moments: exact where they are known, else by quadrature to twelve digits."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from theodolite.core.checks import InputError
from theodolite.theory._closed_forms import CLOSED_FORMS, ClosedForm, angle, geometric_mean, homogeneous
from theodolite.theory._elementwise import checked, named, nonlinearity
from theodolite.theory._quadrature import LARGEST, Array, Line, Resolution, gaussian_line, plane_mean

_Elementwise = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Activation:
    r"""A nonlinearity $\sigma$ and its expectations $\langle f\rangle_K=E_{z\sim N(0,K)}f(z)$.

    ``activation`` is a name from torch.nn.functional or torch (with that function's keywords as ``parameters``), ``identity``,
    ``quadratic`` or a file of ``theory/nonlinearities/``, or any elementwise torch callable or module (a module is copied
    to float64 and the copy used). Closed forms: every positively homogeneous function, erf, sin, cos, exp, quadratic, GELU.
    Everything else is integrated by Gauss-Legendre panels that end at each kink and jump, wherever it is. Seen: moments
    equal closed forms to a relative 1e-15, and 30-digit integration of functions with kinks and jumps to 1e-14, for K
    from 1e-6 to 1e3; covariances equal closed forms to 1e-14 of the moments, also for nearly parallel pairs.

    >>> Activation("relu").moment(3.0)
    1.5
    >>> round(Activation(torch.tanh).slope_moment(1.0), 12)
    0.464402902448
    """

    name: str
    function: _Elementwise
    exact: ClosedForm | None
    _resolution: Resolution
    _lines: dict[float, Line]
    _planes: dict[tuple[bool, float, float, float], float]

    def __init__(self, activation: str | _Elementwise | Activation, **parameters: Any) -> None:
        if isinstance(activation, Activation):
            name, function = activation.name, activation.function
        elif isinstance(activation, nn.Module):
            name, function = named(activation, {})
            if function is activation:
                function = copy.deepcopy(activation).to(torch.float64)
        else:
            name, function = named(activation, parameters)
        checked(name, function)
        set_ = object.__setattr__
        set_(self, "name", name)
        set_(self, "function", function)
        set_(self, "exact", _closed_form(name, self))
        set_(self, "_resolution", Resolution.of(self._values))
        set_(self, "_lines", {})
        set_(self, "_planes", {})

    def __repr__(self) -> str:
        return f"Activation({self.name!r})"

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        """The function itself; its argument is never changed in place."""
        return self.function(z.clone())

    def _values(self, z: Array) -> Array:
        with torch.no_grad():
            return np.asarray(self.function(torch.tensor(z, dtype=torch.float64)).numpy(), dtype=np.float64)

    def _slopes(self, z: Array) -> Array:
        slopes = self.derivatives(torch.from_numpy(np.ascontiguousarray(z)), order=1)[1].numpy()
        return np.asarray(np.clip(slopes, -LARGEST, LARGEST), dtype=np.float64)

    def derivatives(self, z: torch.Tensor, *, order: int) -> tuple[torch.Tensor, ...]:
        """The function and its derivatives up to ``order`` at each point, by automatic differentiation."""
        with torch.enable_grad():
            point = z.detach().to(torch.float64).clone().requires_grad_()
            found = [self.function(point + 0.0)]
            for _ in range(order):
                last = found[-1]
                if not last.requires_grad:
                    found.append(torch.zeros_like(point))
                    continue
                (slope,) = torch.autograd.grad(last.sum(), point, create_graph=True, materialize_grads=True)
                found.append(slope)
        return tuple(value.detach() for value in found)

    @property
    def is_homogeneous(self) -> bool:
        """Whether the function scales: straight on either side of 0, like the identity and (leaky) ReLU."""
        return self.exact is not None and self.exact.homogeneous

    def jumps(self, radius: float = 16.0) -> tuple[float, ...]:
        """The places within ``radius`` of 0 at which the function is discontinuous."""
        if self.exact is not None:
            return ()
        return tuple(float(z) for z in self._resolution.jumps(radius))

    def _is_continuous(self, K: float) -> bool:
        return not self.jumps(max(16.0, 8.0 * math.sqrt(_variance(K))))

    def _line(self, K: float) -> Line:
        if K not in self._lines:
            if len(self._lines) >= 64:
                self._lines.clear()
            self._lines[K] = gaussian_line(self._resolution, math.sqrt(K))
        return self._lines[K]

    def mean(self, K: float) -> float:
        r"""$\langle\sigma\rangle_K$.

        >>> round(Activation("relu").mean(2 * math.pi), 12)
        1.0
        """
        if _variance(K) == 0.0:
            return float(self._values(np.zeros(1))[0])
        line = self._line(K)
        return line.mean(line.values)

    def moment(self, K: float) -> float:
        r"""$\langle\sigma^2\rangle_K$, the mean square of the signal behind the nonlinearity.

        >>> round(Activation("tanh").moment(1.0), 12)
        0.394294490398
        """
        if self.exact is not None:
            return self.exact.moment(_variance(K))
        if _variance(K) == 0.0:
            return float(self._values(np.zeros(1))[0]) ** 2
        line = self._line(K)
        return line.mean(line.values**2)

    def fourth_moment(self, K: float) -> float:
        r"""$\langle\sigma^4\rangle_K$.

        >>> Activation("identity").fourth_moment(2.0)
        12.0
        """
        if self.exact is not None and self.exact.fourth_moment is not None:
            return self.exact.fourth_moment(_variance(K))
        if _variance(K) == 0.0:
            return float(self._values(np.zeros(1))[0]) ** 4
        line = self._line(K)
        return line.mean(line.values**4, power=4) if line.power == 4 else math.inf

    def slope_moment(self, K: float) -> float:
        r"""$h_\perp(K)=\langle\sigma'^2\rangle_K$, infinite where $\sigma$ jumps; at K = 0 the limit from above.

        >>> Activation("relu").slope_moment(1.0)
        0.5
        """
        if self.exact is not None:
            return self.exact.slope_moment(_variance(K))
        if not self._is_continuous(K):
            return math.inf
        if K == 0.0:
            left, right = self.slopes_at_zero()
            return 0.5 * (left**2 + right**2)
        line = self._line(K)
        return line.mean(self._slopes(math.sqrt(K) * line.x) ** 2)

    def curvature_moment(self, K: float) -> float:
        r"""$h_\parallel(K)=\frac12\langle(\sigma^2)''\rangle_K=\frac{d}{dK}\langle\sigma^2\rangle_K$.

        Computed as $\langle z\sigma\sigma'\rangle/K$, which is right for kinks too; for a function that jumps as
        $\langle\sigma^2(z^2-K)\rangle/2K^2$. At K = 0 the limit from above.

        >>> round(Activation("sin").curvature_moment(0.5), 12) == round(math.exp(-1), 12)
        True
        """
        if self.exact is not None:
            return self.exact.curvature_moment(_variance(K))
        continuous = self._is_continuous(K)
        if K == 0.0:
            return self._curvature_at_zero()
        line = self._line(K)
        if not continuous:
            return line.mean((line.values**2 - self.moment(K)) * (line.x**2 - 1)) / (2 * K)
        return line.mean(line.x * line.values * self._slopes(math.sqrt(K) * line.x)) / math.sqrt(K)

    def moment_curvature(self, K: float) -> float:
        r"""$\frac{d^2}{dK^2}\langle\sigma^2\rangle_K=\langle\sigma^2\,He_4(z/\sqrt K)\rangle_K/4K^2$, for K > 0.

        Computed as $\langle\sigma\sigma'He_3\rangle_K/2K^{3/2}$ where $\sigma$ is continuous. Rounding leaves an error of
        about 1e-16 over K where $\sigma(0)=0$, else over $K^{3/2}$: unlike the other moments it is lost at tiny K.

        >>> round(Activation("sin").moment_curvature(0.5), 12) == round(-2 * math.exp(-1), 12)
        True
        """
        if self.exact is not None and self.exact.moment_curvature is not None:
            return self.exact.moment_curvature(_variance(K))
        if _variance(K) == 0.0:
            raise InputError("expected a positive variance, got 0; take a small one for the limit")
        line = self._line(K)
        if not self._is_continuous(K):
            return line.mean((line.values**2 - self.moment(K)) * (line.x**4 - 6 * line.x**2 + 3)) / (4 * K * K)
        product = line.values * self._slopes(math.sqrt(K) * line.x)
        odd = product - line.mean(product * line.x) * line.x  # whose expectation with He_3 is the same
        return line.mean(odd * (line.x**3 - 3 * line.x)) / (2 * K * math.sqrt(K))

    def covariance(self, K11: float, K22: float, K12: float) -> float:
        r"""$E\,\sigma(u)\sigma(v)$ for centered Gaussians with $E u^2=K_{11}$, $E v^2=K_{22}$, $E uv=K_{12}$.

        >>> round(2 * math.pi * Activation("relu").covariance(1.0, 1.0, 0.0), 12)
        1.0
        """
        K11, K22, K12 = _triple(K11, K22, K12)
        if self.exact is not None:
            return self.exact.covariance(K11, K22, K12)
        if K22 == 0.0:
            return self.mean(K11) * self.mean(0.0)
        return self._plane(K11, K22, K12)

    def slope_covariance(self, K11: float, K22: float, K12: float) -> float:
        r"""$E\,\sigma'(u)\sigma'(v)$ for centered Gaussians with $E u^2=K_{11}$, $E v^2=K_{22}$, $E uv=K_{12}$.

        A function that jumps has infinite slopes: the answer is then infinite for any pair.

        >>> Activation("relu").slope_covariance(1.0, 1.0, 0.0)
        0.25
        """
        K11, K22, K12 = _triple(K11, K22, K12)
        if self.exact is not None:
            return self.exact.slope_covariance(K11, K22, K12)
        if not self._is_continuous(K11):
            return math.inf
        if K22 == 0.0:
            left, right = self.slopes_at_zero()
            if K11 == 0.0:
                return 0.5 * (left**2 + right**2)
            line = self._line(K11)
            return line.mean(self._slopes(math.sqrt(K11) * line.x)) * 0.5 * (left + right)
        return self._plane(K11, K22, K12, slopes=True)

    def _plane(self, K11: float, K22: float, K12: float, *, slopes: bool = False) -> float:
        """By quadrature, and known from then on: kernel, gradient and step size of a deep network ask for the same pairs."""
        asked = slopes, K11, K22, K12
        if asked not in self._planes:
            if len(self._planes) >= 4096:
                self._planes.clear()
            first, second = math.sqrt(K11), math.sqrt(K22)
            theta, sine = angle(K11, K22, K12)
            cosine = math.cos(theta) if sine == 0.0 else K12 / geometric_mean(K11, K22)
            integrand = self._slopes if slopes else self._values
            found = plane_mean(self._resolution, integrand, first=first, second=second, cosine=cosine, sine=sine)
            self._planes[asked] = found
        return self._planes[asked]

    def slopes_at_zero(self) -> tuple[float, float]:
        """The slopes to the left and to the right of 0.

        >>> Activation("relu").slopes_at_zero()
        (0.0, 1.0)
        """
        return self.derivatives_at_zero(order=1)[1]

    def derivatives_at_zero(self, *, order: int) -> tuple[tuple[float, float], ...]:
        """The function and its derivatives up to ``order`` just left and just right of 0."""
        found = self.derivatives(torch.tensor([-TINY, TINY], dtype=torch.float64), order=order)
        return tuple((float(pair[0]), float(pair[1])) for pair in found)

    def _curvature_at_zero(self) -> float:
        (left, right), (slope_left, slope_right), (bend_left, bend_right) = self.derivatives_at_zero(order=2)
        if abs(left) > 1e-20 and abs(slope_right - slope_left) > 1e-12:
            return math.copysign(math.inf, left * (slope_right - slope_left))
        return 0.5 * (slope_left**2 + left * bend_left + slope_right**2 + right * bend_right)


TINY = 1e-30


def _variance(K: float) -> float:
    if not (K >= 0.0 and math.isfinite(K)):
        raise InputError(f"expected a finite variance of at least 0, got {K}")
    return K


def _triple(K11: float, K22: float, K12: float) -> tuple[float, float, float]:
    """The two variances with the larger first, and the covariance within what they allow."""
    bound = geometric_mean(_variance(K11), _variance(K22))
    if not abs(K12) <= bound * (1 + 1e-9) + 1e-300:
        raise InputError(
            f"expected |K12| of at most sqrt(K11 K22) = {bound}, got {K12}; a covariance matrix has no negative eigenvalue"
        )
    return max(K11, K22), min(K11, K22), min(bound, max(-bound, K12))


def _closed_form(name: str, activation: Activation) -> ClosedForm | None:
    """The closed form by name, or of any function that is found to be positively homogeneous."""
    grid = np.concatenate([np.geomspace(1e-6, 1e6, 241), np.linspace(0.005, 32.0, 1499)])
    right, left = activation._values(grid), activation._values(-grid)
    plus, minus = float(right[120]), -float(left[120])
    if max(np.abs(right / grid - plus).max(), np.abs(left / grid + minus).max()) <= 1e-13 * max(abs(plus), abs(minus)):
        return homogeneous(plus, minus)
    own = nonlinearity(name)
    return own.closed_form if own else CLOSED_FORMS.get(name)
