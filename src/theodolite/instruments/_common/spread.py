"""The variance of every weight and bias of a subject, from before training where that is known."""

import math
from typing import Any

from theodolite.core.lazy_torch import kind_of
from theodolite.io.weight_parts import InHand, WeightPart
from theodolite.measure.propagation.weight_spread import fan_in, mean_square, sums_inputs


def _find(held: InHand) -> tuple[Any, dict[str, Any]]:
    """Variance with its error: of weights that sum their inputs times the fan-in, of vectors as it is; of others none."""
    tensor = held.values if held.first is None else held.first
    assert tensor is not None
    if sums_inputs(held.name, tensor, held.owner):
        scale = fan_in(tuple(tensor.shape), held.owner, outputs=_outputs(held))
    elif tensor.ndim == 1 and "float" in kind_of(tensor.dtype):
        scale = 1
    else:
        return None, {}
    found = mean_square(tensor, scale)
    if not math.isfinite(found.value):  # squares that are not numbers of float64
        return None, {}
    return {"axes": tensor.ndim, "variance": found.value, "stderr": found.stderr}, {}


def _outputs(held: InHand) -> int | None:
    head, _, tail = held.name.rpartition("weight")
    bias = held.shapes.get(f"{head}bias{tail}", ())
    return bias[0] if len(bias) == 1 else None


of_weight = WeightPart(_find, version=2, uses_start=True)
