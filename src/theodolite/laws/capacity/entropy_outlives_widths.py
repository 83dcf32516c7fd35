r"""Entropy numbers and stable widths are not equivalent: two real numbers hold a square exactly, and no number of bits does.

Through $n\ge d$ numbers a cube of d dimensions comes back as it was, by maps that do not stretch: its stable widths are 0 from
there on. Its entropy numbers are $2^{-(k+1)}$ at $n=dk$ bits and never 0. One bounds the other only in the two theorems' forms,
with a logarithm and a change from n to 26 n.
"""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.capacity import greedy_cover
from theodolite.theory.capacity import cube_entropy_number

POINTS = 4000


def predict(by: str, count: int) -> Band:
    if by == "numbers":  # one coordinate left out: the middle of its side is the best answer
        return Band.around(0.5 if count < 2 else 0.0, abs=0.01)
    exact = cube_entropy_number(2, count)
    return Band(0.93 * exact, 2 * exact)  # a greedy cover, of a sample that may be covered by 7 % smaller balls


def equivalent(by: str, count: int) -> Band:
    """As if widths were entropy numbers within a factor of ten either way."""
    exact = cube_entropy_number(2, count) if count > 1 else 0.5
    return Band(0.1 * exact, 10 * exact)


def measure(by: str, count: int, *, generator: torch.Generator, side: float = 1.0, jumps: bool = False) -> float:
    """The farthest that a point of the square is from what comes back of it, in the sup norm.

    ``jumps`` lets the code of one number take both coordinates, digit by digit in turn, which no continuous map does.
    """
    points = side * torch.rand(POINTS, 2, generator=generator, dtype=torch.float64)
    if by == "bits":
        return float(greedy_cover(points, count=2**count, norm="sup").radii[-1])
    if jumps and count == 1:
        back = (points * 2**12).floor() / 2**12  # of one number, whose digits are theirs in turn
    else:
        back = torch.cat([points[:, :count], torch.full((POINTS, 2 - count), side / 2, dtype=torch.float64)], 1)
    return float((points - back).abs().max())


law = Law(
    claim="A square can be kept in two real numbers without loss and stably, but in bits only up to an entropy number that "
    "halves with every two of them: the two ways to count are not equivalent.",
    formula=r"\delta_n([0,1]^d)=\tfrac12\ (n<d),\quad0\ (n\ge d);\qquad\epsilon_{dk}([0,1]^d)=2^{-(k+1)}",
    assumes={"a square of side 1": {"side": 2.2}, "continuous codes": {"jumps": True}},
    source="kolmogorov1959; cohen2022",
    predict=predict,
    measure=measure,
    cases=(
        {"by": "numbers", "count": 1},
        {"by": "numbers", "count": 2},
        {"by": "bits", "count": 4},
        {"by": "bits", "count": 6},
    ),
    repeats=12,
    resolution=2.0,  # a greedy cover may lie anywhere within a factor of two
    quantity="error of what comes back",
    erratum="Lecture notes call entropy numbers and stable widths equivalent.",
    refuted=equivalent,
)
