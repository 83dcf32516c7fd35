r"""All parities of b bits have the kernel $\prod_i(1+b_ib'_i)$, and their values over all patterns are the Hadamard rows."""

import numpy as np
import torch

from theodolite.construct.bias import bit_patterns, products_of_bits
from theodolite.core.law import Law
from theodolite.core.reading import Band


def measure(bits: int, asked: str, *, generator: torch.Generator, highest: int = 99) -> float:
    """The largest difference: of the two kernels at random bits, or of the two sets of rows."""
    patterns = bit_patterns(bits)
    # how many bits each multiplies
    order = (products_of_bits(torch.full((1, bits), 2.0).double())[0].log2().round()).long()
    features = products_of_bits(patterns)[:, order <= highest]
    if asked == "kernel":
        some = torch.randint(2**bits, (2, 40), generator=generator)
        product = (1 + patterns[some[0]][:, None] * patterns[some[1]][None]).prod(2)
        return float((features[some[0]] @ features[some[1]].T - product).abs().max())
    from scipy.linalg import hadamard

    rows = sorted(hadamard(2**bits).tolist())
    mine = sorted(np.pad(features.numpy(), ((0, 0), (0, 2**bits - features.shape[1]))).tolist())
    return float(np.abs(np.subtract(rows, mine)).max())


law = Law(
    claim="The rows of a Hadamard matrix are what all parities of all bit patterns look like; a product of b factors gives "
    "their inner products without the 2^b features.",
    formula=r"\phi(b)\cdot\phi(b')=\prod_{i\le n}(1+b_ib'_i),\qquad\{\phi(b):b\in\{\pm1\}^n\}=\mathrm{rows}(H_{2^n})",
    assumes={"parities of every order": {"highest": 2}},
    source="warmuth2005",
    predict=lambda **case: Band.around(0.0, abs=1e-9),  # an identity between whole numbers of at most 2^bits
    measure=measure,
    cases=tuple({"bits": b, "asked": a} for a in ("kernel", "rows") for b in (3, 4, 6)),
    repeats=2,
    quantity="largest difference",
)
