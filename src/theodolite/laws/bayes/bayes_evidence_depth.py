r"""With prior variance 1 every further layer raises the evidence of a deep linear network, unless the scale was right already."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.experiments import Problem, tilted_draws
from theodolite.measure.experiments.linear_draws import Draws
from theodolite.theory.bayes import LinearNet, best_log_evidence, log_evidence

INPUTS, SAMPLES, DRAWS = 60, 30, 6000


def predict(depth: int, width: int, norm2: float) -> float:
    """What the last layer adds; all layers together can add no more than the best scale would."""
    before, after = (
        log_evidence(LinearNet(INPUTS, (width,) * layers), samples=SAMPLES, norm2=norm2).value
        for layers in (depth - 1, depth)
    )
    assert before < after < best_log_evidence(samples=SAMPLES, norm2=norm2), "the claim, by the closed form"
    return after - before


def measure(depth: int, width: int, norm2: float, *, generator: torch.Generator, right: bool = False) -> Estimate:
    norm2 = SAMPLES / INPUTS if right else norm2  # kappa = 1: the prior's scale is that of the targets
    found = []
    for layers in (depth - 1, depth):
        problem = Problem((INPUTS, *(width,) * layers), SAMPLES, norm2=norm2)
        found.append(_steered(problem, generator).log_evidence())
    return Estimate(found[1].value - found[0].value, (found[0].stderr ** 2 + found[1].stderr ** 2) ** 0.5)


def _steered(problem: Problem, generator: torch.Generator) -> Draws:
    """Draws near the posterior. Any ratio is right; a good one is found by halving, from what few draws say of the scale."""
    own, low, high = problem.norm2 * (problem.sizes[0] / problem.samples - 1), 0.02, 50.0
    for _ in range(10):
        ratio = (low * high) ** 0.5
        few = tilted_draws(problem, scale_ratio=ratio, draws=300, generator=generator)
        low, high = (ratio, high) if few.quantity("perpendicular").value > ratio * own else (low, ratio)
    return tilted_draws(problem, scale_ratio=ratio, draws=DRAWS, generator=generator)


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
    tolerance=0.015,  # the draws know a gain of 2.9 to 0.004: three errors are 0.4 %, and thrice that for their wander
    quantity="log evidence gained by the last layer",
    along="depth",
)
