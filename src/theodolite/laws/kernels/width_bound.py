r"""The proof certifies convergence from the width $128\,m^4L(0)/\lambda_0^4$ on; a few dozen units do in truth."""

from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import descended
from theodolite.theory import Activation
from theodolite.theory.kernels import certified_width

SAMPLES, UNITS = 3, 200_000
TARGETS = (1.0, -1.0, 1.0)
LOSS = sum(y * y for y in TARGETS) / (2 * SAMPLES)


def predict(width: str) -> Band:
    certified = certified_width(LOSS, smallest=Activation("tanh").slope_moment(1.0) / 3, samples=SAMPLES)
    # A Monte Carlo of 200,000 units knows the smallest eigenvalue to 0.2 %, its fourth power to 0.8 %, the mean of five to
    # 0.4 %, Student's factor 2.2 and three errors: 3 %, twice that for draws that scatter more
    return Band.around(certified, rel=0.07) if width == "certified" else Band(high=certified)


def unsquared(width: str) -> Band:
    certified = 16 * SAMPLES**2 * LOSS / (Activation("tanh").slope_moment(1.0) / 3) ** 2
    return Band.around(certified, rel=0.07) if width == "certified" else Band(high=certified)


def measure(width: str, *, generator: torch.Generator, kernel: str = "of the layer that trains") -> float:
    if width == "observed":
        return observed(generator)
    z = torch.randn(UNITS, SAMPLES, generator=generator, dtype=torch.float64)  # orthogonal unit inputs
    a = torch.rand(UNITS, generator=generator, dtype=torch.float64) * 2 - 1
    trains = a.square()[:, None] / torch.cosh(z) ** 4  # the inputs' Gram matrix leaves the diagonal
    gram = torch.tanh(z).T @ torch.tanh(z) / UNITS if "frozen" in kernel else torch.diag(trains.mean(0))
    smallest = float(torch.linalg.eigvalsh(gram)[0]) if "frozen" in kernel else float(trains.mean())
    low, high = 1.0, 1e30  # movement (falling with the width) must stay below smallest / 4m: bisection in the logarithm
    for _ in range(200):
        n = (low * high) ** 0.5
        moved = (2 * LOSS) ** 0.5 * SAMPLES / (0.5 * smallest * n**0.5)  # the integral of sqrt(2 L) e^{-lambda t/2m}
        low, high = (low, n) if moved < smallest / (4 * SAMPLES) else (n, high)
    return high


def observed(generator: torch.Generator) -> float:
    """The smallest power of two at which nine of ten networks reach a thousandth of the loss."""
    targets = torch.tensor([TARGETS])
    for width in (2, 4, 8, 16, 32, 64, 128):
        w = torch.randn(10, SAMPLES, width, generator=generator)
        a = torch.rand(10, 1, width, generator=generator) * 2 - 1

        def forward(parameters: Sequence[Tensor], a: Tensor = a, width: int = width) -> Tensor:
            return (torch.tanh(parameters[0]) * a).sum(-1) / width**0.5  # type: ignore[no-any-return]

        end = forward(descended(forward, [w], targets, rates=(SAMPLES * 4.0,), steps=150))
        if ((end - targets).square().mean(1) < 2e-3 * LOSS).float().mean() >= 0.9:
            return float(width)
    return 256.0


law = Law(
    claim="The width from which on the convergence proof holds grows as the fourth power of samples over the kernel's "
    "smallest eigenvalue: millions here, where a few dozen units train.",
    formula=r"n>\frac{128\,m^4L(0)}{\lambda_0^4}",
    assumes={"the smallest eigenvalue of the kernel that trains": {"kernel": "of the frozen layer"}},
    source="du2019, Theorem 3.2",
    predict=predict,
    measure=measure,
    cases=({"width": "certified"}, {"width": "observed"}),
    repeats=5,
    quantity="width",
    erratum="Lecture notes print n > 16 m^2 L(0) / lambda_0^2: the last step forgets to square, and takes the kernel of the "
    "layer that is frozen.",
    refuted=unsquared,
)
