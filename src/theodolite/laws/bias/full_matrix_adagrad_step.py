r"""Full-matrix Adagrad treats orthogonal examples one by one: each learns by a scalar recursion of its own."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import online_weights

FEATURES, EXAMPLES, RATE = 12, 4, 0.3


def predict(label: float, visits: int) -> float:
    """The share of the label that is learned: the sum of squares under the root starts at the damping, 1."""
    return _learnt(label, visits, power=-0.5)


def _learnt(label: float, visits: int, power: float) -> float:
    w, total = 0.0, 1.0
    for _ in range(visits):
        slope = w - label
        total += min(slope * slope, 1e100)
        w -= RATE * total**power * slope
    return w / label


def measure(label: float, visits: int, *, generator: torch.Generator, overlap: float = 0.0) -> float:
    """The mean answer to the examples over their labels, after each was shown so often, in random order."""
    drawn = torch.randn(FEATURES, EXAMPLES, generator=generator, dtype=torch.float64)
    rows = torch.linalg.qr(drawn)[0].T
    rows = rows + overlap * rows.roll(1, 0)  # each example leans a little towards the next
    order = torch.arange(EXAMPLES).repeat(visits)[torch.randperm(EXAMPLES * visits, generator=generator)]
    labels = torch.full((len(order),), label, dtype=torch.float64)
    return float((rows @ online_weights(rows[order], labels, exponent=0.5, lr=RATE)).mean()) / label


law = Law(
    claim="The update of full-matrix Adagrad is the gradient times the inverse root of the sum of its outer products: along "
    "orthogonal examples it is Adagrad with one rate each.",
    formula=r"w_{t+1}=w_t-\eta A_t^{-1/2}\nabla_t,\ A_t=I+\sum_{j\le t}\nabla_j\nabla_j^\top\;\Rightarrow\;"
    r"e_{k+1}=e_k-\frac{\eta e_k}{\sqrt{1+\sum_{j\le k}e_j^2}}",
    assumes={"orthogonal examples": {"overlap": 2.5e-09}},
    source="duchi2011",
    predict=predict,
    measure=measure,
    cases=tuple({"label": y, "visits": k} for y, k in ((0.1, 3), (1.0, 6), (10.0, 12))),
    tolerance=1e-9,  # rounding of eigenvectors of a matrix of condition 1e4 at most
    repeats=3,
    quantity="share of the labels learned",
    erratum="Printed in slides as a step along the root of A itself, with w_t on both sides. (The same slides write y_t for y_j "
    "in the last line on the Vovk-Azoury-Warmuth forecast.)",
    refuted=lambda label, visits: _learnt(label, visits, power=0.5),
)
