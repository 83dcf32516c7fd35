r"""Where the mean loss is flat, SGD spends its time as one over the noise, and meets the harmonic mean of the noise."""

import math

import torch

from theodolite.core.law import Law

CHAINS, STEPS, SETTLE, LR = 2000, 1300, 300, 0.2


def measure(
    unevenness: float, *, generator: torch.Generator, slope: float = 0.0, place: str = "present"
) -> list[float]:
    """tr C along SGD on two samples whose gradients cancel in the mean, averaged over time, for each of many runs."""
    where = 2 * math.pi * torch.rand(CHAINS, generator=generator, dtype=torch.float64)
    total = torch.zeros_like(where)
    for step in range(STEPS):
        if step >= SETTLE:
            total += _noise(where, unevenness)
        drawn = 2.0 * torch.randint(2, where.shape, generator=generator) - 1  # one of the two samples
        at = where
        if place == "midway":  # a gradient taken half-way through the step, which sees where it is going
            at = where - 0.5 * LR * drawn * _noise(where, unevenness).sqrt()
        mean_gradient = slope * LR * torch.sin(where)  # of the loss -slope lr cos: as strong as the noise
        where = where - LR * (drawn * _noise(at, unevenness).sqrt() + mean_gradient)
    return (total / (STEPS - SETTLE)).tolist()


def _noise(where: torch.Tensor, unevenness: float) -> torch.Tensor:
    return 1 + unevenness * torch.cos(where)


law = Law(
    claim="On a flat floor SGD keeps away from noise: its density is one over the variance C of its gradients, so that the C it "
    "meets is the harmonic and not the arithmetic mean over the floor. It does not settle where C is least.",
    formula=r"p\propto\frac1C,\qquad\langle C\rangle=\Big(\mathrm{mean}\,\frac1C\Big)^{-1}",
    assumes={
        "a mean loss that is flat along the floor": {"slope": 0.075},
        "gradients taken at the present place": {"place": "midway"},
        "noise of one size in all directions of the floor": None,
    },
    source="wei2019",
    predict=lambda unevenness: math.sqrt(1 - unevenness**2),  # the harmonic mean of 1 + a cos over a circle
    measure=measure,
    cases=tuple({"unevenness": a} for a in (0.5, 0.7, 0.85)),
    full=({"unevenness": 0.3},),
    tolerance=0.04,  # steps of 0.2 err by their square, 4 % over 2 pi; chains leave 0.7 %
    repeats=1,
    quantity="mean variance of the gradient along the run",
    along="unevenness",
    erratum="That SGD minimizes tr C says too much: it visits every place of the floor, the quiet ones longer.",
    refuted=lambda unevenness: 1 - unevenness,
)
