r"""A group of $N_0$ random units fitted by least squares leaves $1-N_0/n$ of unstructured labels."""

import torch

from theodolite.construct.capacity import least_squares_group
from theodolite.core.law import Law
from theodolite.core.reading import Band

SAMPLES, INPUTS = 200, 20


def measure(share: float, *, generator: torch.Generator, labels: str = "random") -> float:
    z = torch.randn(SAMPLES, INPUTS, generator=generator, dtype=torch.float64)
    z = z / z.norm(dim=1, keepdim=True)
    y = z[:, :1] if labels == "smooth" else torch.randn(SAMPLES, 1, generator=generator, dtype=torch.float64)
    group = least_squares_group(z, y, units=round(share * SAMPLES), generator=generator)
    return float((y - group.outputs(z)).square().sum() / y.square().sum())


law = Law(
    claim="Least squares over a group of random units takes its share of the squared residual, whatever the separation of the "
    "points: the theorem's thousandfold constant is not needed.",
    formula=r"\frac{E|y-\hat y|^2}{|y|^2}=1-\frac{N_0}{n}",
    assumes={"labels without structure": {"labels": "smooth"}},
    source="bresler2020",
    # What 200 random labels have in a share s of all directions scatters by sqrt(2 s (1 - s) / 200), 0.05 at most; the mean of 40
    # draws by 0.008; three such errors and a wander of two
    predict=lambda share: Band.around(1 - share, abs=0.04),
    measure=measure,
    cases=({"share": 0.05}, {"share": 0.25}, {"share": 0.5}, {"share": 0.75}),
    repeats=40,
    quantity="share of the squared residual left by one group",
    along="share",
)
