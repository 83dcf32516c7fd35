r"""Wide random networks have the tangent kernel $\Theta'=\lambda_b+\lambda_wE[\sigma\sigma]+C_wE[\dot\sigma\dot\sigma]\Theta$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, elementwise, tangent_kernels
from theodolite.theory import Mlp
from theodolite.theory.kernels import tangent_pair
from theodolite.theory.propagation import first_covariance

WIDTH, NETS, HIDDEN = 96, 64, 3
FIRST, SECOND = (1.0, 2.0, -1.0, 0.5), (0.5, -1.0, 1.5, 1.0)
RATES = {"weight_rate": 2.0, "bias_rate": 0.5}


def predict(activation: str, weight_variance: float, bias_variance: float, entry: str) -> float:
    spec = Mlp(HIDDEN, activation, weight_variance, bias_variance)
    pair = tangent_pair(spec, first_covariance(spec, FIRST, SECOND), **RATES)
    return pair[2] if entry == "between two inputs" else pair[0]


def measure(
    activation: str,
    weight_variance: float,
    bias_variance: float,
    entry: str,
    *,
    generator: torch.Generator,
    mean: float = 0.0,
) -> Tensor:
    ensemble = Ensemble(
        elementwise(activation),
        (WIDTH,) * HIDDEN,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
        mean=mean,
    )
    kernels = tangent_kernels(ensemble, torch.tensor([FIRST, SECOND]), nets=NETS, **RATES, generator=generator)
    other = 1 if entry == "between two inputs" else 0
    return kernels.sum((1, 2))[:, 0, other].double()


law = Law(
    claim="Layer by layer the tangent kernel of wide networks obeys a recursion driven by the covariances of the signal, "
    "with separate rates for weights (over fan-in) and biases.",
    formula=r"\Theta^{(1)}=\lambda_b+\lambda_w\frac{x\cdot x'}{n_0},\quad "
    r"\Theta^{(l+1)}=\lambda_b+\lambda_wE[\sigma\sigma']+C_wE[\dot\sigma\dot\sigma']\,\Theta^{(l)}",
    assumes={"all hidden layers wide": None, "weights of mean zero": {"mean": 0.016}},
    source="jacot2018, Theorem 1; lee2019",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"activation": name, "weight_variance": weight, "bias_variance": bias, "entry": entry}
        for name, weight, bias in (("tanh", 1.5, 0.05), ("gelu", 2.0, 0.1))
        for entry in ("on the diagonal", "between two inputs")
    ),
    full=({"activation": "relu", "weight_variance": 2.0, "bias_variance": 0.0, "entry": "between two inputs"},),
    # 3/n is left to finite width, 3.1 %; one kernel spreads by some 1.5 sqrt(3/n) = 27 %, 512 of them by 1.2 %, thrice that
    tolerance=0.1,
    quantity="tangent kernel",
)
