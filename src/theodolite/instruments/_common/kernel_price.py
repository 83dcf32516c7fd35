"""What the tangent kernel of a model that does not vectorize over samples costs, and how many of them that affords."""

import math

from theodolite.core.subject import Subject
from theodolite.evidence.work import PACE
from theodolite.instruments._common.data_visit import counter_for
from theodolite.instruments._common.samples import Samples
from theodolite.measure import rows
from theodolite.measure.kernels import empirical_ntk, ntk_plan


def kernel_samples(subject: Subject, few: Samples, outputs: int, *, fewest: int) -> float:
    """Samples that can be afforded one by one, by what the kernel of one costs; no end where budget or model set none."""
    model = subject.model
    if subject.allowance.is_endless or ntk_plan(model, few.x).method == "layers":
        return math.inf
    own = [p for p in model.parameters() if p.requires_grad]
    with counter_for(subject) as counter:
        empirical_ntk(model, rows(few.x, slice(0, 1)), outputs="full")
    one = float(counter.seconds)
    pair = 2 / PACE[counter.device] * outputs**2 * sum(p.numel() for p in own)
    left = subject.allowance.seconds / (1 if subject.origin is None else 2)
    return max(fewest, int((math.sqrt(one**2 + 4 * pair * left) - one) / (2 * pair)))  # n samples: n one + n^2 pair
