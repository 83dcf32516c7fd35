"""The variance of every weight and bias of a subject, from before training where that is known."""

from __future__ import annotations

from typing import Any

from theodolite.instruments._common.weights import InHand, WeightPart
from theodolite.measure.propagation import fan_in, mean_square, sums_inputs


def _find(held: InHand) -> tuple[Any, dict[str, Any]]:
    """Variance with its error: of weights that sum their inputs times the fan-in, of vectors as it is; of others none."""
    tensor = held.tensor if held.start is None else held.start
    assert tensor is not None
    if sums_inputs(held.name, tensor, held.owner):
        scale = fan_in(tuple(tensor.shape), held.owner)
    elif tensor.ndim == 1 and tensor.is_floating_point():
        scale = 1
    else:
        return None, {}
    found = mean_square(tensor, scale)
    return {"axes": tensor.ndim, "variance": found.value, "stderr": found.stderr}, {}


of_weight = WeightPart(_find, version=1, uses_start=True)
