r"""Sigmoid and softplus have no critical initialization: $\chi_\parallel$ and $\chi_\perp$ are nowhere equal."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.core.statistics import mean_estimate
from theodolite.measure.experiments import elementwise, perturbation_growth
from theodolite.theory.propagation import chi_parallel, chi_perpendicular, criticality

UNITS = 30_000


def predict(activation: str, variance: float) -> Band:
    assert criticality(activation).kind == "none"
    parallel = chi_parallel(activation, variance, weight_variance=1.0)
    perpendicular = chi_perpendicular(activation, variance, weight_variance=1.0)
    return Band(high=1.0) if parallel < perpendicular else Band(low=1.0)


def measure(activation: str, variance: float, *, generator: torch.Generator, critical: str | None = None) -> Estimate:
    """The ratio of the growths of a change of norm and of a small distance, whatever the weight variance."""
    function = elementwise(critical or activation)
    parallel, perpendicular = (
        mean_estimate(perturbation_growth(function, variance, kind=kind, units=UNITS, generator=generator))
        for kind in ("parallel", "perpendicular")
    )
    ratio = parallel.value / perpendicular.value
    error = (parallel.stderr / parallel.value) ** 2 + (perpendicular.stderr / perpendicular.value) ** 2
    return Estimate(ratio, abs(ratio) * error**0.5)


law = Law(
    claim="For sigmoid a change of norm always fades faster than a difference of inputs, for softplus always slower: no "
    "choice of variances makes both neutral.",
    formula=r"\frac{\chi_\parallel}{\chi_\perp}=1+\frac{\langle\sigma\sigma''\rangle_K}{\langle\sigma'^2\rangle_K}\neq1",
    assumes={"the mean of sigma sigma'' keeps one sign": {"critical": "gelu"}},
    source="roberts2022, section 5.3.1",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"activation": activation, "variance": variance}
        for activation in ("sigmoid", "softplus")
        for variance in (1.0, 4.0, 16.0)
    ),
    quantity="chi_parallel over chi_perpendicular",
    along="variance",
)
