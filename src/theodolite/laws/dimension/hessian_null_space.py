r"""Hessian eigenmaps of a flat manifold have $d+1$ vanishing eigenvalues, if the assumed dimension is the true one."""

import itertools

import torch

from theodolite.construct.dimension import manifold
from theodolite.core.law import Law
from theodolite.measure.dimension import hessian_eigenmaps


def measure(dimension: int, rows: int, *, generator: torch.Generator, wrong_by: int = 0, curved: bool = False) -> float:
    x = manifold("sphere" if curved else "arc and cube", rows, dimension, generator=generator)
    # The constants vanish always; the others are told by the largest step from one eigenvalue to the next: a thousandfold where
    # an arc of radius 1 bends little within a neighborhood, at most threefold on a sphere
    values = hessian_eigenmaps(x, dimension + wrong_by).eigenvalues[1:]
    steps = [after / max(before, 1e-12) for before, after in itertools.pairwise(values)]
    return float(2 + steps.index(max(steps)))


law = Law(
    claim="The functions without second derivatives are the constants and d coordinates.",
    formula=r"\dim\ker\sum_iH_i^\top H_i=d+1",
    assumes={"the assumed dimension is the true one": {"wrong_by": -1}, "a flat manifold": {"curved": True}},
    source="donoho2003",
    predict=lambda dimension, rows: float(dimension + 1),
    measure=measure,
    cases=tuple({"dimension": d, "rows": 300} for d in (2, 3, 4)),
    repeats=3,
    quantity="eigenvalues that vanish",
    erratum="Lecture notes take the local covariance of the neighbors for the Hessian; that matrix has only the constants in "
    "its null space. The Hessian is estimated from products of tangent coordinates.",
    refuted=lambda **case: 1.0,  # a covariance punishes the coordinates themselves: only constants are left
)
