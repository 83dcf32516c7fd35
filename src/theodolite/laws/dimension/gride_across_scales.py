r"""On a manifold without noise Gride reads one dimension at every scale: $n_1=1$ to 16."""

import torch

from theodolite.construct.dimension import manifold, rotated
from theodolite.core.law import Law
from theodolite.core.reading import Estimate
from theodolite.measure.dimension import dimension_gride


def measure(near: int, *, generator: torch.Generator, noise_variance: float = 0.0, copies: float = 0.0) -> Estimate:
    x = rotated(manifold("torus", 1500, 2, generator=generator), 12, generator=generator)
    x = x + noise_variance**0.5 * torch.randn(x.shape, generator=generator, dtype=torch.float64)
    if copies:
        x = torch.cat([x[:750], x[:750]])
        x[750:, 0] += copies * torch.randn(750, generator=generator, dtype=torch.float64)
    return dimension_gride(x, near=near)


law = Law(
    claim="The ratio of the 2n-th to the n-th distance reads the same dimension at every n: a rise from small scales is a sign "
    "of near-duplicates, a fall a sign of noise.",
    formula=r"f(\mu)=\frac{d(\mu^d-1)^{n_2-n_1-1}}{B(n_2-n_1,n_1)\,\mu^{(n_2-1)d+1}}",
    assumes={
        "no noise": {"noise_variance": 5e-05},
        "no near-duplicates": {"copies": 1e-3},
        "neighbors nearer than the bends": None,
    },
    source="denti2022",
    predict=lambda **case: 2.0,
    measure=measure,
    cases=tuple({"near": n} for n in (1, 4, 16)),
    full=tuple({"near": n} for n in (2, 8)),
    # at n1 = 1 as in the law of the ratio: 4 % for three errors of ten draws and 3 % for the mean; at n1 = 16 chords of the
    # circles bend by 2 %
    tolerance=0.1,
    repeats=10,
    quantity="dimension by Gride",
    along="near",
)
