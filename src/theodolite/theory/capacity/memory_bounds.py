r"""How many points a network can certainly fit, and how many it certainly cannot, from its widths alone.

Below: explicit constructions. Above: on a line a network with piecewise linear activations has so many pieces, and targets
that go up and down need one each. Between the two lies what depends on the data.
Source: yun2019, Theorem 3.1, Proposition 3.2 and Theorem 3.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from theodolite.core.checks import InputError, at_least, each_at_least, one_of

MemorizingActivation = Literal["relu", "hardtanh"]
PIECES = {"relu": 2, "hardtanh": 3}
"""How many linear pieces the activation has."""


def _pieces_of(activation: str) -> int:
    one_of(PIECES, activation=activation)
    return PIECES[activation]


def _checked(widths: Sequence[int], outputs: int) -> tuple[int, ...]:
    if not widths or min(widths) < 1 or outputs < 1:
        raise InputError(
            f"expected hidden widths and outputs of at least 1, got {tuple(widths)} and {outputs}; pass sizes"
        )
    return tuple(int(width) for width in widths)


def theorem_capacity(
    first_width: int, second_width: int, *, activation: MemorizingActivation = "relu", outputs: int = 1
) -> int:
    r"""Points that two hidden layers certainly fit by the theorem: $4\lfloor d_1/4\rfloor\lfloor d_2/4d_y\rfloor$ for ReLU.

    For hard-tanh $4\lfloor d_1/2\rfloor\lfloor d_2/2d_y\rfloor$.
    Source: yun2019, Theorem 3.1.

    >>> theorem_capacity(200, 200), theorem_capacity(100, 100, activation="hardtanh")
    (10000, 10000)
    """
    at_least(0, first_width=first_width, second_width=second_width)
    at_least(1, outputs=outputs)
    unit = 2 * (_pieces_of(activation) == 2) or 1
    return 4 * (first_width // (2 * unit)) * (second_width // (2 * unit * outputs))


def construction_capacity(
    first_width: int, second_width: int, *, activation: MemorizingActivation = "relu", outputs: int = 1
) -> int:
    r"""Points that `construct.capacity.memorize` can hold in two hidden layers: $2d_1\lfloor d_2/4d_y\rfloor$ for ReLU.

    Neighboring groups of points share a boundary, so that a group costs one ReLU of the first layer and not two; for
    hard-tanh it is $2d_1\lfloor d_2/2d_y\rfloor$, and $d_1$ need not be even.
    Differs from the source: twice the theorem's number for ReLU.

    >>> construction_capacity(200, 200), construction_capacity(100, 100, activation="hardtanh")
    (20000, 10000)
    """
    at_least(0, first_width=first_width, second_width=second_width)
    at_least(1, outputs=outputs)
    unit = 4 if _pieces_of(activation) == 2 else 2
    return first_width * 2 * (second_width // (unit * outputs))


def certain_capacity(widths: Sequence[int], *, activation: MemorizingActivation = "relu", outputs: int = 1) -> int:
    """Points with any distinct inputs and any targets that hidden layers of these widths certainly can fit.

    One layer of d units fits d + 1 points. Of more layers the best two neighbors count: those before carry the projection,
    those after the outputs, one unit each.

    >>> certain_capacity([7]), certain_capacity([200, 200]), certain_capacity([3, 3])
    (8, 20000, 4)
    """
    each_at_least(1, widths=widths)
    at_least(1, outputs=outputs)
    widths = _checked(widths, outputs)
    found = [1]
    for index, (first, second) in enumerate(pairwise(widths)):
        if min(widths[index + 2 :], default=outputs) >= outputs:
            found.append(construction_capacity(first, second, activation=activation, outputs=outputs))
    found += [w + 1 for index, w in enumerate(widths) if min(widths[index + 1 :], default=outputs) >= outputs]
    return max(found)


def classifier_capacity(widths: Sequence[int], *, classes: int, activation: MemorizingActivation = "relu") -> int:
    """Points that three hidden layers certainly label right: those of the first two with one output, if the third has room.

    The third needs 4 units a class with ReLU, 2 with hard-tanh.
    Source: yun2019, Proposition 3.2.

    >>> classifier_capacity([188, 188, 8], classes=2)
    17672
    """
    each_at_least(1, widths=widths)
    at_least(1, classes=classes)
    if len(widths) != 3:
        raise InputError(f"expected the widths of three hidden layers, got {len(widths)}; pass three")
    first, second, third = _checked(widths, classes)
    unit = 4 if _pieces_of(activation) == 2 else 2
    return construction_capacity(first, second, activation=activation) if third >= unit * classes else 0


def most_pieces(widths: Sequence[int], *, activation: MemorizingActivation = "relu") -> int:
    r"""The most linear pieces the network can have along a line: kinks $k_l=k_{l-1}+(p-1)d_l(k_{l-1}+1)$, and one more.

    With two hidden layers of ReLU $(d_1+1)(d_2+1)$.
    Differs from the source: the first layer's kinks are counted once, not once for each unit of the second.

    >>> most_pieces([8, 8]), most_pieces([8])
    (81, 9)
    """
    each_at_least(1, widths=widths)
    kinks, more = 0, _pieces_of(activation) - 1
    for width in _checked(widths, 1):
        kinks += more * width * (kinks + 1)
    return kinks + 1


def impossible_from(widths: Sequence[int], *, activation: MemorizingActivation = "relu") -> int:
    """From this number on some points on a line, with targets going up and down, cannot be fitted by these widths.

    N such points take N - 1 pieces.

    >>> impossible_from([8, 8]), impossible_from([8])
    (83, 11)
    """
    each_at_least(1, widths=widths)
    return most_pieces(widths, activation=activation) + 2


def theorem_widths(
    samples: int, *, activation: MemorizingActivation = "relu", outputs: int = 1, classes: int | None = None
) -> tuple[int, ...]:
    r"""The smallest nearly equal widths at which the theorem promises to fit so many points; three for a classifier.

    About $2\sqrt{Nd_y}$ each for ReLU and $\sqrt{Nd_y}$ for hard-tanh; for classes $2\sqrt N$, $2\sqrt N$ and $4d_y$.
    Source: yun2019, Section 3.

    >>> theorem_widths(10_000), theorem_widths(8551, outputs=2), theorem_widths(8551, classes=2)
    ((200, 200), (260, 264), (184, 188, 8))
    """
    at_least(1, samples=samples, classes=classes)
    at_least(0, outputs=outputs)
    unit = 4 if _pieces_of(activation) == 2 else 2
    columns = 1 if classes is not None else outputs
    quarter = samples / 4
    best: tuple[int, int] | None = None
    around = max(1, math.isqrt(math.ceil(quarter * columns)))
    for first in range(max(1, around - 2), around + 3):
        second = max(1, math.ceil(quarter / first))
        found = (unit * first, unit * columns * second)
        if best is None or (max(found), min(found)) < (max(best), min(best)):
            best = found
    assert best is not None
    return best if classes is None else (*best, unit * classes)


@dataclass(frozen=True)
class MemoryBounds:
    """What hidden layers of one width hold: points for certain, where it ends for certain, and widths for the samples."""

    certain: int
    impossible_from: int
    samples: int | None
    enough: tuple[int, ...] | None


def memory(activation: str, depth: int, width: int, samples: int | None = None) -> MemoryBounds | None:
    """What ``depth`` hidden layers of ``width`` units hold with one output; None for an activation without such a theorem.

    >>> memory("relu", 2, 200, 30_000).certain
    20000
    """
    at_least(0, width=width)
    at_least(1, samples=samples)
    if activation not in PIECES:
        return None
    kind: MemorizingActivation = "relu" if activation == "relu" else "hardtanh"
    widths = (width,) * depth
    return MemoryBounds(
        certain_capacity(widths, activation=kind),
        impossible_from(widths, activation=kind),
        samples,
        None if samples is None else theorem_widths(samples, activation=kind),
    )
