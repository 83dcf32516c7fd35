"""What a watch reads at each look, by level: each look is a question with readings, and none has a memory of its own.

What is carried from look to look (the starting weights and kernel, the last eigenvectors to begin the search from) lies in
`Carried`, which belongs to the watch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from theodolite import catalogue
from theodolite.core.question import Question
from theodolite.core.reading import SIGMAS, Band, Reading
from theodolite.instruments._common.drift import drift_reading
from theodolite.instruments._common.samples import spread_samples
from theodolite.instruments.sharpness import sharpness_meaning
from theodolite.measure import first_tensor, placed
from theodolite.measure.dynamics import at_state, telling_kernel, weight_travel
from theodolite.measure.kernels import empirical_ntk
from theodolite.theory.dynamics import step_size_edge
from theodolite.verbs.watching.scene import CLOSE, LEVELS, Level, Scene

POINTS, OUTPUTS = 8, 128
"""Samples of the probe for the tangent kernel, and outputs a sample beyond which it is too dear."""

LOSS, SHARPNESS = "loss on the probe", "largest Hessian eigenvalue"
ALIVE = "tangent kernel that tells samples apart, relative to the start"


@dataclass(frozen=True, kw_only=True)
class Look(Question):
    """A question asked at every look of a level and above."""

    level: Level
    read: Callable[[Scene], Iterator[Reading]]


def _loss(scene: Scene) -> Iterator[Reading]:
    slope = scene.slope
    scene.facts["loss"] = slope.loss
    finite = bool(torch.isfinite(torch.tensor(slope.loss)))
    yield Reading(
        quantity=LOSS,
        measured=slope.loss,
        meaning="In evaluation mode, always on the same samples." if finite else "The loss is not finite.",
    )
    if finite:
        norm = slope.norm
        yield Reading(
            quantity="norm of the gradient on the probe",
            measured=norm,
            meaning="Zero at a minimum, and in a dead network." if norm == norm else "It is not finite.",
        )


def _travel(scene: Scene) -> Iterator[Reading]:
    assert scene.subject.model is not None
    far = weight_travel(scene.subject.model, scene.carried.origin)
    yield Reading(
        quantity="distance from the starting weights, relative",
        measured=far,
        meaning=f"The weights moved by {100 * far:.3g} % of their length at the start. "
        + ("Little: as in lazy training." if far < 0.1 else "Far: what held at the start need not hold any more."),
    )


def _sharpness(scene: Scene) -> Iterator[Reading]:
    lr, top = scene.subject.lr, scene.top
    value, error = top.values[0], top.errors[0] / SIGMAS
    scene.facts |= {"sharpness": value, "sharpness_error": top.errors[0]}
    if lr is None:
        yield Reading(
            quantity=SHARPNESS,
            measured=value,
            stderr=error,
            meaning="Steps of descent must stay below 2 over this; tell the watch the step (lr=...).",
        )
        return
    edge = step_size_edge(lr, momentum=scene.subject.momentum)
    yield Reading(
        quantity=SHARPNESS,
        measured=value,
        stderr=error,
        expected=Band(high=edge),
        against="health",
        meaning=sharpness_meaning(value / edge, converged=top.errors[0] <= CLOSE * abs(value)),
    )


def _kernel(scene: Scene) -> Iterator[Reading]:
    model, samples = scene.subject.model, spread_samples(scene.subject, POINTS)
    assert model is not None
    if samples is None:  # a single sample, or batches that are not plain tensors
        batch = next(scene.subject.batches())
        if not batch.inputs or len(batch) > 1:
            return
        x: Any = batch.inputs if len(batch.inputs) > 1 else batch.inputs[0]
    else:
        x = samples.x
    x = placed(x, next(model.parameters()))
    with torch.no_grad():
        outputs = first_tensor(model(**x) if isinstance(x, Mapping) else model(*(x if isinstance(x, tuple) else (x,))))
    if outputs[0].numel() > OUTPUTS:
        raise ValueError(
            f"expected at most {OUTPUTS} outputs a sample for the tangent kernel, got {outputs[0].numel()}"
        )
    now = empirical_ntk(model, x).double().cpu()
    carried, telling = scene.carried, telling_kernel(model, x, now)
    if carried.kernel is None:
        carried.kernel, carried.telling = now, telling
        if weight_travel(model, carried.origin) > 0:
            first = at_state(model, carried.origin)
            carried.kernel = empirical_ntk(first, x).double().cpu()
            carried.telling = telling_kernel(first, x, carried.kernel)
    alive = telling / carried.telling if carried.telling > 0 else float("nan")
    reading = drift_reading(now, carried.kernel)
    scene.facts |= {"drift": reading.measured, "alive": alive}
    yield reading
    if alive == alive:
        yield Reading(
            quantity=ALIVE,
            where=f"{len(now)} samples",
            measured=alive,
            meaning="Dead: no weight makes a difference between samples any more."
            if alive < 1e-9
            else "Alive. It is zero in a network whose units are all off, whatever the loss.",
        )


def _collapse(scene: Scene) -> Iterator[Reading]:
    yield from catalogue.instrument("collapse").read(scene.subject)


def _dear(readings: str) -> Callable[[Scene], Iterator[Reading]]:
    """A look of level full, whose file is imported when it is first taken."""

    def read(scene: Scene) -> Iterator[Reading]:
        from theodolite.verbs.watching import dear_looks

        yield from getattr(dear_looks, readings)(scene)

    return read


LOOKS = (
    Look(name="loss", question="Does the loss fall?", level="cheap", cost="backward", laws=(), read=_loss),
    Look(
        name="travel",
        question="How far have the weights come?",
        level="cheap",
        cost="free",
        laws=("weight-movement",),
        read=_travel,
    ),
    Look(
        name="sharpness",
        question="How curved is the loss, against the edge of the step?",
        level="standard",
        cost="hvp",
        laws=("edge-of-stability", "edge-with-momentum"),
        read=_sharpness,
    ),
    Look(
        name="kernel-drift",
        question="Is training lazy, and is the network alive?",
        level="standard",
        cost="backward",
        laws=("ntk-freezing", "lazy-linearization"),
        read=_kernel,
    ),
    Look(
        name="collapse",
        question="Have the features of the classes collapsed?",
        level="standard",
        cost="forward",
        laws=("simplex-etf-cosines",),
        read=_collapse,
    ),
    Look(
        name="top-subspace",
        question="Does the gradient live in the steepest directions?",
        level="full",
        cost="hvp",
        laws=("gauss-newton-split",),
        read=_dear("subspace_readings"),
    ),
    Look(
        name="gradient-noise",
        question="How noisy is the gradient of a batch?",
        level="full",
        cost="backward",
        laws=("constant-step-noise-floor",),
        read=_dear("noise_readings"),
    ),
    Look(
        name="stationarity",
        question="Is SGD stationary, or does it still drift?",
        level="full",
        cost="backward",
        laws=("constant-step-noise-floor",),
        read=_dear("balance_readings"),
    ),
)
"""In the order in which they are read: what is cheap, and what later ones use, first."""


def looks_of(level: Level) -> tuple[Look, ...]:
    """The looks of a level and of those below it."""
    return tuple(look for look in LOOKS if LEVELS.index(look.level) <= LEVELS.index(level))


def trouble_in(scene: Scene, step: int) -> str:
    """In words, if loss or gradient are not finite: nothing else is then worth reading."""
    if "loss" not in scene.facts:
        return f"the loss could not be read at step {step}"
    if not math.isfinite(scene.facts["loss"]):
        return f"loss is not finite at step {step}"
    return "" if math.isfinite(scene.slope.norm) else f"gradient is not finite at step {step}"
