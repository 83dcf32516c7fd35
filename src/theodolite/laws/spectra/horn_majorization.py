r"""Products of the k largest singular values of XW never exceed those of X times those of W, and reach them where bases align."""

import math

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.spectra import horn_bounds, majorization_slack

ROUNDING = 1e-9  # of sums of logarithms
LEFT, RIGHT = (5.0, 3.0, 2.0, 0.7), (4.0, 1.5, 1.2, 0.9)


def predict(shape: tuple[int, int, int], bases: str) -> Band:
    if bases == "turned by 1":  # of two directions, whose product has a known sum of squares and determinant
        a, b = LEFT[:2], RIGHT[:2]
        cosine, sine = math.cos(1.0) ** 2, math.sin(1.0) ** 2
        total = cosine * ((a[0] * b[0]) ** 2 + (a[1] * b[1]) ** 2) + sine * ((a[0] * b[1]) ** 2 + (a[1] * b[0]) ** 2)
        det = math.prod(a) * math.prod(b)
        values = [math.sqrt(0.5 * (total + s * math.sqrt(total**2 - 4 * det**2))) for s in (1, -1)]
        return Band.around(sum(majorization_slack(values, a, b)), abs=ROUNDING)
    bound = horn_bounds(LEFT, RIGHT)
    if bases == "aligned":
        return Band.around(sum(bound), abs=ROUNDING)
    return Band(high=bound[1] + ROUNDING)


def measure(
    shape: tuple[int, int, int], bases: str, *, generator: torch.Generator, one_by_one: bool = False, extra: float = 0.0
) -> float:
    """The cumulated logs of the product's singular values, summed; at random bases the first two; turned, what is lacking."""
    n, p, q = shape
    a, b = torch.tensor(LEFT, dtype=torch.float64), torch.tensor(RIGHT, dtype=torch.float64)
    if bases == "turned by 1":
        turn = torch.tensor([[math.cos(1.0), -math.sin(1.0)], [math.sin(1.0), math.cos(1.0)]], dtype=torch.float64)
        top = torch.linalg.svdvals(torch.diag(a[:2]) @ turn @ torch.diag(b[:2])).log() + extra
        slack = a[:2].log() + b[:2].log() - top
        return float((slack if one_by_one else slack.cumsum(0)).sum())
    inner = _frame(p, generator)
    other = inner if bases == "aligned" else _frame(p, generator)
    left, right = (_frame(n, generator) * a) @ inner.T, (other * b) @ _frame(q, generator).T
    logs = torch.linalg.svdvals(left @ right).log()[:4] + extra
    if bases == "aligned":
        return float((logs if one_by_one else logs.cumsum(0)).sum())
    return float(logs[:2].sum())


def _frame(rows: int, generator: torch.Generator) -> Tensor:
    return torch.linalg.qr(torch.randn(rows, 4, generator=generator, dtype=torch.float64))[0]


law = Law(
    claim="Singular values of a product are log-majorized by the products of the singular values; where the inner bases are the "
    "same nothing is lost.",
    formula=r"\prod_{i\le k}\sigma_i(XW)\le\prod_{i\le k}\sigma_i(X)\,\sigma_i(W)\quad\text{for every }k",
    assumes={
        "products over the largest k, not one by one": {"one_by_one": True},
        "both factors have the singular values supposed": {"extra": 3.3e-10},
    },
    source="horn1950",
    predict=predict,
    measure=measure,
    cases=(
        {"shape": (30, 20, 25), "bases": "aligned"},
        {"shape": (2, 2, 2), "bases": "turned by 1"},
        {"shape": (12, 5, 10), "bases": "random"},
        {"shape": (40, 4, 40), "bases": "random"},
    ),
    quantity="logarithms of the singular values, cumulated",
)
