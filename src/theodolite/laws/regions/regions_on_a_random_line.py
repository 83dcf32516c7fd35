r"""On any whole line a random ReLU network has $1+\sum_ln_l\prod_{k<l}(1-2^{-n_k})$ activation regions on average."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import LineEnsemble, line_counts
from theodolite.measure.experiments.ensembles import Entries
from theodolite.theory.regions import line_regions

NETS = 2000


def measure(
    widths: tuple[int, ...],
    entries: Entries,
    inputs: int,
    *,
    generator: torch.Generator,
    mean: float = 0.0,
    bias_variance: float = 1.0,
) -> Tensor:
    start, end = torch.eye(inputs + 1, dtype=torch.float64)[:2, :inputs]
    ensemble = LineEnsemble(widths, inputs=inputs, entries=entries, mean=mean, bias_variance=bias_variance)
    return line_counts(ensemble, start, end, nets=NETS, generator=generator, whole=True)[0].double()


law = Law(
    claim="Depth gives nothing on average: along any line a random ReLU network has one region and one more for every "
    "unit, except for those after a layer that is wholly off. The scale of weights and biases does not matter.",
    formula=r"E\,\#\text{regions}=1+\sum_l n_l\prod_{k<l}(1-2^{-n_k})",
    assumes={
        "symmetric weights": {"mean": 0.76},
        "biases (without them a unit of one active input bends upon that one's bend)": {"bias_variance": 0.0},
        "weights and biases that have densities": {"entries": "sign"},
    },
    source="hanin2019",
    predict=lambda widths, entries, inputs: line_regions(widths),
    measure=measure,
    cases=(
        {"widths": (2, 2, 2), "entries": "gauss", "inputs": 1},
        {"widths": (3, 2, 4), "entries": "uniform", "inputs": 3},
        {"widths": (4, 4), "entries": "cauchy", "inputs": 2},
        {"widths": (1, 1), "entries": "gauss", "inputs": 2},  # few units: the one region of the line itself counts
    ),
    full=(
        {"widths": (2, 3, 1, 2), "entries": "uniform", "inputs": 1},
        {"widths": (6, 6, 6), "entries": "gauss", "inputs": 9},
    ),
    tolerance=0.025,  # exact; 16,000 networks know the mean to 0.3 %
    quantity="activation regions on the line",
)
