r"""Layer by layer the covariance of a wide random network follows $K'=C_b+C_wE\,\sigma(u)\sigma(v)$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import Ensemble, elementwise, preactivations
from theodolite.theory import Mlp
from theodolite.theory.propagation import covariance_trajectory, first_covariance

X, Y = (1.0, 2.0, -1.0, 0.5), (0.5, -1.0, 1.5, 1.0)
HIDDEN = 3


def predict(activation: str, weight_variance: float, bias_variance: float, entry: str) -> Band:
    spec = Mlp(HIDDEN, activation, weight_variance, bias_variance)
    K11, _, K12 = covariance_trajectory(spec, first_covariance(spec, X, Y))[-1]
    # 1/n corrections are below 0.3 K11 / 64 = 0.5 % here; the rest is six standard errors of 8 x 96 networks.
    return Band.around(K11 if entry == "variance" else K12, abs=0.05 * K11)


def measure(
    activation: str,
    weight_variance: float,
    bias_variance: float,
    entry: str,
    *,
    generator: torch.Generator,
    width: int = 64,
    mean: float = 0.0,
) -> Tensor:
    ensemble = Ensemble(
        elementwise(activation),
        (width,) * HIDDEN,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        mean=mean,
    )
    nets = 96 * (64 // width)
    inputs = torch.tensor([X, Y], dtype=torch.float32)
    z = preactivations(ensemble, inputs, nets=nets, outputs=64, generator=generator)[-1]  # (nets, 2, 64)
    return (z[:, 0] * z[:, 0 if entry == "variance" else 1]).mean(1).double()


law = Law(
    claim="The second moments of a random network's preactivations follow a recursion of two-dimensional Gaussian "
    "expectations as its hidden layers widen.",
    formula=r"K^{(l+1)}_{\alpha\beta}=C_b+C_w\,E_{(u,v)\sim N(0,K^{(l)})}\,\sigma(u)\sigma(v)",
    assumes={"wide hidden layers": {"width": 2}, "weights of mean zero": {"mean": 0.18}},
    source="lee2018; matthews2018",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "tanh", "weight_variance": 1.5, "bias_variance": 0.05, "entry": "variance"},
        {"activation": "tanh", "weight_variance": 1.5, "bias_variance": 0.05, "entry": "covariance"},
        {"activation": "erf", "weight_variance": 1.2, "bias_variance": 0.1, "entry": "variance"},
        {"activation": "sin", "weight_variance": 1.2, "bias_variance": 0.1, "entry": "covariance"},
    ),
    full=({"activation": "elu", "weight_variance": 1.0, "bias_variance": 0.1, "entry": "covariance"},),
    quantity="covariance of preactivations",
)
