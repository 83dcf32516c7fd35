r"""Power means grow with their power: of errors that are Gaussian, $M_p=(E|z|^p)^{1/p}$, by quadrature."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, preactivations
from theodolite.theory import Activation

NETS = 40_000
VARIANCE = 0.7


def predict(power: float) -> float:
    """The mean of order p, from the mean square of the function $|z|^{p/2}$ over Gaussians of the output's variance."""
    return float(Activation(lambda z: z.abs() ** (power / 2)).moment(VARIANCE) ** (1 / power))


def measure(power: float, *, generator: torch.Generator, weighting: float = 0.0, hidden: tuple[int, ...] = ()) -> float:
    """The root of the mean p-th power of the answers of many drawn networks, which are their errors where targets are 0.

    ``weighting`` counts each by that power of its own size; answers behind a ``hidden`` layer are not Gaussian.
    """
    ensemble = Ensemble(torch.nn.Identity(), hidden, weight_variance=VARIANCE)
    # of variance VARIANCE either way
    inputs = torch.ones(1, 4, dtype=torch.float64) * (VARIANCE**-0.5 if hidden else 1.0)
    sizes = preactivations(ensemble, inputs, nets=NETS, generator=generator)[-1].abs().flatten()
    weights = sizes**weighting
    return float(((weights * sizes**power).sum() / weights.sum()) ** (1 / power))


law = Law(
    claim="The mean error over data is at most the root of their mean square, and so for any two powers; only errors that are "
    "all alike make the two equal. Bounds on training use it to go from a sum of errors to the loss; for Gaussian errors it is "
    "known by how much they give away.",
    formula=r"\left(\frac1m\sum_ja_j^p\right)^{1/p}\le\left(\frac1m\sum_ja_j^q\right)^{1/q}\quad(p<q)",
    assumes={"every datum counts alike": {"weighting": 0.1}, "Gaussian errors": {"hidden": (2,)}},
    source="hardy1952, Theorem 16",
    predict=predict,
    measure=measure,
    cases=tuple({"power": power} for power in (0.5, 1.0, 2.0, 4.0)),
    tolerance=0.015,  # the fourth power of 8 x 40,000 Gaussian errors is known to 0.6 %, its root to 0.15
    quantity="power mean of the errors",
    along="power",
)
