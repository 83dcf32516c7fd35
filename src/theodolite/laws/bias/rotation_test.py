r"""Which learners predict the same after data and test points are turned together, and which do not."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band, Estimate
from theodolite.measure.bias import rotation_gap
from theodolite.measure.experiments.rotation_learners import INVARIANT, NOT_INVARIANT

LEARNERS = {**INVARIANT, **NOT_INVARIANT}
EXAMPLES, FEATURES = 8, 6


def measure(learner: str, *, generator: torch.Generator, turned_start: bool = True) -> Estimate:
    """The largest gap over several rotations: invariance is a statement about every one of them."""
    x = torch.randn(EXAMPLES, FEATURES, generator=generator, dtype=torch.float64) + 0.3
    test = torch.randn(EXAMPLES, FEATURES, generator=generator, dtype=torch.float64) + 0.3
    chosen = LEARNERS[learner]

    def ignoring(x: torch.Tensor, y: torch.Tensor, test: torch.Tensor, rotation: torch.Tensor | None) -> torch.Tensor:
        return torch.as_tensor(chosen(x, y, test, seed=0) if learner == "gradient descent" else chosen(x, y, test))

    asked = chosen if turned_start or learner != "gradient descent" else ignoring
    gaps = rotation_gap(asked, x, x[:, 0].clone(), test, repeats=4, generator=generator).gaps
    return Estimate(max(gaps))


law = Law(
    claim="Descent along gradients, their multiples and matrix functions of them treats all directions of the input alike; "
    "steps that look at single coordinates, multiplicative ones and absolute penalties do not.",
    formula=r"\hat y(Ux\mid XU^\top,y)=\hat y(x\mid X,y),\quad UU^\top=I",
    assumes={"a first layer whose start turns with the data": {"turned_start": False}},
    source="ng2004; warmuth2021",
    # Equal but for rounding, 1e-16, which some steps of descent magnify; or different by about as much as the predictions
    # are large. Between the two lie twelve orders of magnitude, and no learner.
    predict=lambda learner: Band.around(0.0, abs=1e-9) if learner in INVARIANT else Band(low=1e-3),
    measure=measure,
    cases=tuple({"learner": name} for name in LEARNERS),
    repeats=1,
    resolution=1e4,  # of the others only that they are not invariant: twelve decades above rounding
    quantity="largest difference over the predictions' root mean square",
)
