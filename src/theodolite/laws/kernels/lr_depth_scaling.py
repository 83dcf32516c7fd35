r"""At criticality a ReLU network's kernel grows with depth in all its parts; of a tanh network only the biases' part does."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, elementwise, tangent_kernels
from theodolite.theory import Mlp
from theodolite.theory.kernels import tangent_shares

WIDTH, NETS = 64, 24
CRITICAL = {"relu": 2.0, "tanh": 1.0}


def predict(activation: str, part: str, weight_layers: int) -> float:
    weight = CRITICAL[activation]
    shares = tangent_shares(Mlp(weight_layers - 1, activation, weight), (weight, weight, weight))
    return sum((s.weights if part == "weights" else s.biases)[0] for s in shares)


def measure(activation: str, part: str, weight_layers: int, *, generator: torch.Generator, gain: float = 1.0) -> Tensor:
    ensemble = Ensemble(
        elementwise(activation), (WIDTH,) * (weight_layers - 1), weight_variance=gain * CRITICAL[activation]
    )
    kernels = tangent_kernels(
        ensemble, torch.ones(1, 4), nets=NETS, weight_rate=1.0, bias_rate=1.0, generator=generator
    )
    return kernels[:, :, 0 if part == "weights" else 1, 0, 0].sum(1).double()


law = Law(
    claim="The tangent kernel of L critical ReLU layers is proportional to L, so all rates need 1/L; for tanh the biases' "
    "part grows as L while the weights' part stays, so only biases need 1/L.",
    formula=r"\Theta=L(\lambda_b+\lambda_w\frac{|x|^2}{n_0})\;(\mathrm{ReLU}),\qquad "
    r"\Theta\to\frac{1}{2}\lambda_bL+\frac{1}{2}\lambda_w\;(\tanh)",
    assumes={"critical weights": {"gain": 1.1}},
    source="roberts2022, section 9.4; jacot2018",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"activation": name, "part": part, "weight_layers": depth}
        for name, depth in (("relu", 4), ("tanh", 4), ("tanh", 16))
        for part in ("weights", "biases")
    ),
    # One kernel spreads by sqrt(3L/n) (ReLU, 43 %) or 1.2 sqrt(L/n) (tanh, 60 % at L = 16), 192 of them by 4.3 %, thrice
    # that; finite width shifts tanh by some L/2n, 12 %
    tolerance=0.25,
    quantity="share of the tangent kernel",
    erratum="Lecture notes give one rule, all rates over L. It holds for ReLU; the weights of a tanh network keep their rate.",
    refuted=lambda activation, part, weight_layers: predict(activation, part, 1) * weight_layers,
)
