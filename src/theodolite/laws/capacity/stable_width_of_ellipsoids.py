r"""The n-th stable width of an ellipsoid is its (n+1)-th half axis: nothing continuous encodes it better than leaving axes out.

Not below: a continuous code of n numbers gives two opposite points of the section with the first n+1 axes the same (Borsuk and
Ulam), which lie $2a_{n+1}$ apart or more. Not above: projecting on n axes leaves $a_{n+1}$.
"""

import torch
from torch import Tensor, nn

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import ellipsoid_stable_width

AXES = (1.0, 0.7, 0.4, 0.3)
STEPS, TRAINED, TESTED = 60, 200, 10_000


def boundary(numbers: int, count: int, generator: torch.Generator) -> Tensor:
    """Points and their opposites on the section with one axis more than there are numbers."""
    x = torch.randn(count // 2, numbers + 1, generator=generator)
    x = torch.cat([x, -x])
    return torch.as_tensor(x / x.norm(dim=1, keepdim=True) * torch.tensor(AXES[: numbers + 1]))


def measure(numbers: int, *, generator: torch.Generator, cut: bool = False) -> float:
    """The least of the largest errors of a projection and of a trained pair of networks, over many points.

    ``cut`` encodes the angle of an ellipse, which jumps at one point.
    """
    x, test = boundary(numbers, TRAINED, generator), boundary(numbers, TESTED, generator)
    left = float(test[:, numbers].abs().max())
    if cut and numbers == 1:
        angle = torch.atan2(test[:, 1] / AXES[1], test[:, 0] / AXES[0])
        back = torch.stack([AXES[0] * angle.cos(), AXES[1] * angle.sin()], 1)
        return min(left, float((test - back).norm(dim=1).max()))
    coder = nn.Sequential(
        nn.Linear(numbers + 1, 24),
        nn.Tanh(),
        nn.Linear(24, numbers),
        nn.Linear(numbers, 24),
        nn.Tanh(),
        nn.Linear(24, numbers + 1),
    )
    with torch.no_grad():
        for parameter in coder.parameters():
            parameter.normal_(0.0, parameter.shape[-1] ** -0.5, generator=generator)
    optimizer = torch.optim.Adam(coder.parameters(), lr=0.02)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (coder(x) - x).square().sum(1).pow(4).mean().pow(0.25).backward()  # nearly the largest of the errors
        optimizer.step()
    with torch.no_grad():
        return min(left, float((coder(test) - test).norm(dim=1).max()))


law = Law(
    claim="No continuous code of n numbers, whatever networks encode and decode, brings all points of an ellipsoid back nearer "
    "than its half axis n + 1; the projection on the first n axes does as well as that.",
    formula=r"\delta_n\Big(\Big\{\sum_i\frac{x_i^2}{a_i^2}\le1\Big\}\Big)=a_{n+1}",
    assumes={"a continuous code": {"cut": True}},
    source="cohen2022",
    predict=lambda numbers: Band.around(ellipsoid_stable_width(AXES, dimension=numbers), rel=0.03),
    measure=measure,
    cases=({"numbers": 1}, {"numbers": 2}, {"numbers": 3}),
    repeats=3,
    quantity="largest error of the best code found",
)
