r"""Beyond the edge a two-layer linear network on one datum catapults to flatter ground, up to $\eta\lambda_0=4$ exactly."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import two_layer_curvature, two_layer_path, two_layer_start
from theodolite.theory.dynamics.descent import CATAPULT_LIMIT

STEPS = 200
COARSE, FINE = 0.25, 0.02


def measure(width: int, *, generator: torch.Generator, activation: str = "linear", momentum: float = 0.0) -> float:
    """Half-way between the last step, in units of 1/curvature, that converges and the first that does not."""
    u, v = two_layer_start(width, output=1.0, curvature=2.0, generator=generator)
    curvature, low, high = two_layer_curvature(u, v, activation=activation), 3.125, 7.0
    for spacing in (COARSE, FINE):
        grid = torch.arange(low, high, spacing, dtype=torch.float64)
        outputs, _ = two_layer_path(u, v, lrs=grid / curvature, steps=STEPS, activation=activation, momentum=momentum)
        diverged = ~(outputs[-1].abs() < 0.1)
        first = int(diverged.double().argmax()) if bool(diverged.any()) else len(grid) - 1
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
    return 0.5 * (low + high)


law = Law(
    claim="Steps between 2 and 4 over the initial curvature first enlarge the loss and then converge at a lower curvature; "
    "beyond 4 they diverge, at every width.",
    formula=r"\eta\lambda_0<4\;\Rightarrow\;f\to0,\ \eta\lambda_\infty<2;\qquad\eta\lambda_0>4\;\Rightarrow\;|f|\to\infty",
    assumes={"a linear network": {"activation": "silu"}, "no momentum": {"momentum": 0.071}},
    source="lewkowycz2020, section 2",
    predict=lambda **case: CATAPULT_LIMIT,
    measure=measure,
    cases=({"width": 100}, {"width": 400}, {"width": 1000}),
    full=({"width": 10_000},),
    tolerance=0.01,  # the grid of steps is 0.02 wide: half of that either side, and as much again for slow ends
    repeats=3,
    quantity="largest step that converges, times the initial curvature",
    along="width",
)
