r"""Critical ReLU layers pull all inputs together, in the end as $l^{-2}$; critical tanh layers freeze the angle."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, conditional_chain, correlations, elementwise
from theodolite.theory import Mlp
from theodolite.theory.propagation import covariance_trajectory, criticality

WIDTH, NETS = 2048, 14
CRITICAL = {"relu": 2.0, "tanh": 1.0}
START = 0.5


def predict(activation: str, weight_layers: int) -> float:
    spec = Mlp(weight_layers - 1, activation, criticality(activation).weight_variance or 0.0)
    K11, K22, K12 = covariance_trajectory(spec, (1.0, 1.0, START))[-1]
    return 1 - K12 / math.sqrt(K11 * K22)


def measure(activation: str, weight_layers: int, *, generator: torch.Generator, bias_variance: float = 0.0) -> Tensor:
    ensemble = Ensemble(
        elementwise(activation),
        (WIDTH,) * (weight_layers - 1),
        weight_variance=CRITICAL[activation],
        bias_variance=bias_variance,
    )
    first = torch.tensor([[1.0, START], [START, 1.0]], dtype=torch.float32)
    return 1 - correlations(conditional_chain(ensemble, first, nets=NETS, generator=generator)[:, -1].double())


law = Law(
    claim="At criticality a ReLU network keeps norms and loses angles, at last as 9 pi^2 / 2 l^2 (which is "
    "still 2.7 times too large at 16 layers); a tanh network loses norms as 1/l and "
    "keeps, deep down, the angle that its first layers leave.",
    formula=r"K^{(l+1)}=C_W\langle\sigma(z)\sigma(z')\rangle_{K^{(l)}}:\quad "
    r"c^{(l+1)}=\frac{1}{\pi}\bigl(\sqrt{1-c^2}+c\,(\pi-\arccos c)\bigr)\;(\mathrm{ReLU})",
    assumes={"no biases": {"bias_variance": 0.0027}},
    source="hayou2019; roberts2022, section 5.5",
    predict=predict,
    measure=measure,
    cases=tuple({"activation": name, "weight_layers": layers} for name in ("relu", "tanh") for layers in (2, 6, 16)),
    full=({"activation": "relu", "weight_layers": 64}, {"activation": "tanh", "weight_layers": 64}),
    # 1 - c behind l ReLU layers of width n varies by about sqrt(7 l / n), which 8 x 14 networks reduce to 2.2 %
    tolerance=0.15,
    quantity="1 - correlation",
    along="weight_layers",
)
