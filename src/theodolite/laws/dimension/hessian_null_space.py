r"""Hessian eigenmaps of a flat manifold have $d+1$ vanishing eigenvalues, if the assumed dimension is the true one."""

import torch

from theodolite.construct.dimension import manifold
from theodolite.core.law import Law
from theodolite.measure.dimension import hessian_eigenmaps

SMALL = 1e-3
"""An arc of radius 1 bends by 1e-5 within a neighbourhood; the next eigenvalue is about 1e-2."""


def predict(dimension: int, rows: int) -> float:
    return float(dimension + 1)


def local_covariance(dimension: int, rows: int) -> float:
    return 1.0  # a covariance punishes the coordinates themselves: only constants are left


def measure(dimension: int, rows: int, *, generator: torch.Generator, wrong_by: int = 0, curved: bool = False) -> float:
    x = manifold("sphere" if curved else "arc and cube", rows, dimension, generator=generator)
    found = hessian_eigenmaps(x, dimension + wrong_by)
    return float(sum(value < SMALL for value in found.eigenvalues))


law = Law(
    claim="The functions without second derivatives are the constants and d coordinates.",
    formula=r"\dim\ker\sum_iH_i^\top H_i=d+1",
    assumes={"the assumed dimension is the true one": {"wrong_by": -1}, "a flat manifold": {"curved": True}},
    source="donoho2003",
    predict=predict,
    measure=measure,
    cases=tuple({"dimension": d, "rows": n} for d, n in ((3, 300), (3, 400), (4, 300))),
    repeats=3,
    quantity="eigenvalues that vanish",
    erratum="Lecture notes take the local covariance of the neighbours for the Hessian; that matrix has only the constants in "
    "its null space. The Hessian is estimated from products of tangent coordinates.",
    refuted=local_covariance,
)
