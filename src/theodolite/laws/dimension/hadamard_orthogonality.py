r"""The fast Walsh-Hadamard transform is orthogonal up to a factor: $HH^\top=L\,I$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.dimension import hadamard_transform


def predict(size: int) -> Band:
    return Band(high=1e-13)  # sums of integers up to 2^53 are exact in float64


def measure(size: int, *, generator: torch.Generator, pattern: str = "sylvester") -> float:
    """The largest entry of |H H^T / L - I|, H the transform of the unit vectors in a random order."""
    order = torch.randperm(size, generator=generator)
    h = hadamard_transform(torch.eye(size, dtype=torch.float64)[order])
    if pattern == "random":
        h = 2.0 * torch.randint(0, 2, (size, size), generator=generator).double() - 1
    return float((h @ h.T / size - torch.eye(size, dtype=torch.float64)).abs().max())


law = Law(
    claim="Rows of the Walsh-Hadamard matrix are orthogonal: the transform keeps lengths up to the factor √L and undoes "
    "itself up to L.",
    formula=r"HH^\top=L\,I,\qquad H_{ij}=(-1)^{|i\,\&\,j|}",
    assumes={"Sylvester's pattern of signs": {"pattern": "random"}, "a power of two": None},
    source="fino1976",
    predict=predict,
    measure=measure,
    cases=({"size": 8}, {"size": 128}, {"size": 512}),
    full=({"size": 4096},),
    repeats=8,
    quantity="largest entry of |HHᵀ/L − I|",
)
