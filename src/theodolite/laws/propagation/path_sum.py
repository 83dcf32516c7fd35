r"""A ReLU network without biases is a sum over paths: input times weights along the path, if every gate on it is open."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.measure.experiments import path_sum

DRAWS = 12


def measure(
    widths: tuple[int, ...], *, generator: torch.Generator, bias: float = 0.0, other_gates: bool = False
) -> Estimate:
    """The largest distance seen in any of the draws: an identity holds for every one of them."""
    return Estimate(max(_distance(widths, generator, bias, other_gates) for _ in range(DRAWS)))


def _distance(widths: tuple[int, ...], generator: torch.Generator, bias: float, other_gates: bool) -> float:
    x, other = torch.randn(2, widths[0], generator=generator, dtype=torch.float64).abs()
    weights, gates = [], []
    signal, elsewhere = x, -other
    for fan_in, fan_out in zip(widths, (*widths[1:], 1), strict=True):
        w = torch.randn(fan_out, fan_in, generator=generator, dtype=torch.float64) * (2 / fan_in) ** 0.5
        z, at_other = w @ signal + bias, w @ elsewhere + bias
        weights.append(w)
        gates.append(((at_other if other_gates else z) > 0).double())
        signal, elsewhere = z.relu(), at_other.relu()
    return abs(path_sum(weights, gates[:-1], x) - float(z))


law = Law(
    claim="The output of a ReLU network is a polynomial in its weights with one term for every path from input to output; "
    "the input decides which paths are open.",
    formula=r"z=\sum_{p}x_p\sum_{\gamma:p\to\mathrm{out}}\ \prod_{l=1}^{L+1}w^{(l)}_\gamma\prod_{l=1}^L\xi^{(l)}_\gamma",
    assumes={"no biases": {"bias": 3.9e-12}, "gates of the same input": {"other_gates": True}},
    source="hanin2018",
    # an identity: 1e-16 for each of at most a thousand paths, of terms up to some tens
    predict=lambda **case: Band.around(0.0, abs=1e-11),
    measure=measure,
    cases=({"widths": (3, 4, 3)}, {"widths": (2, 5, 4, 5)}, {"widths": (4, 6, 6, 6)}),
    repeats=1,
    quantity="largest distance between the sum over paths and the output",
)
