r"""A random ReLU network with L hidden layers has $E\,\Theta(x,x)=2(L+1)|x|^2/n_0$ at any widths: every matrix adds alike."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, tangent_kernels
from theodolite.theory.kernels import relu_ntk_mean

NETS, INPUTS = 1500, 3


def measure(
    widths: tuple[int, ...], *, generator: torch.Generator, weight_variance: float = 2.0, bias_variance: float = 0.0
) -> Tensor:
    ensemble = Ensemble(torch.relu, widths, weight_variance=weight_variance, bias_variance=bias_variance)
    x = torch.tensor([[2.0, -1.0, 2.0]]) / 3  # of unit norm
    kernels = tangent_kernels(ensemble, x, nets=NETS, weight_rate=2.0, generator=generator)
    return kernels.sum((1, 2))[:, 0, 0].double()


law = Law(
    claim="The mean tangent kernel of a ReLU network on its diagonal is the number of weight matrices times twice the "
    "input's power: exactly, however narrow the layers.",
    formula=r"E\,\Theta(x,x)=\frac{2(L+1)\|x\|^2}{n_0}",
    assumes={"weights of variance 2 over fan-in": {"weight_variance": 1.86}, "no biases": {"bias_variance": 0.1}},
    source="hanin2020, Theorem 1",
    predict=lambda widths: relu_ntk_mean(len(widths), 1 / INPUTS),
    measure=measure,
    cases=({"widths": (8,)}, {"widths": (8, 8)}, {"widths": (20, 10, 20)}),
    full=({"widths": (20,) * 6},),
    tolerance=0.06,  # exact law: of 8 x 1500 kernels of relative variance up to 1.0 the mean is known to 0.9 %
    quantity="mean tangent kernel on its diagonal",
    erratum="Lecture notes print 2 L |x|^2 / n_0: their sum over layers stops before the last matrix, which adds its share "
    "too (without hidden layers the kernel is 2 |x|^2 / n_0, not 0).",
    refuted=lambda widths: relu_ntk_mean(len(widths) - 1, 1 / INPUTS),
)
