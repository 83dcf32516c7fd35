r"""Near equal inputs the covariance map is triangular: its eigenvalues are $\chi_\parallel$, twice, and $\chi_\perp$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import elementwise, perturbation_growth
from theodolite.theory.propagation import covariance_jacobian

UNITS = 40_000
ENTRIES = {"parallel": (0, 0), "mixed": (2, 0), "perpendicular": (2, 2)}


def predict(activation: str, weight_variance: float, variance: float, entry: str) -> float:
    row, column = ENTRIES[entry]
    return covariance_jacobian(activation, variance, weight_variance=weight_variance)[row][column]


def measure(
    activation: str,
    weight_variance: float,
    variance: float,
    entry: str,
    *,
    generator: torch.Generator,
    perturbation: float = 1e-2,
) -> Tensor:
    function = elementwise(activation)
    return weight_variance * perturbation_growth(
        function, variance, kind=entry, perturbation=perturbation, units=UNITS, generator=generator
    )


law = Law(
    claim="A change of one input's variance moves the covariance by half of chi_par - chi_perp, a change of the "
    "covariance by chi_perp, and a change of both variances moves each by chi_par.",
    formula=r"\delta K_{11}'=\chi_\parallel\,\delta K_{11},\quad "
    r" \delta K_{12}'=\chi_\perp\,\delta K_{12}+\frac{\chi_\parallel-\chi_\perp}{2}(\delta K_{11}+\delta K_{22})",
    assumes={"nearly equal inputs": {"perturbation": 0.37}},
    source="roberts2022, section 5.1; poole2016",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"activation": "tanh", "weight_variance": 1.5, "variance": 0.4180372, "entry": entry} for entry in ENTRIES
    ),
    full=tuple({"activation": "erf", "weight_variance": 1.2, "variance": 1.0, "entry": entry} for entry in ENTRIES),
    tolerance=0.04,  # 8 x 40000 units know each entry to about 0.4 %; the step of 1 % of the variance costs as much
    quantity="entry of the derivative of the covariance map",
)
