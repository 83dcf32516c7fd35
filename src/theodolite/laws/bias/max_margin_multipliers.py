r"""The widest margin is carried by its support vectors: $|\hat w|^2=\sum a_i=1/\gamma^2$."""

import numpy as np

from theodolite.construct.dynamics import separable
from theodolite.core.law import Law
from theodolite.theory.bias import widest_margin


def predict(instance: int) -> float:
    return float(widest_margin(separable(instance)).multipliers.sum())


def measure(instance: int, *, bias: float = 0.0, slack: float = 0.0) -> float:
    """The least |w|^2 by sequential quadratic programming, which knows no multipliers; with a bias it can be less."""
    from scipy.optimize import minimize

    rows = separable(instance)
    rows = np.hstack([rows, np.full((len(rows), 1), bias)])
    found = minimize(
        lambda w: 0.5 * w @ w,
        np.full(rows.shape[1], 0.1),
        jac=lambda w: w,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: rows @ w - (1 - slack), "jac": lambda w: rows},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return float(found.x @ found.x)


law = Law(
    claim="The separator of widest margin is a sum over the samples on the margin, and the sum of its multipliers is one over "
    "the squared margin.",
    formula=r"\hat w=\sum_{i\in S}a_iy_ix_i,\quad S=\{i:a_i\neq0\},\qquad|\hat w|^2=\sum a_i=1/\gamma^2",
    assumes={"no bias": {"bias": 0.0006}, "every sample beyond the margin": {"slack": 1.9e-07}},
    source="cortes1995",
    predict=predict,
    measure=measure,
    cases=({"instance": 0}, {"instance": 1}, {"instance": 2}),
    full=({"instance": 3},),
    tolerance=1e-7,  # what the iteration is asked for
    quantity="square of the least weight",
)
