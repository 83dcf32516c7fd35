r"""Without biases a unit bends once on a line that misses the origin if two units are on in every layer in front."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import LineEnsemble, line_counts
from theodolite.theory.regions import line_pieces, line_regions

NETS = 2000


def measure(
    widths: tuple[int, ...],
    pieces: bool,
    *,
    generator: torch.Generator,
    bias_variance: float = 0.0,
    through: bool = False,
) -> Tensor:
    start, end = torch.eye(3, dtype=torch.float64)[:2]
    ensemble = LineEnsemble(widths, inputs=3, bias_variance=bias_variance)
    counts = line_counts(ensemble, -end if through else start, end, nets=NETS, generator=generator, whole=True)
    return counts[int(pieces)].double()


law = Law(
    claim="Without biases the mean number of regions on a line is as with them, with 1 - (n+1) 2^-n, the chance that two "
    "units of a layer are on, for every layer in front: behind a single active unit all units bend where it does.",
    formula=r"E\,\#\text{regions}=1+\sum_l n_l\prod_{k<l}\big(1-(n_k+1)2^{-n_k}\big)",
    assumes={"no biases": {"bias_variance": 1.0}, "a line that misses the origin": {"through": True}},
    source="hanin2019",
    predict=lambda widths, pieces: (line_pieces if pieces else line_regions)(widths, with_bias=False),
    measure=measure,
    cases=(
        {"widths": (3, 4, 3), "pieces": False},
        {"widths": (3, 4, 3), "pieces": True},
        {"widths": (6, 6), "pieces": False},
    ),
    full=({"widths": (6, 6, 6), "pieces": False}, {"widths": (6, 6, 6), "pieces": True}),
    tolerance=0.025,  # exact; 16,000 networks know the mean to 0.35 %
    quantity="regions or pieces on the line",
)
