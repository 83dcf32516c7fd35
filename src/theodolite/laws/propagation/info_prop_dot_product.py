r"""The dot product of two signals follows the covariance map; of the common activations only the linear keeps it."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import Ensemble, elementwise, preactivations
from theodolite.theory import Mlp
from theodolite.theory.propagation import covariance_trajectory, criticality, first_covariance

X, Y = (1.0, 2.0, -1.0, 0.5), (0.5, 1.5, 1.5, 1.0)
HIDDEN = 4
WIDTH, NETS = 64, 120
CRITICAL = {"identity": 1.0, "tanh": 1.0, "erf": 0.7853981633974483}


def band(spec: Mlp, value: float) -> Band:
    # Each layer of width 64 adds a bias of order 1/64 of the squared norm there; 8 x 120 networks leave about 1 % of it as error
    return Band.around(value, abs=0.08 * max(covariance_trajectory(spec, first_covariance(spec, X, Y))[-1][:2]))


def predict(activation: str) -> Band:
    spec = Mlp(HIDDEN, activation, criticality(activation).weight_variance or 0.0)
    return band(spec, covariance_trajectory(spec, first_covariance(spec, X, Y))[-1][2])


def preserved(activation: str) -> Band:
    spec = Mlp(HIDDEN, activation, criticality(activation).weight_variance or 0.0)
    return band(spec, first_covariance(spec, X, Y)[2])


def measure(activation: str, *, generator: torch.Generator, mean: float = 0.0) -> Tensor:
    ensemble = Ensemble(elementwise(activation), (WIDTH,) * HIDDEN, weight_variance=CRITICAL[activation], mean=mean)
    inputs = torch.tensor([X, Y], dtype=torch.float32)
    z = preactivations(ensemble, inputs, nets=NETS, outputs=WIDTH, generator=generator)[-1]  # (nets, 2, width)
    return (z[:, 0] * z[:, 1]).mean(1).double()


law = Law(
    claim="Behind L critical layers the dot product of two signals is what the covariance map says: a linear network "
    "keeps it, tanh and erf lose it as a power of depth.",
    formula=r"\frac{1}{n}z_\alpha^{(l)}\cdot z_\beta^{(l)}\to K_{\alpha\beta}^{(l)}",
    assumes={"weights of mean zero": {"mean": 0.12}, "layers much wider than their number": None},
    source="poole2016; roberts2022, chapter 5",
    predict=predict,
    measure=measure,
    cases=({"activation": "identity"}, {"activation": "tanh"}, {"activation": "erf"}),
    quantity="dot product of two signals over the width",
    erratum="Criticality is often said to preserve the dot product of two signals. It only turns an exponential drift "
    "into a power of depth; no common nonlinearity preserves the dot product.",
    refuted=preserved,
)
