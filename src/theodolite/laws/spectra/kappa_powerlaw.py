r"""Eigenvalues that fall exactly as $k^{-b}$ give the condition number $m^{b/2}$."""

import torch

from theodolite.core.law import Law
from theodolite.measure.spectra import condition_number
from theodolite.theory.spectra import power_law_condition_number


def predict(exponent: float, count: int) -> float:
    return power_law_condition_number(exponent, count)


def measure(exponent: float, count: int, *, generator: torch.Generator, last: float = 1.0) -> float:
    values = torch.arange(1, count + 1, dtype=torch.float64) ** (-exponent / 2)
    values[-1] *= last
    left = torch.linalg.qr(torch.randn(2 * count, count, generator=generator, dtype=torch.float64))[0]
    right = torch.linalg.qr(torch.randn(count, count, generator=generator, dtype=torch.float64))[0]
    return condition_number((left * values) @ right.T)


law = Law(
    claim="The condition number of an exact power-law spectrum is a power of its length; only the two ends count.",
    formula=r"\lambda_k(A^\top A)=ck^{-b},\ k\le m\ \Rightarrow\ \kappa(A)=m^{b/2}",
    assumes={"the power law reaches the last eigenvalue": {"last": 0.8}},
    source="horn2013",
    predict=predict,
    measure=measure,
    cases=tuple({"exponent": b, "count": m} for b in (0.5, 1.0, 2.0) for m in (20, 80)),
    tolerance=1e-9,  # the smallest singular value errs by the float64 spacing times kappa, at most 80 here
    repeats=3,
    quantity="condition number",
)
