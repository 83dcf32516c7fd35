r"""The simplex that collapsed class means form."""

import math

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import at_least


def simplex_cosine(classes: int) -> float:
    r"""$-1/(C-1)$: the cosine between any two corners of a centered simplex of C equal, equally spread vectors.

    C unit vectors that sum to zero with equal pairwise cosines c obey $0=|\sum v|^2=C+C(C-1)c$. Source: papyan2020.

    >>> simplex_cosine(3)
    -0.5
    """
    at_least(2, classes=classes)
    return -1 / (classes - 1)


def simplex_corners(classes: int) -> NDArray[np.float64]:
    r"""$\sqrt{C/(C-1)}\,(I-\frac{1}{C}11^T)$: C unit vectors with all pairwise cosines $-1/(C-1)$, (C, C).

    Last layers end there when classes collapse; as fixed weights of a last layer they spare its training.

    >>> simplex_corners(2).round(3).tolist()
    [[0.707, -0.707], [-0.707, 0.707]]
    """
    at_least(2, classes=classes)
    corners = math.sqrt(classes / (classes - 1)) * (np.eye(classes) - 1 / classes)
    return np.asarray(corners, dtype=np.float64)
