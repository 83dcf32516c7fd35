"""How often does the network bend on the way from one input to another, and is it as in a random network?

Every breakpoint of a piecewise linear network on segments between inputs of the same class, of different classes, and
between random inputs of the same covariance, counted exactly. For a plain ReLU network the band is what random weights of
the same variances give on the same segments. A trained network that bends less between inputs of one class than between
classes has put its bends where it needs them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, CellPicture, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._common.samples import spread_samples
from theodolite.measure.regions import PlaneRegions, regions_in_polygon, regions_on_lines, slice_through
from theodolite.measure.regions._bends import Bend, Maximum
from theodolite.measure.regions._piecewise import PiecewiseProgram, affine_maps, piecewise_program
from theodolite.theory.regions import segment_breakpoints

PAIRS, SAMPLES, UNITS, WORK = 30, 400, 20_000, 60_000
DRAWN = 20_000  # cells of a picture, at most
Segments = tuple[Tensor, Tensor]


def read(subject: Subject) -> Iterator[Reading]:
    """Breakpoints along each kind of segment, and the cells of a triangle of three inputs."""
    samples = spread_samples(subject, SAMPLES)
    if (
        samples is None
        or not isinstance(samples.x, Tensor)
        or not samples.x.is_floating_point()
        or subject.model is None
    ):
        return
    x = samples.x.detach().double()
    program = piecewise_program(subject.model, tuple(x.shape[1:]))
    units = program.widest * sum(isinstance(step.does, Bend | Maximum) for step in program.steps)
    if not units:
        return
    if units > UNITS:
        raise ValueError(
            f"expected at most {UNITS:,} units, got up to {units:,}; call regions_on_line on segments you choose"
        )
    pairs = max(3, min(PAIRS, WORK // units))
    for kind, (start, end) in _segments(x, samples.targets, pairs).items():
        found = regions_on_lines(subject.model, start, end)
        counts = np.array([len(line.breakpoints) for line in found], dtype=np.float64)
        yield _reading(kind, counts, program, (start, end))
    if len(x) > 2 and x[0].numel() > 1:
        plane, corners = slice_through(*x[:: len(x) // 3][:3])
        cells = regions_in_polygon(subject.model, corners, plane=plane)
        median = float(np.median(np.sqrt(cells.areas)))
        yield Reading(
            quantity="cells in the triangle of three inputs",
            measured=float(cells.regions),
            meaning=f"The network is affine on each of {cells.regions} cells of this triangle; a typical one is {median:.2g} "
            "wide, in the units of the inputs. The picture shows them, the three inputs marked; a colour is the largest output.",
            series=_picture(cells, corners),
        )


def _picture(cells: PlaneRegions, corners: Any) -> CellPicture | None:
    """The cells as polygons, each with the place of the largest output at its centre."""
    if cells.regions > DRAWN:
        return None
    centres = torch.as_tensor(cells.cells.centres(), dtype=cells.maps.dtype)
    ones = torch.cat([torch.ones(len(centres), 1, dtype=centres.dtype), centres], 1).to(cells.maps.device)
    answers = (cells.maps @ ones[:, :, None])[:, :, 0]  # (cells, outputs)
    largest = answers.argmax(1) if answers.shape[1] > 1 else (answers[:, 0] > 0).long()
    polygons = tuple(tuple((float(u), float(v)) for u, v in cells.polygon(k)) for k in range(cells.regions))
    points = tuple((float(u), float(v)) for u, v in np.asarray(corners))
    return CellPicture(
        x=("cells",), measured=(float(cells.regions),), polygons=polygons, groups=tuple(largest.tolist()), points=points
    )


def _segments(x: Tensor, targets: Tensor | None, pairs: int) -> dict[str, Segments]:
    generator = torch.Generator().manual_seed(0)
    flat = x.flatten(1).cpu()
    noise = torch.randn(2 * pairs, len(flat), generator=generator, dtype=flat.dtype) / math.sqrt(len(flat) - 1)
    random = (flat.mean(0) + noise @ (flat - flat.mean(0))).reshape(2 * pairs, *x.shape[1:]).to(x.device)
    order = torch.randperm(len(x), generator=generator).to(x.device)
    first, second = order[: len(order) // 2], order[len(order) // 2 : 2 * (len(order) // 2)]
    apart = (flat[first.cpu()] != flat[second.cpu()]).any(1).to(x.device)
    first, second = first[apart], second[apart]
    found: dict[str, Segments] = {}
    if targets is not None and targets.ndim == 1 and not targets.is_floating_point():
        grouped = order[targets[order].argsort(stable=True)]
        left, right = grouped[:-1], grouped[1:]
        alike = (targets[left] == targets[right]) & (flat[left.cpu()] != flat[right.cpu()]).any(1).to(x.device)
        chosen = torch.randperm(int(alike.sum()), generator=generator)[:pairs].to(x.device)
        if len(chosen) > 1:
            found["of one class"] = (x[left[alike][chosen]], x[right[alike][chosen]])
        differ = targets[first] != targets[second]
        first, second = first[differ], second[differ]
        if len(first) > 1:
            found["of different classes"] = (x[first[:pairs]], x[second[:pairs]])
    elif len(first) > 1:
        found["of the data"] = (x[first[:pairs]], x[second[:pairs]])
    found["drawn at random, of the data's covariance"] = (random[:pairs], random[pairs:])
    return found


def _reading(kind: str, counts: np.ndarray, program: PiecewiseProgram, ends: Segments) -> Reading:
    layers = affine_maps(program)
    quantity = f"bends between two inputs {kind}"
    seen = f"On the straight way between them the network bends {counts.mean():.3g} times on average"
    if layers is None:
        error = float(counts.std(ddof=1) / math.sqrt(len(counts)))
        told = "; theory gives the number only for plain ReLU networks. Compare the kinds of segment with each other."
        return Reading(quantity=quantity, measured=float(counts.mean()), stderr=error, meaning=seen + told)
    rows = torch.stack([end.flatten(1).cpu() for end in ends], 1)  # (pairs, 2, inputs)
    grams = (rows @ rows.mT / rows.shape[-1]).numpy()
    hidden = layers[:-1]
    widths = [len(weight) for weight, _ in hidden]
    variances = {
        "weight_variances": [float(w.shape[1] * w.square().mean()) for w, _ in hidden],
        "bias_variances": [0.0 if b is None else float(b.square().mean()) for _, b in hidden],
    }
    each = np.array([sum(segment_breakpoints(widths, gram, **variances)) for gram in grams])
    shares = [mean / width for mean, width in zip(segment_breakpoints(widths, grams, **variances), widths, strict=True)]
    spread = math.sqrt(sum(n * p * (1 - p) for n, p in zip(widths, shares, strict=True)))
    expected = float(each.mean())
    band = Band.around(expected, abs=3 * spread)
    error = float((counts - each).std(ddof=1) / math.sqrt(len(counts)))
    told = (
        f"; random weights of the same variances give {expected:.3g}, with a spread of {spread:.2g} from draw to draw."
    )
    if counts.mean() > band.high:
        told += " More: training has put bends between these inputs."
    elif counts.mean() < band.low:
        told += " Fewer: the network is smoother here than at random."
    return Reading(
        quantity=quantity,
        measured=float(counts.mean()),
        stderr=error,
        expected=band,
        meaning=seen + told,
        against="chance",
    )


instrument = Instrument(
    question="How often does the network bend between two inputs?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    laws=("regions-average-interval", "breakpoints-of-wide-layers", "zeros-by-curve-length"),
)
