r"""One derivative of a random ReLU network has mean square $2/n_0$, exactly, at any depth and widths."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, drawn_gradients
from theodolite.theory.propagation import jacobian_second_moment

NETS = 2000


def measure(
    inputs: int, widths: tuple[int, ...], *, generator: torch.Generator, weight_variance: float = 2.0, mean: float = 0.0
) -> Tensor:
    ensemble = Ensemble(torch.relu, widths, weight_variance=weight_variance, bias_variance=0.3, mean=mean)
    x = torch.linspace(-1, 1.5, inputs)[None]
    gradient, _ = drawn_gradients(ensemble, x, nets=NETS, generator=generator)
    return gradient[:, 0, :].double().square().mean(1)


law = Law(
    claim="He's variance keeps the mean square of every derivative of the output, not only that of the signal: 2 over the "
    "number of inputs, however narrow the layers; biases change nothing.",
    formula=r"E\left(\frac{\partial z}{\partial x_p}\right)^2=\frac{2}{n_0}",
    assumes={
        "weights of variance 2 over fan-in": {"weight_variance": 1.9},
        "weights symmetric about zero": {"mean": 0.015},
    },
    source="hanin2018",
    predict=lambda inputs, widths: jacobian_second_moment(inputs),
    measure=measure,
    cases=({"inputs": 4, "widths": (8, 8)}, {"inputs": 3, "widths": (10, 6, 12)}, {"inputs": 6, "widths": (20,) * 6}),
    tolerance=0.1,  # exact law: 8 x 2000 squares of relative variance 4 or so, 1.6 %
    quantity="mean square of a derivative",
)
