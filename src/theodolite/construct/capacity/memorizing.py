"""Networks that fit given points exactly, written down and not trained.

`memorize` returns an ordinary module of float64. Targets that are whole numbers are classes; others are values to hit.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.construct.capacity._memorize_layers import Hidden, arrangement, hidden_layers, linear
from theodolite.construct.capacity._memorize_slots import Floats
from theodolite.core.checks import InputError, one_of
from theodolite.io.files import write_atomically
from theodolite.theory.capacity import construction_capacity, theorem_widths
from theodolite.theory.capacity.memory_bounds import PIECES, MemorizingActivation

WRONG = 1e-3
ROWS = 8192  # points of a forward pass


@dataclass(frozen=True)
class Report:
    """What was built and how well it fits: ``error`` is the largest over all points (of one-hot answers for classes)."""

    activation: str
    widths: tuple[int, ...]
    points: int
    capacity: int
    merged: int
    error: float
    labels_right: float | None  # share of the points, for classes
    largest_weight: float
    blocks: tuple[int, ...]  # points fitted along each projection
    projections_tried: int
    seconds: float
    classes: tuple[int, ...] = ()


class Memorized(nn.Sequential):
    """Linear layers and activations; inputs of any dtype are turned into that of the weights. ``report`` says how it fits."""

    report: Report

    def forward(self, x: Tensor) -> Tensor:
        """The answers; column c of a classifier's belongs to ``report.classes[c]``."""
        answers = x.to(next(self.parameters()).dtype)
        for module in self:
            answers = module(answers)
        return answers


def memorize(
    x: Any,
    y: Any,
    *,
    activation: MemorizingActivation = "relu",
    widths: Sequence[int] | None = None,
    seed: int = 0,
    tries: int = 6,
) -> Memorized:
    """A network whose answers at the rows of ``x`` are ``y``: every weight is written down, nothing is trained.

    Real targets (n,) or (n, outputs) get two hidden layers; whole numbers are classes and get three and one-hot answers.
    Without ``widths`` they are the theorem's (`theory.capacity.theorem_widths`). Rows must differ, but for
    repetitions with the same target. ``tries`` random projections are compared for each block of units.
    Source: yun2019, Theorem 3.1 and Proposition 3.2.
    Differs from the source: neighboring groups share a boundary, units are matched to points so that weights stay small, and
    points that lie too near to others along one projection are fitted along a second where there is room.

    >>> net = memorize(np.array([[0.0], [1.0], [2.0]]), np.array([0.5, -1.0, 1.0]))
    >>> net(torch.tensor([[0.0], [1.0], [2.0]])).flatten().round(decimals=9).tolist()
    [0.5, -1.0, 1.0]
    """
    start = time.perf_counter()
    one_of(PIECES, activation=activation)
    inputs, shape = _inputs(x)
    targets, classes = _targets(y, len(inputs))
    rows = _distinct(inputs, targets)
    points = inputs[rows]
    answers, wanted, scale = _wanted(targets[rows], classes)
    chosen = _widths(widths, len(points), answers.shape[1], activation, classes)
    groups, size = _used(chosen, len(points), answers.shape[1], activation)
    generator = np.random.default_rng(seed)
    blocks = arrangement(points, groups=groups, size=size, tries=tries, generator=generator)
    made = hidden_layers(blocks, torch.from_numpy(points), answers, activation, chosen[:2])
    modules = _modules(made, activation, chosen, scale, len(classes))
    net = Memorized(*([nn.Flatten()] if len(shape) > 1 else []), *modules)
    error, right = fit_error(net, torch.from_numpy(points).reshape(-1, *shape), wanted)
    if error > WRONG * max(1e-300, float(wanted.abs().max())) or (classes and right < 1):
        raise InputError(
            f"expected points that double precision can tell apart, got a largest error of {error:.3g}: the nearest two are "
            f"{_nearest(points):.3g} apart, with points as large as {np.abs(points).max():.3g}; merge them or spread them out"
        )
    net.report = Report(
        activation,
        chosen,
        len(points),
        construction_capacity(*chosen[:2], activation=activation, outputs=answers.shape[1]),
        len(inputs) - len(points),
        error,
        right if classes else None,
        float(made.layers[1].weight.detach().abs().max()),
        tuple(int((block.slots.point >= 0).sum()) for block in made.blocks),
        tries * len(blocks),
        time.perf_counter() - start,
        classes,
    )
    return net


def _nearest(points: Floats) -> float:
    """The least distance between two rows."""
    from scipy.spatial import cKDTree

    return float(cKDTree(points).query(points, k=2)[0][:, 1].min()) if len(points) > 1 else 0.0


def fit_error(net: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """The largest error over all rows, and the share of rows whose largest answer is in the right column."""
    worst, right = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(x), ROWS):
            answers, wanted = net(x[start : start + ROWS]).double(), y[start : start + ROWS]
            worst = max(worst, float((answers - wanted).abs().max()))
            right += int((answers.argmax(1) == wanted.argmax(1)).sum())
    return worst, right / len(x)


def in_float32(net: Memorized, x: Any, y: Any) -> Memorized:
    """The same network in float32, its report giving the error at these points in that precision."""
    inputs, shape = _inputs(x)
    targets, classes = _targets(y, len(inputs))
    _, wanted, _ = _wanted(targets, classes)
    rounded = Memorized(*[_copy(module) for module in net]).float()
    error, right = fit_error(rounded, torch.from_numpy(inputs).reshape(-1, *shape), wanted)
    rounded.report = replace(net.report, error=error, labels_right=right if classes else None)
    return rounded


def save(net: Memorized, path: str | Path) -> Path:
    """Write the network as safetensors, whole or not at all; widths, activation and report stand in its metadata."""
    import safetensors.torch

    facts = {
        "widths": json.dumps(net.report.widths),
        "activation": net.report.activation,
        "flatten": json.dumps(isinstance(net[0], nn.Flatten)),
        "report": json.dumps(asdict(net.report)),
    }
    tensors = {name: tensor.contiguous() for name, tensor in net.state_dict().items()}
    return write_atomically(path, safetensors.torch.save(tensors, metadata=facts))


def load(path: str | Path) -> Memorized:
    """The network that `save` wrote."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            facts = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (OSError, SafetensorError) as error:
        raise InputError(f"expected a network written by theodolite memorize, got {path}: {error}; check it") from error
    if "report" not in facts:
        raise InputError(f"expected a network written by theodolite memorize, got {path} without its report; check it")
    report = json.loads(facts["report"])
    offset = int(json.loads(facts["flatten"]))
    modules: list[nn.Module] = [nn.Flatten()] if offset else []
    for index in range(len(report["widths"]) + 1):
        name = str(offset + 2 * index)
        layer = linear(state[f"{name}.weight"], state[f"{name}.bias"]).to(state[f"{name}.weight"].dtype)
        modules += [layer, _activation(report["activation"])] if index < len(report["widths"]) else [layer]
    net = Memorized(*modules)
    values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in report.items()}
    net.report = Report(**values)
    return net


def _copy(module: nn.Module) -> nn.Module:
    return linear(module.weight.detach(), module.bias.detach()) if isinstance(module, nn.Linear) else module


def _activation(name: str) -> nn.Module:
    return nn.ReLU() if name == "relu" else nn.Hardtanh()


def _inputs(x: Any) -> tuple[Floats, tuple[int, ...]]:
    array = x.detach().cpu().to(torch.float64).numpy() if isinstance(x, Tensor) else np.asarray(x)
    if array.dtype.kind not in "fiub" or array.ndim < 1 or array.shape[0] < 1 or array.size == 0:
        raise InputError(f"expected rows of numbers, got {array.dtype} of shape {array.shape}; pass an array (n, d)")
    if array.ndim == 1:
        raise InputError(f"expected points as rows, got shape {array.shape}; pass x[:, None] for points on a line")
    flat = np.ascontiguousarray(array.reshape(len(array), -1), dtype=np.float64)
    if not np.isfinite(flat).all():
        row = int(np.flatnonzero(~np.isfinite(flat).all(1))[0])
        raise InputError(f"expected finite inputs, got a value that is not in row {row}; remove or correct it")
    return flat, array.shape[1:]


def _targets(y: Any, count: int) -> tuple[Floats, tuple[int, ...]]:
    """Targets (n, outputs), or class numbers (n, 1) with the classes."""
    array = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or len(array) != count or array.size == 0:
        raise InputError(
            f"expected one target a row, (n,) or (n, outputs) with n = {count}, got {array.dtype} {array.shape}; match x"
        )
    values = array.reshape(count, -1).astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(1))[0])
        raise InputError(f"expected finite targets, got a value that is not in row {row}; remove or correct it")
    if array.dtype.kind == "f" or array.ndim == 2:
        return values, ()
    return values, tuple(int(label) for label in np.unique(array))


def _distinct(x: Floats, y: Floats) -> np.ndarray:
    """One row of each set of equal rows; refused where their targets differ."""
    keys = np.ascontiguousarray(x + 0.0).view(np.dtype((np.void, x.dtype.itemsize * x.shape[1]))).reshape(-1)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    kept = first[inverse]
    clash = np.flatnonzero((y != y[kept]).any(1))
    if len(clash):
        row = int(clash[0])
        raise InputError(
            f"expected one target for equal rows, got rows {int(kept[row])} and {row} that are equal but have targets "
            f"{np.round(y[kept[row]], 6).tolist()} and {np.round(y[row], 6).tolist()}; remove one or make them agree"
        )
    return np.sort(first)


def _wanted(y: Floats, classes: tuple[int, ...]) -> tuple[Floats, Tensor, tuple[Floats, Floats]]:
    """Values within [-1, 1] for the hidden layers, the answers of the whole network, and (middle, half range)."""
    if classes:
        index = np.searchsorted(classes, y[:, 0])
        levels = np.linspace(-1.0, 1.0, len(classes)) if len(classes) > 1 else np.zeros(1)
        one_hot = torch.nn.functional.one_hot(torch.from_numpy(index), len(classes)).double()
        return levels[index][:, None], one_hot, (np.zeros(1), np.ones(1))
    low, high = y.min(0), y.max(0)
    outside = (low < -1) | (high > 1)
    middle = np.where(outside, 0.5 * (low + high), 0.0)
    half = np.where(outside, np.maximum(0.5 * (high - low), np.finfo(float).tiny), 1.0)
    return np.clip((y - middle) / half, -1.0, 1.0), torch.from_numpy(y), (middle, half)


def _widths(
    given: Sequence[int] | None, points: int, outputs: int, activation: MemorizingActivation, classes: tuple[int, ...]
) -> tuple[int, ...]:
    number = len(classes) if classes else None
    advised = theorem_widths(points, activation=activation, outputs=outputs, classes=number)
    if given is None:
        return advised
    chosen = tuple(int(width) for width in given)
    if len(chosen) != len(advised) or min(chosen, default=0) < 1:
        raise InputError(f"expected {len(advised)} hidden widths, got {chosen}; {advised} would do")
    room = construction_capacity(*chosen[:2], activation=activation, outputs=outputs)
    if room < points or (number and chosen[2] < advised[2]):
        raise InputError(
            f"expected widths that can hold {points} points, got {chosen}, certain to hold {room}; {advised} would do"
        )
    return chosen


def _used(widths: Sequence[int], points: int, outputs: int, activation: MemorizingActivation) -> tuple[int, int]:
    """How many groups and steps are used of what the widths allow: at most some four times what is needed."""
    groups, size = widths[0], 2 * (widths[1] // ((4 if activation == "relu" else 2) * outputs))
    excess = (groups * size / (4.0 * points + 16)) ** 0.5
    if excess > 1:
        size = max(2, 2 * int(size / excess / 2))
        groups = min(groups, max(1, -(-(4 * points + 16) // size)))
    return groups, size


def _modules(
    made: Hidden, activation: MemorizingActivation, widths: tuple[int, ...], scale: tuple[Floats, Floats], classes: int
) -> list[nn.Module]:
    first, second, last = made.layers
    middle, half = (torch.from_numpy(part) for part in scale)
    body: list[nn.Module] = [first, _activation(activation), second, _activation(activation)]
    if not classes:
        return [*body, linear(half[:, None] * last.weight.detach(), half * last.bias.detach() + middle)]
    levels = torch.linspace(-1.0, 1.0, classes, dtype=torch.float64) if classes > 1 else torch.zeros(1).double()
    slope = 2.0 * max(classes - 1, 1)  # 4 over the distance of neighboring levels
    shifts, signs = (
        ([3.0, 1.0, -1.0, -3.0], [0.5, -0.5, -0.5, 0.5]) if activation == "relu" else ([2.0, -2.0], [0.5, -0.5])
    )
    each = len(shifts)
    weight, bias = torch.zeros(widths[2], widths[1]).double(), torch.zeros(widths[2]).double()
    weight[: each * classes] = slope * last.weight.detach()
    offsets = torch.tensor(shifts).double() - slope * levels[:, None]  # (classes, each)
    bias[: each * classes] = offsets.reshape(-1) + slope * last.bias.detach()
    read = torch.zeros(classes, widths[2]).double()
    for c in range(classes):
        read[c, c * each : (c + 1) * each] = torch.tensor(signs).double()
    return [*body, linear(weight, bias), _activation(activation), linear(read, torch.zeros(classes).double())]
