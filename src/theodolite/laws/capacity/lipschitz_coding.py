r"""n bits describe a function of slope at most 1 with f(0) = 0 on [0, 1] to within $\frac{1}{n+1}$, and no code does better."""

import torch

from theodolite.core.law import Law
from theodolite.measure.capacity import lipschitz_code, zigzags
from theodolite.theory.capacity import lipschitz_entropy_number


def measure(bits: int, side: str, *, slope: float = 1.0, lifted: float = 0.0) -> float:
    # more functions than codes, this far apart: two share a code, and half their distance is lost
    if side == "packing":
        corners = zigzags(bits + 1, steepness=slope)
        gaps = torch.cdist(corners, corners, p=torch.inf)
        return 0.5 * float(gaps[~torch.eye(len(corners), dtype=torch.bool)].min())
    steps = 12  # every zigzag of twelve steps, on a grid that both they and the code fit on
    functions = zigzags(steps, steepness=slope, refine=bits + 1) + lifted
    return float((functions - lipschitz_code(functions, bits=bits)).abs().max())


law = Law(
    claim="A grid of n + 1 steps and one bit each after the first, up or down, follow every such function within a step; "
    "and 2^(n+1) zigzags lie two steps apart, so n bits cannot do better: the entropy number is exact.",
    formula=r"\epsilon_n=\frac{1}{n+1}",
    assumes={"slopes at most 1": {"slope": 1.0 + 3.6e-10}, "f(0) = 0": {"lifted": 3.6e-10}},
    source="kolmogorov1959",
    predict=lambda bits, side: lipschitz_entropy_number(bits),
    measure=measure,
    cases=tuple({"bits": bits, "side": side} for bits in (1, 3, 7) for side in ("code", "packing")),
    full=({"bits": 5, "side": "code"}, {"bits": 9, "side": "packing"}),
    tolerance=1e-9,
    repeats=1,
    quantity="largest error that n bits leave",
)
