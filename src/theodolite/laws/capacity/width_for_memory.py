r"""ReLU layers of width $2\sqrt{Nd_y}$ are the theorem's to hold N points, not $\sqrt{2Nd_y}$."""

import math

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.capacity import construction_capacity, theorem_capacity
from theodolite.theory.capacity.memory_bounds import MemorizingActivation


def predict(points: int, outputs: int) -> Band:
    width = 2 * math.sqrt(points * outputs)
    return Band(width, width + 4 * outputs + 4)  # widths come in whole fours, and fours a output


def root_of_two(points: int, outputs: int) -> Band:
    width = math.sqrt(2 * points * outputs)
    return Band(width, width + 4 * outputs + 4)


def measure(points: int, outputs: int, *, activation: MemorizingActivation = "relu", shared: bool = False) -> float:
    """The first width, equal in both layers, that is promised to be enough."""
    promised = construction_capacity if shared else theorem_capacity
    width = 1
    while promised(width, width, activation=activation, outputs=outputs) < points:
        width += 1
    return float(width)


law = Law(
    claim="Two equal hidden layers of ReLU hold N points from width 2 sqrt(N outputs) on; with boundaries shared between "
    "groups from sqrt(2 N outputs) on.",
    formula=r"d_1=d_2=2\sqrt{Nd_y}\ (\mathrm{ReLU}),\quad\sqrt{Nd_y}\ (\mathrm{hard\ tanh})",
    assumes={"ReLU": {"activation": "hardtanh"}, "two ReLU a group, as in the theorem": {"shared": True}},
    source="yun2019, Section 3",
    predict=predict,
    measure=measure,
    cases=tuple({"points": n, "outputs": o} for n, o in ((10_000, 1), (100_000, 1), (8551, 2))),
    quantity="width of both hidden layers",
    erratum="Quoted as sqrt(2 N outputs); of such widths the theorem promises half the points only.",
    refuted=root_of_two,
)
