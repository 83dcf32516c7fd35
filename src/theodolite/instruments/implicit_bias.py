"""Among all readouts that fit some samples equally well, which one did training find?

Least norm, sparsest or widest margin? Measured for the last linear layer on its input features, or for the whole model if it is
linear in its inputs (a linear layer, a product of layers, a diagonal network). The comparison uses the model's own answers on
fewer samples than there are features, so many readouts give the same answers. A bias counts as the weight of a feature that is
always 1. The theorems are about gradient flow on fixed features; if features were learned too, the distances only describe, so
there is no band.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Reading, Series
from theodolite.core.statistics import student_inflation
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded, sample_count
from theodolite.instruments._common.samples import Samples, spread_samples
from theodolite.measure.bias import Readout, readout
from theodolite.theory.bias import diagonal_nets, widest_class_margin, widest_margin

Array = np.ndarray[Any, np.dtype[np.float64]]

SAMPLES, INTERPOLATED, SEPARATED, OUTPUTS, SETS = 512, 64, 60, 10, 5
SCALES = tuple(float(10**power) for power in np.arange(-4.0, 2.01, 0.5))


def read(subject: Subject) -> Iterator[Reading]:
    """Distances of the readout found to the candidates; nothing where there is no linear readout."""
    model = subject.model
    most = afforded(subject, "forward", passes=3, share=0.5, fewest=min(2 * INTERPOLATED, sample_count(subject)))
    samples = spread_samples(subject, min(SAMPLES, most))
    if samples is None:
        return
    found = readout(model, partial(samples.answer, model), samples.x)
    if found is None or len(found.features) != len(samples) or not bool(found.features.isfinite().all()):
        return
    if found.weight.norm() == 0:
        return
    with threadpool_limits(1, user_api="blas"):  # hundreds of small factorizations, which threads only slow down
        readings = [*_interpolants(found), *_separators(found, samples)]
        thinned = len(samples) < min(SAMPLES, sample_count(subject))
        errors = _errors(subject, found, samples, {r.quantity: r.measured for r in readings}) if thinned else {}
    yield from (replace(r, stderr=errors.get(r.quantity, 0.0)) for r in readings)


def _errors(subject: Subject, found: Readout, samples: Samples, whole: dict[str, float]) -> dict[str, float]:
    """How much the numbers hang on which samples are interpolated: those of other samples, as many, beside them.

    Sets drawn from few samples share some of them, and so differ less than sets of all data; and two such sets differ by a
    root of two more than one does from the mean.
    """
    draws: list[dict[str, float]] = [whole]
    generator = torch.Generator().manual_seed(0)
    for _ in range(1, SETS):
        order = torch.randperm(len(samples), generator=generator)
        moved = replace(found, features=found.features[order])
        targets = None if samples.targets is None else samples.targets[order.to(samples.targets.device)]
        others = [*_interpolants(moved), *_separators(moved, Samples(samples.x, targets))]
        draws.append({r.quantity: r.measured for r in others})
    spread = {name: [draw[name] for draw in draws if name in draw] for name in whole}
    return {
        name: float(np.std(values, ddof=1)) * student_inflation(len(values)) * _wider(name, found)
        if len(values) > 1
        else abs(whole[name])
        for name, values in spread.items()
    }


def _wider(quantity: str, found: Readout) -> float:
    """By how much two sets of all data differ more than sets of these samples do from their mean."""
    count = len(found.features)
    taken = min(SEPARATED, count) if "margin" in quantity else min(INTERPOLATED, found.features.shape[1] // 2, count)
    return float(np.sqrt(2 / max(1 - taken / count, 1 / count)))


def _interpolants(found: Readout) -> Iterator[Reading]:
    """Least l2 and l1 norm and least potential among the readouts that answer as the model does on some samples."""
    wide = found.features.shape[1]
    number = min(INTERPOLATED, wide // 2, len(found.features))
    if number < 1:
        return
    places = [index * len(found.features) // number for index in range(number)]
    x, weights = found.features[places].numpy(), found.weight[:OUTPUTS].numpy()
    answers = weights @ x.T  # (outputs, samples)
    what = (
        f"Among all readouts of {wide} features with the same outputs on {number} samples"
        f"{'' if len(weights) == len(found.weight) else f' (first {len(weights)} outputs)'}: "
    )
    scale = float(np.abs(weights).mean()) ** 0.5  # beta = u^2 - v^2: starts are measured in roots of weights
    candidates = {
        "least norm": np.array([diagonal_nets.least_weighted_norm(x, y) for y in answers]),
        "sparsest (least l1 norm)": np.array([diagonal_nets.least_l1_norm(x, y) for y in answers]),
    }
    away = [
        _distance(weights, np.array([diagonal_nets.least_potential(x, y, scale=s * scale) for y in answers]))
        for s in SCALES
    ]
    for name, other in candidates.items():
        gap, random = _distance(weights, other), (1 - number / wide) ** 0.5
        note = f" Random weights would be at {random:.2f}." if name == "least norm" else ""
        yield Reading(
            quantity=f"distance to the {name}",
            where=found.name,
            measured=gap,
            meaning=(f"{what}the distance to the {name} one, relative to its own norm.{note}"),
        )
    best = int(np.argmin(away))
    yield Reading(
        quantity="distance to the nearest diagonal network's end",
        where=found.name,
        measured=away[best],
        meaning=f"{what}a diagonal network started at {SCALES[best]:.2g} of the root of the mean weight is closest. Small "
        "starts end sparse, large ones at the least norm.",
        series=Series(x=SCALES, measured=tuple(away), x_label="scale of the start", y_label="distance", log="x"),
    )


def _separators(found: Readout, samples: Samples) -> Iterator[Reading]:
    """The margin found against the widest there is on some samples, and the distance of the directions."""
    labels = _labels(found, samples)
    if labels is None:
        return
    outputs = len(found.weight)
    places = [index * len(labels) // min(SEPARATED, len(labels)) for index in range(min(SEPARATED, len(labels)))]
    x, y, weights = found.features[places].numpy(), labels[places], found.weight.numpy()
    gaps = _gaps(x @ weights.T, y)
    x, y, right = x[gaps > 0], y[gaps > 0], int((gaps > 0).sum())
    if right < 2 or len(np.unique(y)) < 2:
        return
    least = float(gaps[gaps > 0].min()) / float(np.linalg.norm(weights))
    if outputs == 1:
        best = widest_margin(x, y)
        widest, other = best.margin, best.weight[None]
    else:
        other, widest = widest_class_margin(x, y, classes=outputs)
        weights = weights - weights.mean(0)  # adding one vector to every class changes no answer
    what = f"On {right} samples, all classes against each other, bias counted as a weight"
    what += f" ({len(places) - right} misclassified ones are left out): " if right < len(places) else ": "
    yield Reading(
        quantity="margin, relative to the widest",
        where=found.name,
        measured=least / widest,
        meaning=f"{what}the margin is {least:.3g} for a readout of norm 1, the widest possible is {widest:.3g}. With fixed "
        "features, longer training approaches 1 as one over the logarithm of time.",
    )
    yield Reading(
        quantity="distance to the direction of widest margin",
        where=found.name,
        measured=_distance(weights / np.linalg.norm(weights), other / np.linalg.norm(other)),
        meaning=f"{what}0 is the same direction, 1.41 a right angle. On other samples the widest margin is different.",
    )


def _gaps(logits: Array, y: Any) -> Array:
    """By how much each sample is on its side: against the best other class, or by its sign."""
    if logits.shape[1] == 1:
        return np.asarray(y * logits[:, 0])
    own = np.arange(logits.shape[1]) == y[:, None]
    return np.asarray(logits[own] - np.where(own, -np.inf, logits).max(1))


def _labels(found: Readout, samples: Samples) -> Any:
    """Class numbers, or signs where there is one output; None where targets are not classes."""
    targets, outputs = samples.targets, len(found.weight)
    if targets is None or targets.numel() != len(samples):
        return None
    values = targets.flatten().double().cpu().numpy()
    kinds = set(np.unique(values).tolist())
    if outputs == 1:
        return np.where(values > 0, 1, -1) if kinds in ({0.0, 1.0}, {-1.0, 1.0}) else None
    if targets.is_floating_point() or values.min() < 0 or values.max() >= outputs or len(kinds) < 2:
        return None
    return values.astype(int)


def _distance(one: Array, other: Array) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(one))


instrument = Instrument(
    question="Which of the solutions that fit did training find?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"forward": 256},
    laws=("diagonal-net-potential", "linear-flow-limit", "max-margin-direction"),
)
