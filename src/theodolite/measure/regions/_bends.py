"""The bends of piecewise linear activations, and maxima over windows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from theodolite.core.checks import InputError

Pieces = tuple[tuple[float, ...], tuple[Any, ...], tuple[float, ...]]
BENT_MODULES: dict[type[nn.Module], str] = {
    nn.ReLU: "relu",
    nn.ReLU6: "relu6",
    nn.LeakyReLU: "leaky_relu",
    nn.PReLU: "prelu",
    nn.RReLU: "rrelu",
    nn.Hardtanh: "hardtanh",
    nn.Hardsigmoid: "hardsigmoid",
    nn.Softshrink: "softshrink",
}
SPELLINGS = {
    "relu_": "relu",
    "leaky_relu_": "leaky_relu",
    "hardtanh_": "hardtanh",
    "abs_": "abs",
    "clamp_": "clamp",
    "clip": "clamp",
    "absolute": "abs",
}
BENT = (*BENT_MODULES.values(), "abs", "clamp")


@dataclass(frozen=True)
class Bend:
    """An elementwise function: on the piece between knots k - 1 and k it is ``slopes[k] z + intercepts[k]``.

    ``knots`` is (K,) and increasing; ``slopes`` (K + 1, ...) may differ from unit to unit, ``intercepts`` (K + 1,) not.
    """

    knots: Tensor
    slopes: Tensor
    intercepts: Tensor

    def piece(self, z: Tensor) -> Tensor:
        """The number of the piece in which each value lies; a knot belongs to the piece below it."""
        if len(self.knots) == 1:
            return z > self.knots
        return torch.stack([z > knot for knot in self.knots]).sum(0)

    def applied(self, signal: Tensor, piece: Tensor, *, spent: bool = False) -> Tensor:
        """The affine maps behind the bend, (C, rows, ...), of known pieces (C, ...); a ``spent`` signal is overwritten."""
        if self.slopes.ndim > 1:
            slope = self.slopes.expand(len(self.slopes), *piece.shape[1:]).gather(0, piece.long())
        elif self.slopes.tolist() == [0.0, 1.0]:
            slope = piece.to(signal.dtype)
        else:
            slope = self.slopes[piece.long()]
        out = signal.mul_(slope.unsqueeze(1)) if spent else signal * slope.unsqueeze(1)
        if bool(self.intercepts.any()):
            out[:, 0] += self.intercepts[piece.long()]
        return out


@dataclass(frozen=True)
class Maximum:
    """The largest entry of each window; ``windows`` (n, m) numbers entries of the flat signal, -1 where there is none."""

    windows: Tensor
    shape: tuple[int, ...]

    def candidates(self, signal: Tensor) -> Tensor:
        """The affine maps of the members of each window, (C, rows, n, m); a missing one lies far below all others."""
        flat, missing = signal.flatten(2), self.windows < 0
        found = flat.index_select(2, self.windows.clamp(min=0).flatten())
        found = found.reshape(*flat.shape[:2], *self.windows.shape)
        if bool(missing.any()):
            found = found.masked_fill(missing, 0.0)
            found[:, 0][:, missing] = -1e30
        return found

    def applied(self, signal: Tensor, values: Tensor) -> Tensor:
        """The affine maps of the largest members, (C, rows, ...), where the largest are those by these values (C, ...)."""
        best = self.candidates(values.unsqueeze(1))[:, 0].argmax(-1)  # (C, n)
        entry = self.windows.expand(len(best), -1, -1).gather(2, best.unsqueeze(2)).squeeze(2)
        flat = signal.flatten(2)
        chosen = flat.gather(2, entry.unsqueeze(1).expand(-1, flat.shape[1], -1))
        return chosen.reshape(*flat.shape[:2], *self.shape)


def bend(name: str, arguments: Sequence[Any], options: Mapping[str, Any], *, like: Tensor) -> Bend:
    """The bends of a torch function of this name, of one signal and these further arguments."""
    knots, slopes, intercepts = _pieces(name, list(arguments), dict(options))
    if any(not isinstance(slope, Tensor) and not math.isfinite(slope) for slope in (*slopes, *knots)):
        raise InputError(f"expected finite bends, got {name!r} with {arguments or options}")
    width = max((slope.numel() for slope in slopes if isinstance(slope, Tensor)), default=0)
    if width:
        trailing = (1,) * (like.ndim - 2)
        columns = [
            s.reshape(-1, *trailing) if isinstance(s, Tensor) else torch.full((width, *trailing), s, dtype=like.dtype)
            for s in slopes
        ]
        table = torch.stack([column.to(like) for column in columns])
    else:
        table = torch.tensor(slopes, dtype=like.dtype, device=like.device)
    ends, shifts = (torch.tensor(values, dtype=like.dtype, device=like.device) for values in (knots, intercepts))
    return Bend(ends, table, shifts)


def bend_of(module: nn.Module, *, like: Tensor) -> Bend:
    """The bends of an activation module."""
    name = BENT_MODULES[type(module)]
    own: dict[str, Any] = {}
    if isinstance(module, nn.LeakyReLU):
        own = {"negative_slope": module.negative_slope}
    elif isinstance(module, nn.PReLU):
        own = {"weight": module.weight}
    elif isinstance(module, nn.RReLU):
        own = {"lower": module.lower, "upper": module.upper}
    elif isinstance(module, nn.Hardtanh):  # ReLU6 is one
        own = {"min_val": module.min_val, "max_val": module.max_val}
        name = "hardtanh"
    elif isinstance(module, nn.Softshrink):
        own = {"lambd": module.lambd}
    return bend(name, (), own, like=like)


def _pieces(name: str, rest: list[Any], options: dict[str, Any]) -> Pieces:
    """Knots, slopes and intercepts."""

    def option(key: str, place: int, default: Any) -> Any:
        return options.get(key, rest[place] if len(rest) > place else default)

    if name == "relu":
        return (0.0,), (0.0, 1.0), (0.0, 0.0)
    if name == "leaky_relu":
        return (0.0,), (float(option("negative_slope", 0, 0.01)), 1.0), (0.0, 0.0)
    if name == "rrelu":
        return (0.0,), (0.5 * (option("lower", 0, 1 / 8) + option("upper", 1, 1 / 3)), 1.0), (0.0, 0.0)
    if name == "prelu":
        return (0.0,), (option("weight", 0, None).detach(), 1.0), (0.0, 0.0)
    if name == "abs":
        return (0.0,), (-1.0, 1.0), (0.0, 0.0)
    if name == "hardsigmoid":
        return (-3.0, 3.0), (0.0, 1 / 6, 0.0), (0.0, 0.5, 1.0)
    if name == "softshrink":
        width = float(option("lambd", 0, 0.5))
        return (-width, width), (1.0, 0.0, 1.0), (width, 0.0, -width)
    low, high = {
        "relu6": (0.0, 6.0),
        "hardtanh": (option("min_val", 0, -1.0), option("max_val", 1, 1.0)),
        "clamp": (option("min", 0, None), option("max", 1, None)),
    }[name]
    knots = tuple(float(end) for end in (low, high) if end is not None)
    slopes = (0.0,) * (low is not None) + (1.0,) + (0.0,) * (high is not None)
    ends = (*((float(low),) if low is not None else ()), 0.0, *((float(high),) if high is not None else ()))
    return knots, slopes, ends


def pool_windows(shape: tuple[int, ...], options: Mapping[str, Any]) -> Tensor:
    """Which entries of a flat signal (channels, then one or two axes) each window of a max-pooling layer holds: (n, m)."""
    if options.get("ceil_mode"):
        raise InputError("expected max-pooling without ceil_mode, got it; pad the signal instead")
    axes = len(shape) - 1
    numbers = torch.arange(1, math.prod(shape) + 1, dtype=torch.float64).reshape(shape)
    if axes == 1:
        numbers = numbers.unsqueeze(1)

    def pair(value: Any, filler: int) -> tuple[int, int]:
        own = tuple(value) if isinstance(value, tuple | list) else (value,) * axes
        return (filler, int(own[0])) if axes == 1 else (int(own[0]), int(own[1]))

    kernel = pair(options["kernel_size"], 1)
    stride = pair(options.get("stride") or options["kernel_size"], 1)
    found = F.unfold(
        numbers.unsqueeze(1),
        kernel,
        dilation=pair(options.get("dilation", 1), 1),
        padding=pair(options.get("padding", 0), 0),
        stride=stride,
    )
    return (found.transpose(1, 2).reshape(-1, kernel[0] * kernel[1]) - 1).long()
