r"""Random features learn polynomials with $d^{q(1+1/a)}$ units for every a: $d^{2q}$ is only the first of these bounds."""

import torch

from theodolite.core.law import Law
from theodolite.theory.capacity import polynomial_units

ERROR, FAILURE = 0.1, 0.05


def predict(degree: int, order: int) -> float:
    low, high = (polynomial_units(d, degree, order=order, error=ERROR, failure_probability=FAILURE) for d in (10, 100))
    return float(torch.log10(torch.tensor(high / low, dtype=torch.float64)))


def first(degree: int, order: int) -> float:
    return 2.0 * degree


def measure(d: int, degree: int, order: int, *, assumed_order: int | None = None) -> float:
    """The smallest N whose error, in mean and so by Markov's inequality with the chance asked for, is small enough."""
    a = assumed_order or order
    low, high = 0.0, 200.0  # of log N
    for _ in range(200):
        middle = 0.5 * (low + high)
        bound = (degree * (a + 1)) * float(torch.log(torch.tensor(float(d), dtype=torch.float64))) - a * middle
        small = bound <= float(torch.log(torch.tensor(ERROR * FAILURE, dtype=torch.float64)))
        low, high = (low, middle) if small else (middle, high)
    return float(torch.exp(torch.tensor(high, dtype=torch.float64)))


law = Law(
    claim="The number of random features for a polynomial of degree q in d variables falls from d^{2q} to d^q as the "
    "rate a of the bound grows.",
    formula=r"\frac{C\,d^{q(a+1)}}{N^a}\le\epsilon\delta\iff N\ge\Bigl(\frac{C\,d^{q(a+1)}}{\epsilon\delta}\Bigr)^{1/a}",
    assumes={"the error bound of order a": {"assumed_order": 5}},
    source="bresler2020, Theorem 4",
    predict=predict,
    measure=measure,
    cases=tuple({"d": d, "degree": q, "order": a} for q in (2, 3) for a in (1, 2, 3) for d in (5, 10, 20, 30)),
    tolerance=1e-6,
    exponent="d",
    quantity="units needed",
    erratum="Slides print d^{2q} on one page and d^{q(1+delta)} on another, as if they differed; the first is the case a = 1.",
    refuted=first,
)
