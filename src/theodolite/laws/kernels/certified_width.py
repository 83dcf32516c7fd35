r"""At $128\,m^4L(0)/\lambda_0^4$ units no weight moves by $\lambda_0/4m$: training is then certified to converge.

How far the bound is from tight is known for orthogonal inputs. There each weight meets every sample by a coordinate of its own,
and while the kernel stands still it moves by $a_k\sigma'(w_{kj})y_j/(\sqrt n\lambda_0)$ along it: by
$\sqrt m\,y/(\sqrt n\lambda_0)$ at most, which some weight nearly does. The width at which that is $\lambda_0/4m$ is
$16m^3y^2/\lambda_0^4$, the certified one over 4m: the certificate counts the kernel by half (4 times) and lets one coordinate
meet all errors (m times).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import descended
from theodolite.theory import Activation
from theodolite.theory.kernels import certified_width

STEPS, WIDTH, MANY = 120, 2048, 100_000


def predict(samples: int, target: float) -> Band:
    # Orthogonal unit inputs: the kernel of the layer that trains is diagonal, with E a^2 = 1/3 times E sigma'^2
    smallest = Activation("tanh").slope_moment(1.0) / 3
    tight = certified_width(0.5 * target**2, smallest=smallest, samples=samples) / (4 * samples)
    # from below: of 2048 units one has |a| and all slopes above 0.85, whose movement squared is half of the largest or more
    # from above: the kernel itself changes, by targets of 0.3 a few per cent
    return Band(low=0.55 * tight, high=1.1 * tight)


def measure(samples: int, target: float, *, generator: torch.Generator, scale: str = "1/sqrt n") -> float:
    """Movements fall as the root of the width: from one width follows the width at which they are so small."""
    w = torch.randn(1, samples, WIDTH // 2, generator=generator).repeat(1, 1, 2)
    a = torch.rand(WIDTH // 2, generator=generator) * 2 - 1
    a = torch.cat([a, -a])
    size = WIDTH**-0.5 if scale == "1/sqrt n" else 1 / WIDTH

    def forward(parameters: Sequence[Tensor]) -> Tensor:
        return size * (torch.tanh(parameters[0]) * a).sum(-1)  # inputs are the unit vectors

    signs = torch.tensor([[target, -target, target][:samples]])
    end = descended(forward, [w], signs, rates=(samples / (size * size * WIDTH),), steps=STEPS)
    slopes = (1 - torch.tanh(w).square()).square()  # of this network: the kernel's diagonal is their mean with a^2
    own = (slopes * a.square()).mean(-1)[0]  # (samples,)
    # of infinitely many units
    many = (1 - torch.tanh(torch.randn(MANY, generator=generator)).square()).square().mean() / 3
    moved = (end[0] - w) * (own / many)[None, :, None]  # a kernel that is small by chance is made up for by movement
    allowed = float(many) / (4 * samples)
    return WIDTH * (float(moved.norm(dim=1).max()) / allowed) ** 2


law = Law(
    claim="A width that follows from the smallest eigenvalue of the kernel and the loss at the start keeps every weight within "
    "the distance in which the kernel stays positive.",
    formula=r"n>\frac{128\,m^4L(0)}{\lambda_0^4}\ \Rightarrow\ |w_k(t)-w_k(0)|<\frac{\lambda_0}{4m}",
    assumes={"an output of scale one over the root of the width": {"scale": "1/n"}},
    source="du2019, Theorem 3.2",
    predict=predict,
    measure=measure,
    cases=({"samples": 2, "target": 0.2}, {"samples": 2, "target": 0.3}, {"samples": 3, "target": 0.2}),
    repeats=10,
    resolution=1.6,  # the two ends of the band are a factor of two apart
    quantity="width at which no weight moves beyond the kernel",
)
