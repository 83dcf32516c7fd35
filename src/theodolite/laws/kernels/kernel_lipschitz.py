r"""If no weight of a two-layer network moves by more than $\Delta$, its kernel moves by at most $2m\Delta$ in norm."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.kernels import kernel_change_bound

WIDTH, INPUTS = 400, 5
STEEPEST = 0.4812  # atanh(1 / sqrt 5), where the squared slope of tanh falls fastest, by 1.145: the bound takes it as 2


def measure(
    movement: float, samples: int, *, generator: torch.Generator, outputs: float = 1.0, steepness: float = 1.0
) -> float:
    """Inputs alike, units where their slope falls fastest, and all pushed one way: the worst that was found."""
    x = torch.randn(samples, INPUTS, generator=generator, dtype=torch.float64) * 0.03
    x[:, 0] += 1.0
    x = x / x.norm(dim=1, keepdim=True)
    w = torch.randn(WIDTH, INPUTS, generator=generator, dtype=torch.float64)
    a = outputs * (torch.randint(0, 2, (WIDTH,), generator=generator, dtype=torch.float64) * 2 - 1)
    center = x.mean(0) / x.mean(0).norm()
    sides = (w @ center).sign()
    w = w + (sides * STEEPEST / steepness - w @ center)[:, None] * center

    def kernel(weights: Tensor) -> Tensor:
        slopes = steepness / torch.cosh(steepness * weights @ x.T) ** 2  # (width, samples)
        return (x @ x.T) * ((a[:, None] * slopes).T @ (a[:, None] * slopes)) / WIDTH

    moved = w - movement * sides[:, None] * center
    return float(torch.linalg.matrix_norm(kernel(moved) - kernel(w), ord=2))


law = Law(
    claim="The tangent kernel of the first layer is Lipschitz in the weights: bounded output weights, slopes and curvatures "
    "leave a change of at most twice the number of samples times the largest movement.",
    formula=r"\max_k|w_k-w_k(0)|\leq\Delta\;\Rightarrow\;\|K-K_0\|_{op}\leq2m\Delta",
    assumes={
        "output weights of size at most one": {"outputs": 1.5},
        "an activation of slope and curvature at most one": {"steepness": 1.4},
    },
    source="du2019, Lemma 3.2",
    predict=lambda movement, samples: Band(high=kernel_change_bound(movement, samples=samples)),
    measure=measure,
    cases=({"movement": 0.02, "samples": 4}, {"movement": 0.1, "samples": 4}, {"movement": 0.1, "samples": 12}),
    quantity="change of the kernel",
)
