r"""The largest eigenvalue of a wide ReLU network's kernel on orthogonal inputs exceeds its diagonal: they are all coupled."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, tangent_kernels
from theodolite.theory.kernels import relu_ntk_cosine

SAMPLES, WIDTH, NETS = 6, 256, 8


def predict(hidden_layers: int) -> float:
    own, across = (relu_ntk_cosine(c, hidden_layers=hidden_layers) for c in (1.0, 0.0))
    matrix = np.full((SAMPLES, SAMPLES), across) + (own - across) * np.eye(SAMPLES)
    return float(np.linalg.eigvalsh(2 / SAMPLES * matrix)[-1])


def measure(hidden_layers: int, *, generator: torch.Generator, weight_variance: float = 2.0) -> Tensor:
    ensemble = Ensemble(torch.relu, (WIDTH,) * hidden_layers, weight_variance=weight_variance)
    kernels = tangent_kernels(ensemble, torch.eye(SAMPLES), nets=NETS, weight_rate=2.0, generator=generator)
    direction = torch.full((SAMPLES,), SAMPLES**-0.5)  # the mean kernel's first eigenvector, by symmetry
    return (kernels.sum((1, 2)) @ direction @ direction).double()


law = Law(
    claim="On orthogonal inputs the mean tangent kernel of wide ReLU networks has equal entries off its diagonal, which add "
    "up in its largest eigenvalue; a bound by the diagonal alone fails.",
    formula=r"\lambda_{\max}=\frac{2}{n_0}\left(T(1)+(m-1)T(0)\right)",
    assumes={"weights of variance 2 over fan-in": {"weight_variance": 1.8}},
    source="jacot2018; cho2009",
    predict=predict,
    measure=measure,
    cases=({"hidden_layers": 1}, {"hidden_layers": 2}, {"hidden_layers": 4}),
    along="hidden_layers",
    # Networks spread by about sqrt(3 L / n), 11 to 22 %, and 64 of them by 2.7 %: four errors; finite width adds L/n
    tolerance=0.12,
    quantity="largest eigenvalue of the mean kernel",
    erratum="Lecture notes bound it by C_0, the diagonal without coupling (1, 2, 4 times 2/n_0 and L for L + 1 layers); "
    "the coupling that their independent gates deny makes it larger.",
    refuted=lambda hidden_layers: 2 / SAMPLES * (hidden_layers + 1),
)
