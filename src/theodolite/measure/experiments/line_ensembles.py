"""Random ReLU networks of finite width counted along a line, many at once."""

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from theodolite.core.checks import at_least
from theodolite.measure.experiments.ensembles import Entries, random_entries
from theodolite.measure.regions import network_line_counts


@dataclass(frozen=True)
class LineEnsemble:
    """ReLU networks with one output; weights of variance ``weight_variance`` over fan-in, biases of variance ``bias_variance``.

    The rest are ways to leave the theory: a ``mean`` of the weights in units of their standard deviation, or ``entries``
    other than Gaussian: uniform, Cauchy, or of two values.
    """

    widths: tuple[int, ...]
    _: KW_ONLY
    inputs: int = 1
    weight_variance: float = 2.0
    bias_variance: float = 1.0
    mean: float = 0.0
    entries: Entries = "gauss"

    def drawn(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Entries of scale one about the mean."""
        like = torch.empty(0, dtype=torch.float64)
        return random_entries(self.entries, shape, like=like, generator=generator) + self.mean


def line_counts(
    ensemble: LineEnsemble, start: Tensor, end: Tensor, *, nets: int, generator: torch.Generator, whole: bool = False
) -> tuple[Tensor, Tensor]:
    """Activation regions and linear pieces of ``nets`` random networks between two inputs, or on the whole line."""
    at_least(1, nets=nets)
    weights: list[Tensor] = []
    biases: list[Tensor | None] = []
    for fan_in, width in zip((ensemble.inputs, *ensemble.widths), (*ensemble.widths, 1), strict=True):
        scale = math.sqrt(ensemble.weight_variance / fan_in)
        weights.append(scale * ensemble.drawn((nets, width, fan_in), generator))
        biases.append(math.sqrt(ensemble.bias_variance) * (ensemble.drawn((nets, width), generator) - ensemble.mean))
    if not ensemble.bias_variance:
        biases = [None] * len(weights)
    return network_line_counts(weights, biases, start=start, end=end, whole=whole)
