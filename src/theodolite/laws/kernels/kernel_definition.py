r"""A kernel has Gram matrices without negative eigenvalues; zero ones are allowed, and the linear kernel has them."""

import torch

from theodolite.core.law import Law

DIMENSION = 3
NUMBERS = {"linear": DIMENSION, "quadratic": DIMENSION * (DIMENSION + 1) // 2, "Gaussian": 12}


def measure(kernel: str, samples: int, *, generator: torch.Generator, shape: str = "kernel") -> float:
    """How many eigenvalues are positive, less how many are negative."""
    x = torch.randn(samples, DIMENSION, generator=generator, dtype=torch.float64)
    dots = x @ x.T
    squares = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square()
    gram = {"linear": dots, "quadratic": dots.square(), "Gaussian": torch.exp(-0.5 * squares)}[kernel]
    if shape == "distance":
        gram = squares
    values = torch.linalg.eigvalsh(gram)
    small = 1e-12 * values.abs().max()
    return float((values > small).sum() - (values < -small).sum())


law = Law(
    claim="Gram matrices of a kernel are positive semidefinite, of the rank of its features: strictly positive ones, as of the "
    "Gaussian kernel at distinct points, are a special class.",
    formula=r"\sum_{ij}c_ic_jK(x_i,x_j)\geq0",
    assumes={"a positive semidefinite function": {"shape": "distance"}},
    source="aronszajn1950",
    predict=lambda kernel, samples: float(min(samples, NUMBERS[kernel])),
    measure=measure,
    cases=tuple({"kernel": k, "samples": m} for k, m in (("linear", 5), ("quadratic", 10), ("Gaussian", 8))),
    repeats=3,
    tolerance=0.01,  # whole numbers
    quantity="positive less negative eigenvalues",
    erratum="Lecture notes ask for strict positivity; their own example, the linear kernel, then is none for more points than "
    "dimensions.",
    refuted=lambda kernel, samples: float(samples),
)
