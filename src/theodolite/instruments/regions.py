"""How often does the network bend between two inputs, compared with a random network?

Every breakpoint of a piecewise linear network is counted exactly on segments between inputs of the same class, of different
classes, and between random inputs with the same covariance. For a plain ReLU network the band is what random weights with the
same variances give on the same segments. A trained network that bends less between inputs of one class than between classes has
put its bends where it needs them.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, CellPicture, Reading
from theodolite.core.state import untouched
from theodolite.core.statistics import student_inflation
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import counter_for, passes_afforded
from theodolite.instruments._common.samples import spread_samples
from theodolite.measure.regions import PlaneRegions, regions_in_polygon, regions_on_lines, slice_through
from theodolite.measure.regions._bends import Bend, Maximum
from theodolite.measure.regions._piecewise import PiecewiseProgram, affine_maps, piecewise_program
from theodolite.theory.regions import segment_breakpoints

PAIRS, SAMPLES, UNITS, WORK = 30, 400, 20_000, 60_000
DRAWN = 20_000  # cells of a picture, at most
SIZES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the triangle whose cells are counted, as far as they are paid for
FIRST, OF_CELLS = 3, 0.5  # segments by which others are priced, and the share of the allowance that cells may cost
PLACES, PLACED = 33, 4  # on a segment of a network too large to follow, and segments of each kind
Array = np.ndarray[Any, np.dtype[np.float64]]
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
    pairs = max(3, min(PAIRS, WORK // units))
    segments = _segments(x, samples.targets, pairs)
    if units > UNITS:
        yield from _sampled(subject, segments)
        return
    share = subject.allowance.seconds / (2 * len(segments))
    for kind, (start, end) in segments.items():
        counts = _counts(subject, start, end, share)
        yield _reading(kind, counts, program, (start[: len(counts)], end[: len(counts)]))
    if len(x) > 2 and x[0].numel() > 1:
        yield from _triangle(subject, x)


def _counts(subject: Subject, start: Tensor, end: Tensor, seconds: float) -> Array:
    """Breakpoints on each segment, of as many as are paid for; the first ones tell what one costs."""
    most, first = len(start), slice(0, FIRST)
    with counter_for(subject) as counter:
        lines = list(regions_on_lines(subject.model, start[first], end[first]))
    if seconds < math.inf:
        most = min(most, int(FIRST * seconds / max(1e-9, counter.seconds)))
    rest = slice(FIRST, most)
    if most > FIRST:
        lines += regions_on_lines(subject.model, start[rest], end[rest])
    return np.array([len(line.breakpoints) for line in lines], dtype=np.float64)


def _triangle(subject: Subject, x: Tensor) -> Iterator[Reading]:
    """The cells of a triangle of three inputs; where they cost too much those of a smaller one within it, scaled by the area."""
    plane, corners = slice_through(*x[:: len(x) // 3][:3])
    center = np.asarray(corners).mean(0)
    found: list[float] = []
    cells = None
    for size in (1.0,) if subject.allowance.is_endless else SIZES:
        with counter_for(subject) as counter:
            cells = regions_in_polygon(subject.model, center + size * (np.asarray(corners) - center), plane=plane)
        found.append(cells.regions / size**2)
        if size == 1 or 4 * counter.seconds > OF_CELLS * subject.allowance.seconds:  # the next has four times the area
            break
    assert cells is not None
    median = float(np.median(np.sqrt(cells.areas)))
    whole = "" if size == 1 else f" (scaled up from {cells.regions} cells in a central triangle of {size:g} its size)"
    yield Reading(
        quantity="cells in the triangle of three inputs",
        measured=found[-1],
        stderr=0.0 if size == 1 else abs(found[-1] - found[-2]) if len(found) > 1 else found[-1],
        meaning=f"The network is affine on each of {found[-1]:.4g} cells of this triangle{whole}; a typical one is {median:.2g} "
        "wide, in the units of the inputs. The picture marks the three inputs; colors show the largest output.",
        series=_picture(cells, corners) if size == 1 else None,
    )


def _sampled(subject: Subject, segments: dict[str, Segments]) -> Iterator[Reading]:
    """Of a network too large to follow every bend: changes of sign before its ReLUs, place by place along segments."""
    for kind, (start, end) in segments.items():
        counts: list[tuple[float, float]] = []
        most = int(max(2, min(PLACED, passes_afforded(subject, "forward", PLACES) / len(segments))))
        for one, other in zip(start[:most], end[:most], strict=False):
            at = torch.linspace(0, 1, PLACES, dtype=one.dtype, device=one.device)
            line = one + at.reshape(-1, *[1] * one.ndim) * (other - one)
            counts.append(_sign_changes(subject.model, line))
        if len(counts) < 2:
            return
        fine, coarse = np.array(counts).T
        # a unit that turns twice between two places is missed: what halving the distance brought is still to come
        missing = float((fine - coarse).mean())
        error = float(fine.std(ddof=1) / math.sqrt(len(fine))) * student_inflation(len(fine))
        yield Reading(
            quantity=f"bends between two inputs {kind}",
            where=f"{len(fine)} segments, {PLACES} places on each",
            measured=float(fine.mean()) + missing,
            stderr=math.hypot(error, missing),
            meaning=f"At least {fine.mean():.4g} units change sign between one input and the other; half as many places "
            f"show {coarse.mean():.4g}, and the difference is added once more. Compare the kinds of segment.",
        )


@torch.no_grad()
def _sign_changes(model: nn.Module, line: Tensor) -> tuple[float, float]:
    """How often the inputs of ReLUs change sign from place to place, and from every other place to the next."""
    like = next(model.parameters())
    found = [0.0, 0.0]

    def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
        positive = args[0] > 0
        found[0] += float((positive[1:] != positive[:-1]).sum())
        every = positive[::2]
        found[1] += float((every[1:] != every[:-1]).sum())

    with untouched(model):
        for module in model.modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_pre_hook(hook)
        model(line.to(like))
    return found[0], found[1]


def _picture(cells: PlaneRegions, corners: Any) -> CellPicture | None:
    """The cells as polygons, each with the place of the largest output at its center."""
    if cells.regions > DRAWN:
        return None
    centers = torch.as_tensor(cells.cells.centers(), dtype=cells.maps.dtype)
    ones = torch.cat([torch.ones(len(centers), 1, dtype=centers.dtype), centers], 1).to(cells.maps.device)
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
    found["drawn at random with the data's covariance"] = (random[:pairs], random[pairs:])
    return found


def _reading(kind: str, counts: np.ndarray, program: PiecewiseProgram, ends: Segments) -> Reading:
    layers = affine_maps(program)
    quantity = f"bends between two inputs {kind}"
    seen = f"On a straight line between them the network bends {counts.mean():.3g} times on average"
    if layers is None:
        error = float(counts.std(ddof=1) / math.sqrt(len(counts))) * student_inflation(len(counts))
        told = "; theory gives the number only for plain ReLU networks. Compare the kinds of segment."
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
    error = float((counts - each).std(ddof=1) / math.sqrt(len(counts))) * student_inflation(len(counts))
    told = f"; random weights of the same variances give {expected:.3g}, with a standard deviation of {spread:.2g}."
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
    sees={"forward": 200},
    laws=("regions-average-interval", "breakpoints-of-wide-layers", "zeros-by-curve-length"),
)
