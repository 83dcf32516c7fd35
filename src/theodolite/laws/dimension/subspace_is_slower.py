r"""Fewer parameters do not mean fewer steps: a random subspace of the digits network trains more slowly than the whole."""

import copy
import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from theodolite.construct.dimension import subspace
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.io.datasets import digits

GOAL, MOST, TRAINED, TESTED = 0.8, 50, 400, 300
WHOLE_RATES, SUBSPACE_RATES = (0.02,), (0.3,)  # near the best of each: twice or half as much takes longer


def measure(dimension: int, *, generator: torch.Generator, whole_rates: tuple[float, ...] = WHOLE_RATES) -> float:
    """Logarithm of the steps of Adam to 80 % test accuracy in the subspace over those of the whole, each at its best rate."""
    x, y = digits()
    order = torch.randperm(len(x), generator=generator)
    x, y = x[order][: TRAINED + TESTED], y[order][: TRAINED + TESTED]
    first, last = (nn.Linear(*shape, device="meta").to_empty(device="cpu") for shape in ((64, 100), (100, 10)))
    model = nn.Sequential(first, nn.ReLU(), last)
    with torch.no_grad():
        for layer in (first, last):
            layer.weight.normal_(0.0, (2 / layer.in_features) ** 0.5, generator=generator)
            layer.bias.zero_()
    whole = min(_steps(copy.deepcopy(model), rate, x, y) for rate in whole_rates)
    few = min(_steps(subspace(model, dimension, projection="tied"), rate, x, y) for rate in SUBSPACE_RATES)
    return math.log(few / whole)


def _steps(model: nn.Module, rate: float, x: torch.Tensor, y: torch.Tensor) -> float:
    """Steps until the goal, the last one in part: accuracy is taken to rise in a line from step to step."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    before = 0.0
    for step in range(MOST):
        answers = model(x)
        seen = float((answers[TRAINED:].argmax(1) == y[TRAINED:]).double().mean())
        if seen >= GOAL:
            return step - 1 + (GOAL - before) / (seen - before)
        before = seen
        optimizer.zero_grad()
        cross_entropy(answers[:TRAINED], y[:TRAINED]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return float(MOST)


law = Law(
    claim="The same network, trained in a random subspace of fewer dimensions, takes more steps to the same accuracy, each "
    "with its best step size: what is saved in parameters is paid in steps.",
    formula=r"\log\frac{\mathrm{steps}(d)}{\mathrm{steps}(D)}\ge0\quad\text{for}\ d\ll D",
    assumes={"each at its best step size": {"whole_rates": (1.2e-3,)}},
    source="li2018",
    predict=lambda **case: Band(low=0.0),
    measure=measure,
    cases=({"dimension": 250},),
    full=({"dimension": 150},),
    repeats=6,
    observed="no theory gives the number of steps; that one is larger is what was seen",
    quantity="log of steps in the subspace over steps of the whole",
    erratum="That a reduced parametrization converges in fewer steps is often supposed; on the digits it takes two to ten times "
    "as many.",
    refuted=lambda **case: Band(high=0.0),
)
