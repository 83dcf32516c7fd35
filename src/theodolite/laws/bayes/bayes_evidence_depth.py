r"""With prior variance 1 every further layer raises the evidence of a deep linear network, unless the scale was right already."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.measure.experiments import Problem, tilted_draws
from theodolite.theory.bayes import LinearNet, best_log_evidence, log_evidence, posterior_ratio

INPUTS, SAMPLES, DRAWS = 60, 30, 6000


def predict(depth: int, width: int, norm2: float) -> Band:
    seen = {"samples": SAMPLES, "norm2": norm2}
    before = log_evidence(LinearNet(INPUTS, (width,) * (depth - 1)), **seen).value  # type: ignore[arg-type]
    return Band(low=0.0, high=best_log_evidence(samples=SAMPLES, norm2=norm2) - before)


def measure(depth: int, width: int, norm2: float, *, generator: torch.Generator, right: bool = False) -> Estimate:
    norm2 = SAMPLES / INPUTS if right else norm2  # kappa = 1: the prior's scale is that of the targets
    found = []
    for layers in (depth - 1, depth):
        net = LinearNet(INPUTS, (width,) * layers)
        z = posterior_ratio(net, samples=SAMPLES, norm2=norm2)  # only steers the draws
        problem = Problem(sizes=(INPUTS, *net.widths), samples=SAMPLES, norm2=norm2)
        found.append(tilted_draws(problem, scale_ratio=z, draws=DRAWS, generator=generator).log_evidence())
    return Estimate(found[1].value - found[0].value, (found[0].stderr ** 2 + found[1].stderr ** 2) ** 0.5)


law = Law(
    claim="At prior variance 1 a wide deep linear network gains evidence with every layer, up to what the best scale would "
    "give: depth lets the samples choose the scale. Where the scale was right from the start, depth only costs.",
    formula=r"Z(L)<Z(L+1)\le\max_\tau N(y;0,\tau^2XX^\top),\quad\sigma=1,\ \kappa\ne1",
    assumes={"targets not of the prior's own scale": {"right": True}},
    source="hanin2023",
    predict=predict,
    measure=measure,
    cases=(
        {"depth": 1, "width": 200, "norm2": 3.0},
        {"depth": 2, "width": 200, "norm2": 3.0},
        {"depth": 4, "width": 200, "norm2": 3.0},
        {"depth": 2, "width": 100, "norm2": 0.1},
    ),
    full=({"depth": 8, "width": 400, "norm2": 3.0},),
    quantity="log evidence gained by the last layer",
    along="depth",
)
