r"""The fast Walsh-Hadamard transform is the matrix of signs $(-1)^{|i\,\&\,j|}$, and orthogonal up to a factor."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.dimension import hadamard_transform


def predict(size: int, power: int) -> float:
    """Of the transform itself; that its squares add up to L times those of v is the orthogonality."""
    v = signal(size)
    if power == 2:
        return float(size * v.square().sum())
    return float(hadamard_transform(v).pow(power).sum())


def signal(size: int) -> Tensor:
    return torch.sin(torch.arange(size, dtype=torch.float64) ** 2) + 0.3


def measure(size: int, power: int, *, wrong: int = 0) -> float:
    """The sum of powers of Hv, H written out sign by sign; the first ``wrong`` columns negated in their last row."""
    places = torch.arange(size)
    common = places[:, None] & places
    parity = sum((common >> bit) & 1 for bit in range(size.bit_length())) % 2
    signs = 1 - 2 * torch.as_tensor(parity).double()
    signs[-1, :wrong] *= -1
    return float((signs @ signal(size)).pow(power).sum())


law = Law(
    claim="Rows of the Walsh-Hadamard matrix are orthogonal: the transform keeps lengths up to the factor √L and undoes "
    "itself up to L; the fast transform is that matrix.",
    formula=r"HH^\top=L\,I,\qquad H_{ij}=(-1)^{|i\,\&\,j|}",
    assumes={"every sign": {"wrong": 1}, "a power of two": None},
    source="fino1976",
    predict=predict,
    measure=measure,
    cases=tuple({"size": size, "power": power} for size in (8, 128, 512) for power in (2, 3)),
    full=({"size": 4096, "power": 3},),
    tolerance=1e-9,  # 512 terms of rounding 1e-16, cubed; one sign is a thousandth of an entry of the largest
    quantity="sum of powers of the transform",
)
