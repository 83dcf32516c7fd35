r"""With features 0 and 1 a rotation-invariant learner does no better: it answers the same to every row that it has not seen.

Rows $x=(1+h)/2$ of a Hadamard matrix (the row of ones left out) have products $\frac d4(1+\delta_{ij})$: to a learner that sees
products alone all rows that it has not seen are alike. Least squares from zero answers $S/(k+1)$ to each, S the number of ones
among the k labels seen, and is right about these: its mean loss follows, and stays above a quarter of that for signs.
"""

import torch
from scipy.linalg import hadamard

from theodolite.core.law import Law
from theodolite.measure.experiments import descent_weights, multiplicative_weights
from theodolite.theory.bias import hadamard_lower_bound

SIDE, PROBLEMS, STEPS = 32, 60, 150


def predict(examples: int) -> float:
    k, rows = examples, SIDE - 1
    ones = SIDE / 2 - 1  # of a column, without the row of ones
    one, both = ones / rows, ones * (ones - 1) / (rows * (rows - 1))
    squares = k * one + k * (k - 1) * both  # the mean of S^2, drawn without replacement
    missed = one - 2 * k * both / (k + 1) + squares / (k + 1) ** 2
    return hadamard_lower_bound(k, rows) * missed  # the share of rows that were not seen


def measure(examples: int, *, generator: torch.Generator, learner: str = "least squares") -> list[float]:
    """Mean loss over all rows after training on some, for a column drawn as the target."""
    table = (1 + torch.from_numpy(hadamard(SIDE)[1:]).double()) / 2
    x, y = [], []
    for _ in range(PROBLEMS):
        order = torch.randperm(SIDE - 1, generator=generator)
        x.append(table[order])
        y.append(x[-1][:, 1 + int(torch.randint(SIDE - 1, (), generator=generator))])
    rows, labels = torch.stack(x), torch.stack(y)
    seen, told = rows[:, :examples], labels[:, :examples]
    if learner == "least squares":
        fastest = examples / (SIDE / 4 * (1 + examples))  # one over the largest eigenvalue
        w = descent_weights(seen, told, optimizer=lambda own: torch.optim.SGD(own, lr=1.5 * fastest), passes=STEPS)
    else:
        w = multiplicative_weights(seen, told, update="egu", lr=0.5, steps=STEPS, initial_weight=1 / SIDE)
    return ((rows @ w[..., None])[..., 0] - labels).square().mean(1).tolist()


law = Law(
    claim="Gradient descent on features 0 and 1 of a Hadamard matrix answers the same to all rows that it has not seen, and is "
    "wrong about them by a quarter; a multiplicative update finds the feature.",
    formula=r"L=\Big(1-\frac k{d-1}\Big)\,E\Big(y-\frac{S}{k+1}\Big)^2\ \ge\ \frac14\Big(1-\frac k{d-1}\Big)(1-o(1))",
    assumes={"a rotation-invariant learner": {"learner": "egu"}},
    source="warmuth2021",
    predict=predict,
    measure=measure,
    cases=({"examples": 8}, {"examples": 16}, {"examples": 24}),
    # labels drawn without replacement: S scatters by a root of k/4, the loss by a tenth of itself from problem to problem
    tolerance=0.1,
    repeats=4,
    quantity="mean loss over all rows",
    along="examples",
)
