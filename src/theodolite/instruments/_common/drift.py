"""How far a tangent kernel moved, in words: read once by an instrument, again and again by a watch."""

from torch import Tensor

from theodolite.core.reading import Reading
from theodolite.measure.kernels import kernel_drift


def drift_reading(mean: Tensor, before: Tensor) -> Reading:
    """By how much a kernel moved, and whether that is lazy."""
    drift = kernel_drift(before, mean)
    grown = float(mean.trace() / before.trace())
    turned = kernel_drift(before / before.norm(), mean / mean.norm()) if float(mean.norm()) > 0 else 1.0
    if float(mean.norm()) == 0:
        word = "It is zero: the network is dead. Start again with a smaller learning rate."
    elif drift < 0.1:
        word = (
            "Lazy: the network trains like a linear model; a kernel method would do as well. To learn features try a "
            "smaller output scale, a larger learning rate or less width."
        )
    elif turned < 0.3:
        word = "It has grown more than it has changed direction: the features changed little."
    else:
        word = "It has changed direction: the network is learning features."
    return Reading(
        quantity="drift of the tangent kernel since the start",
        where="relative, Frobenius",
        measured=drift,
        meaning=f"Its size changed by a factor {grown:.3g}, its shape by {turned:.2g} of its norm. {word} In the NTK "
        "parametrization the drift falls as 1 over the width.",
    )
