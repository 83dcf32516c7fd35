r"""On any whole line a random ReLU network has $1+\sum_ln_l\prod_{k\ne l}(1-2^{-n_k})$ linear pieces on average."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import LineEnsemble, line_counts
from theodolite.theory.regions import line_pieces

NETS = 2000


def measure(
    widths: tuple[int, ...], inputs: int, *, generator: torch.Generator, mean: float = 0.0, patterns: bool = False
) -> Tensor:
    start, end = torch.eye(inputs + 1, dtype=torch.float64)[:2, :inputs]
    ensemble = LineEnsemble(widths, inputs=inputs, mean=mean)
    return line_counts(ensemble, start, end, nets=NETS, generator=generator, whole=True)[0 if patterns else 1].double()


law = Law(
    claim="A unit's switching shows in the output unless a layer behind it is wholly off there: the function has fewer "
    "linear pieces than the network has activation regions.",
    formula=r"E\,\#\text{pieces}=1+\sum_l n_l\prod_{k\neq l}(1-2^{-n_k})",
    assumes={
        "symmetric weights": {"mean": 0.45},
        "pieces of the function are counted, not patterns": {"patterns": True},
    },
    source="hanin2019",
    predict=lambda widths, inputs: line_pieces(widths),
    measure=measure,
    cases=({"widths": (2, 2, 2), "inputs": 1}, {"widths": (3, 2, 4), "inputs": 3}, {"widths": (2, 6), "inputs": 2}),
    full=({"widths": (2, 3, 1, 2), "inputs": 1},),
    tolerance=0.025,  # exact; 16,000 networks know the mean to 0.4 %
    quantity="linear pieces on the line",
)
