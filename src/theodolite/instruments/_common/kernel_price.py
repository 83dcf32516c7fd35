"""What the tangent kernel of a model that does not vectorize over samples takes here, and how many of them that affords."""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from theodolite.core.subject import Subject
from theodolite.instruments._common.samples import Samples
from theodolite.measure import rows
from theodolite.measure.kernels import empirical_ntk, ntk_plan

ROWS, ENTRIES = 256, 8192
"""Of the product of matrices by which the pace of products is told."""


def kernel_samples(subject: Subject, few: Samples, outputs: int, *, fewest: int) -> float:
    """Samples that can be afforded one by one, by what the kernel of one takes; no end where time or model set none."""
    model = subject.model
    if subject.allowance.seconds == math.inf or ntk_plan(model, few.x).method == "layers":
        return math.inf
    own = [p for p in model.parameters() if p.requires_grad]
    one = _again(lambda: empirical_ntk(model, rows(few.x, slice(0, 1)), outputs="full"))
    some = torch.ones(ROWS, ENTRIES, device=own[0].device)
    product = _again(lambda: some @ some.T) / (ROWS * ROWS * ENTRIES)  # seconds of one product in a sum of them
    pair = product * outputs**2 * sum(p.numel() for p in own)
    left = subject.allowance.left() / (1 if subject.origin is None else 2)
    return max(fewest, int((math.sqrt(one**2 + 4 * pair * left) - one) / (2 * pair)))  # n samples: n one + n^2 pair


def _again(work: Callable[[], Tensor]) -> float:
    """Seconds that it takes the second time: what is done once is no part of its pace."""
    work()
    began = time.perf_counter()
    float(work().flatten()[0])  # a GPU is waited for
    return time.perf_counter() - began
