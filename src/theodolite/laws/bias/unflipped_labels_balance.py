r"""Without flipped signs the labels of all rows sum to zero, and guessing so attains the published $1-k/(d-1)$."""

import torch
from torch import Tensor

from theodolite.construct.bias import sparse_problem
from theodolite.construct.bias.hadamard_data import HadamardKind
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.bias import unflipped_lower_bound

SIDE, ORDERS = 32, 3000


def measure(k: int, *, generator: torch.Generator, kind: HadamardKind = "permuted") -> Tensor:
    """Seen labels are known; an unseen one is guessed by minus the sum of the seen ones over their number."""
    y = sparse_problem(kind, SIDE, k, generator=generator).y
    if kind == "flipped":
        y = 2.0 * torch.randint(0, 2, (ORDERS, SIDE), generator=generator).double() - 1
    else:
        y = y[torch.rand(ORDERS, SIDE, generator=generator).argsort(1)]
    guess = -y[:, :k].sum(1, keepdim=True) / (SIDE - k)
    return (guess - y[:, k:]).square().sum(1) / SIDE


law = Law(
    claim="On Hadamard rows whose labels are not flipped a learner that knows labels to be balanced loses 1 - k/(d-1) in "
    "mean, a little less than 1 - k/d: the published bound is sharp.",
    formula=r"E\,\frac{1}{d}\sum_{i>k}\Big(y_i+\tfrac{1}{d-k}\sum_{j\le k}y_j\Big)^2=1-\frac{k}{d-1}",
    assumes={"labels not flipped": {"kind": "flipped"}},
    source="warmuth2021",
    # The loss spreads between draws by about 1.5 k/(d(d-k)); three errors of the mean of 3000 draws, doubled.
    predict=lambda k: Band.around(unflipped_lower_bound(k, SIDE), abs=6 * 1.5 * k / (SIDE * (SIDE - k)) / ORDERS**0.5),
    measure=measure,
    cases=tuple({"k": k} for k in (4, 8, 16, 24)),
    repeats=1,
    quantity="mean loss over all rows",
    along="k",
)
