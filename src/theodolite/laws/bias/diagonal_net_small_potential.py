r"""For small starts the potential is $\ln(1/\alpha^2)$ times the $\ell_1$ norm, and not the norm itself."""

import numpy as np

from theodolite.core.law import Law

WEIGHTS = np.array([1.5, -0.4, 0.8, 0.2])


def predict(alpha: float) -> float:
    size = np.abs(WEIGHTS)
    return float(size.sum() + (size * (np.log(size) - 1)).sum() / np.log(alpha**-2))


def measure(alpha: float, *, smallest: float = 0.0) -> float:
    """Q over the logarithm, Q the integral of arcsinh(b/2w) by quadrature in u, b = 2w sinh u; ``smallest`` adds to the start."""
    from scipy.integrate import quad

    w = (alpha + smallest) ** 2
    ends = np.arcsinh(np.abs(WEIGHTS) / (2 * w))
    total = sum(quad(lambda u: u * 2 * w * np.cosh(u), 0.0, end, epsabs=0, epsrel=1e-11, limit=200)[0] for end in ends)
    return float(total / np.log(alpha**-2))


law = Law(
    claim="The potential of a diagonal network grows as its start shrinks: only over the logarithm of the start does it tend to "
    "the sum of absolute weights, so that the limit of its minimizer is that of the least sum.",
    formula=r"\frac{Q(\beta)}{\ln\alpha^{-2}}\to|\beta|_1,\qquad "
    r"Q=\sum|\beta_i|\Big(\ln|\beta_i|-1+\ln\frac1{\alpha^2}\Big)+o(1)",
    assumes={"a small start": {"smallest": 6.2e-11}},
    source="woodworth2020, Theorem 2",
    predict=predict,
    measure=measure,
    cases=({"alpha": 1e-2}, {"alpha": 1e-4}, {"alpha": 1e-8}),
    full=({"alpha": 1e-6},),
    tolerance=1e-4,  # the next term is of order alpha^4
    quantity="potential over the logarithm of the start",
    along="alpha",
    erratum="The statement Q -> |beta|_1 lacks the factor ln(1/alpha^2).",
    # what Q -> l1 norm would give for Q over the logarithm
    refuted=lambda alpha: float(np.abs(WEIGHTS).sum() / np.log(alpha**-2)),
)
