"""Kernels whose eigenvalues and norms are known in closed form."""

from __future__ import annotations

import math


def brownian_eigenvalue(index: int) -> float:
    r"""$\lambda_j=1/((j-\frac12)^2\pi^2)$, the j-th eigenvalue (from 1) of $\min(x,y)$ on [0, 1]. Source: mercer1909.

    Eigenfunctions $\sqrt2\sin((j-\frac12)\pi x)$.

    >>> round(brownian_eigenvalue(1) * math.pi**2, 12)
    4.0
    """
    return 1.0 / ((index - 0.5) * math.pi) ** 2


def gaussian_eigenvalue(index: int, *, scale: float = 1.0) -> float:
    r"""The j-th eigenvalue (from 1) of $e^{-(x-y)^2/2\ell^2}$ under the standard Gaussian measure.

    $\lambda_j=\sqrt{2a/A}\,(b/A)^{j-1}$ with $a=\frac14$, $b=1/2\ell^2$, $c=\sqrt{a^2+2ab}$, $A=a+b+c$. For $\ell=1$
    $\lambda_j=\varphi^{-(2j-1)}$ with the golden ratio $\varphi$. Source: rasmussen2006, section 4.3.1.

    >>> round(gaussian_eigenvalue(1), 6), round(gaussian_eigenvalue(2), 6)
    (0.618034, 0.236068)
    """
    a, b = 0.25, 0.5 / scale**2
    total = a + b + math.sqrt(a * a + 2 * a * b)
    return math.sqrt(2 * a / total) * (b / total) ** (index - 1)
