"""What a parameter may be, by its name: one name has one meaning everywhere, so it has one domain too."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


COUNTS = _names(
    "samples classes side units nets draws batch_size parameter_count sites "
    "dimensions seen copies count groups neurons weight_layers rows columns"
)
"""Whole numbers of at least 1; every other whole number is at least 0."""
POSITIVE = _names(
    "scale smallest bound smoothing_width half coupling norm2 initial_weight prior_variance beta density_exponent radius box"
)
NOT_NEGATIVE = _names(
    "weight_variance bias_variance noise_variance ridge deviation deviations movement initial_loss mean_square tolerance "
    "variance lr weight_rate bias_rate noise_to_curvature largest_input target_norm time relative_excess scatter patience"
)
WITHIN = {
    "cosine": (-1.0, 1.0),
    "correlation": (-1.0, 1.0),
    "momentum": (0.0, 1.0),
    "noise_correlation": (0.0, 1.0),
    "share": (0.0, 1.0),
    "probability": (0.0, 1.0),
    "on_probability": (0.0, 1.0),
    "failure_probability": (0.0, 1.0),
    "fraction": (0.0, 1.0),
    "bulk_distance": (0.0, 1.0),
    "significance": (0.0, 1.0),
    "discard": (0.0, 1.0),
}
UNBOUNDED = frozenset({"time", "log_time", "first_log_time", "order", "exponent", "allowance", "patience", "theta"})
"""Those that may be infinite; so may ``theta``, the separation of a single point."""
UNKNOWN = frozenset({"alpha", "bulk_distance", "excess"})
"""Those that are not a number where a fit found nothing."""
WHOLE = frozenset({"tensor", "matrix", "labels", "targets", "y", "indices", "chosen", "bits", "counts", "gates"})
"""Tensors that stay whole numbers, or may be of any type."""
ABOVE_ZERO = frozenset({"initial_shape"})
SINGULAR_VALUES = frozenset({"left", "right", "singular_values", "product_values"})
ANY_VALUES = frozenset({"values", "tensor", "t", "frequency", "phase"})
"""Arrays that may be empty, or hold what is not finite."""


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def number(name: str, value: Any) -> float:
    """The number, within the domain of its name."""
    try:
        found = float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"expected a number for {name}, got {type(value).__name__}; pass one number") from error
    if math.isnan(found) and name in UNKNOWN:
        return found
    if math.isnan(found) or (math.isinf(found) and name not in UNBOUNDED):
        raise ValueError(f"expected a finite {name}, got {found}")
    low, high = WITHIN.get(name, (0.0 if name in NOT_NEGATIVE | POSITIVE else -math.inf, math.inf))
    if not low <= found <= high or (name in POSITIVE and found == 0.0):
        words = f"above {low:g}" if name in POSITIVE else f"of at least {low:g}"
        words += f" and at most {high:g}" if math.isfinite(high) else ""
        raise ValueError(f"expected {_a(name)} {words}, got {found}")
    return found


def whole(name: str, value: Any, *, least: int | None = None) -> int:
    """The whole number, of at least ``least``: 1 for what is counted, else 0."""
    low = (1 if name in COUNTS else 0) if least is None else least
    if isinstance(value, bool):
        raise TypeError(f"expected a whole number for {name}, got {value!r}; pass an int")
    try:
        found = operator.index(value)
    except TypeError as error:
        if not (isinstance(value, float) and value.is_integer()):
            raise TypeError(f"expected a whole number for {name}, got {value!r}; pass an int") from error
        found = int(value)
    if found < low:
        raise ValueError(f"expected {_a(name)} of at least {low}, got {found}")
    return found


def array(name: str, value: Any, *, tensor: bool, empty: bool = False) -> Any:
    """The array as a torch tensor or a NumPy array of floats, with values, all of them finite."""
    import numpy as np
    import torch

    try:
        found: Any = torch.as_tensor(value) if tensor else np.asarray(value)
    except Exception as error:
        kind = "tensor" if tensor else "array"
        raise TypeError(f"expected numbers as a {kind} for {name}, got {type(value).__name__}") from error
    if not tensor and found.dtype.kind not in "fiubc":
        raise TypeError(f"expected numbers as an array for {name}, got {type(value).__name__}")
    if name not in WHOLE:
        if tensor and not found.is_floating_point() and not found.is_complex():
            found = found.to(torch.float64)
        elif not tensor and found.dtype.kind in "iub":
            found = found.astype(np.float64)
    if name in ANY_VALUES:
        return found
    if 0 in found.shape and empty:
        return found
    if 0 in found.shape:
        raise ValueError(f"expected values for {name}, got an empty array of shape {tuple(found.shape)}")
    try:
        _sound(name, found)
    except RuntimeError:  # mapped over or traced: no value may decide there
        return found
    return found


def _sound(name: str, found: Any) -> None:
    """All values are finite, and of the sign that the name has."""
    finite = found.isfinite() if hasattr(found, "isfinite") else abs(found) < math.inf
    if not bool(finite.all()):
        raise ValueError(f"expected finite values for {name}, got NaN or infinity among them")
    if name in ABOVE_ZERO and not bool((found > 0).all()):
        raise ValueError(f"expected values above 0 for {name}, got {float(found.min())}")
    if name == "affinities" and bool((found < 0).any()):
        raise ValueError(f"expected values of at least 0 for {name}, got {float(found.min())}")
    if name == "log_tau2" and float(abs(found).max()) > 1e4:
        raise ValueError(f"expected logarithms of at most 10000 for {name}, got {float(abs(found).max()):.3g}")


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """Several numbers, none of them NaN; singular values are not negative."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"expected several numbers for {name}, got {value!r}; pass a tuple")
    found = tuple(float(one) for one in value)
    if any(math.isnan(one) or (one < 0 and name in SINGULAR_VALUES) for one in found):
        raise ValueError(
            f"expected numbers{' of at least 0' if name in SINGULAR_VALUES else ''} for {name}, got {found}"
        )
    return found


def wholes(name: str, value: Any) -> Sequence[int]:
    """Several whole numbers of at least 1."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"expected several whole numbers for {name}, got {value!r}; pass a tuple")
    return tuple(whole(name, one, least=1) for one in value)
