r"""Quadratic models on one datum: two numbers a step, whatever the number of parameters."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core.checks import InputError, at_least, not_negative, positive
from theodolite.theory.dynamics.descent import Catapult

Array = np.ndarray[Any, np.dtype[np.float64]]

OVERFLOW = 1e100


def catapult_with_target(
    output: float, curvature: float, *, target: float, coupling: float, lr: float, steps: int
) -> Catapult:
    r"""$r'=r(1-\gamma\lambda+c\gamma^2zr)$ and $\lambda'=\lambda+\gamma^2cr^2\lambda-4\gamma crz$, with $r=z-y$.

    z is the output and $\lambda=|\nabla z|^2$ the curvature of $z=\sum_iv_iu_i\cdot x\,1_i/\sqrt{md}$, a ReLU network of m units
    with frozen gates, on one datum; the coupling is $c=|x|^2/md$. Exact at every width. Source: lewkowycz2020.
    Differs from the source: which gives it for y = 0 (and d = 1).

    >>> catapult_with_target(1.0, 1.0, target=0.0, coupling=0.25, lr=1.0, steps=1)
    Catapult(outputs=(1.0, 0.25), curvatures=(1.0, 0.25))
    """
    positive(coupling=coupling)
    not_negative(lr=lr)
    at_least(0, steps=steps)
    z, lam = [output], [curvature]
    for _ in range(steps):
        r = z[-1] - target
        following = target + r * (1 - lr * lam[-1] + coupling * lr**2 * z[-1] * r)
        lam.append(lam[-1] + lr**2 * coupling * r**2 * lam[-1] - 4 * lr * coupling * r * z[-1])
        z.append(following)
        if not abs(following) < OVERFLOW:
            break
    return Catapult(tuple(z), tuple(lam))


def catapult_invariants(output: float, curvature: float, *, coupling: float) -> tuple[float, float]:
    r"""$P,Q=\frac12(\lambda/c\pm2z/\sqrt c)\geq0$: a step multiplies them by $(1\mp\gamma\sqrt cr)^2$.

    So $\lambda\geq2\sqrt c|z|$ at every step, and a run that fits the target ends at $\lambda_\infty\geq2\sqrt c|y|$.

    >>> catapult_invariants(1.0, 2.0, coupling=0.25)
    (6.0, 2.0)
    """
    positive(coupling=coupling)
    root = math.sqrt(coupling)
    return 0.5 * (curvature / coupling + 2 * output / root), 0.5 * (curvature / coupling - 2 * output / root)


def peak_time(width: float, lr_times_curvature: float) -> float:
    r"""$T\approx\frac12\ln m/\ln(\gamma\lambda_0-1)$: steps until a catapult peaks, up to a constant, for $2<\gamma\lambda_0<4$.

    >>> round(peak_time(1e4, 3.0), 3)  # 1.66 steps a decade of width
    6.644
    """
    positive(width=width)
    if not 2 < lr_times_curvature < 4:
        raise InputError(
            f"expected a step between 2 and 4 over the curvature, got {lr_times_curvature}; only there it catapults"
        )
    return 0.5 * math.log(width) / math.log(lr_times_curvature - 1)


@dataclass(frozen=True)
class OneDatum:
    r"""Any quadratic model on one datum: eigenvalues $f_i$ of its second derivative, the gradient's parts $g_i$, and its output.

    A step on $\frac12(z-y)^2$ is $g_i'=(1-\gamma rf_i)g_i$, $z'=z-\gamma r\sum g_i^2+\frac12\gamma^2r^2\sum f_ig_i^2$, and
    $\lambda=\sum g_i^2$: as many numbers as distinct eigenvalues, whatever the number of parameters. Source: lewkowycz2020.

    >>> two = OneDatum(np.array([0.5, -0.5]), np.array([1.0, 0.0]), 1.0)  # the two-layer linear model with c = 1/4, Q = 0
    >>> two.path(target=0.0, lr=1.0, steps=1)
    Catapult(outputs=(1.0, 0.25), curvatures=(1.0, 0.25))
    """

    eigenvalues: Array
    gradient: Array
    output: float

    @property
    def curvature(self) -> float:
        r"""$\lambda_0=|\nabla z|^2$, the tangent kernel at the start."""
        return float(self.gradient @ self.gradient)

    def path(self, *, target: float, lr: float, steps: int) -> Catapult:
        """Outputs and tangent kernels under descent, start first; stops early where the output overflows."""
        g, z = self.gradient.copy(), self.output
        outputs, curvatures = [z], [float(g @ g)]
        for _ in range(steps):
            r = z - target
            z = z - lr * r * float(g @ g) + 0.5 * (lr * r) ** 2 * float(self.eigenvalues @ g**2)
            g = (1 - lr * r * self.eigenvalues) * g
            outputs.append(z)
            curvatures.append(float(g @ g))
            if not abs(z) < OVERFLOW:
                break
        return Catapult(tuple(outputs), tuple(curvatures))
