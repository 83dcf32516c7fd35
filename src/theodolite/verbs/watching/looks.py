"""What a watch reads at each look, by level: each look is a question with readings, and none has a memory of its own.

What is carried from look to look (the starting weights and kernel, the last eigenvectors to begin the search from) lies in
`Memory`, which belongs to the watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from theodolite import catalogue
from theodolite.core.instrument import Cost, Instrument
from theodolite.core.reading import SIGMAS, Band, Reading
from theodolite.core.subject import Subject
from theodolite.instruments._classes import classes_of
from theodolite.instruments._samples import samples_of
from theodolite.instruments.kernel import drift_reading
from theodolite.instruments.sharpness import sharpness_meaning
from theodolite.instruments.stationarity import BALANCED, balance_meaning, drifting
from theodolite.measure import first_tensor, placed
from theodolite.measure.curvature import Eigenpairs, Operator, extreme_eigenpairs, hessian, outlier_gap
from theodolite.measure.dynamics import (
    Slope,
    at_state,
    block_ratio,
    block_trend,
    gradient_moments,
    probe_slope,
    subspace_share,
    telling_kernel,
    trainable_vector,
    weight_travel,
)
from theodolite.measure.kernels import empirical_ntk
from theodolite.theory.dynamics import batch_scatter, dissipation, step_size_edge
from theodolite.theory.dynamics.stationarity import Sampler

Level = Literal["cheap", "standard", "full"]
LEVELS: tuple[Level, ...] = ("cheap", "standard", "full")
POINTS, OUTPUTS = 8, 128
"""Samples of the probe for the tangent kernel, and outputs a sample beyond which it is too dear."""

WARM, COLD, CLOSE = 5, 60, 0.05
"""Products with the Hessian at a look that knows the last eigenvector, at most otherwise; error that asks for more."""

BESIDE, MOST_TOP = 5, 30
"""Eigenvalues looked at beyond the number of classes, and the most of them."""

LOSS, SHARPNESS = "loss on the probe", "largest Hessian eigenvalue"
ALIVE = "tangent kernel that tells samples apart, relative to the start"
BLOCKS, SHORTEST, LONGEST = 8, 20, 400
"""Blocks of looks for the balance of SGD, looks for the centre of the weights and again before anything is said, and most."""


@dataclass(frozen=True)
class Batching:
    """How training draws its batches: needed for the balance of noise and pull."""

    size: int | None = None
    samples: int | None = None
    sampler: Sampler = "without replacement"


@dataclass
class Memory:
    """What a watch carries from look to look; all of it can be lost but the origin."""

    origin: Mapping[str, Tensor] = field(repr=False)
    kernel: Tensor | None = None
    telling: float = 0.0
    vectors: Tensor | None = field(default=None, repr=False)
    centre: Tensor | None = field(default=None, repr=False)
    settling: int = 0
    window: list[tuple[float, float, float]] = field(default_factory=list)

    def forget_window(self) -> None:
        """Begin the search for stationarity anew."""
        self.centre, self.settling, self.window = None, 0, []


@dataclass
class Scene:
    """One look: the subject at its present weights with the present step size, and what was measured so far in it."""

    subject: Subject
    memory: Memory
    level: Level
    batching: Batching
    facts: dict[str, float] = field(default_factory=dict)

    @cached_property
    def slope(self) -> Slope:
        """Loss and gradient on the probe."""
        assert self.subject.model is not None and self.subject.loss is not None
        return probe_slope(self.subject.model, self.subject.loss, self.subject.data)

    @cached_property
    def operator(self) -> Operator:
        """The Hessian on the probe."""
        assert self.subject.model is not None and self.subject.loss is not None
        return hessian(self.subject.model, self.subject.loss, self.subject.data)

    @cached_property
    def classes(self) -> int | None:
        """How many classes the targets are of, where they are classes."""
        return classes_of(self.subject)

    @cached_property
    def top(self) -> Eigenpairs:
        """The largest eigenvalue, at level full also some more than there are classes; begun from those of the last look."""
        count = 1
        if self.level == "full":
            count = max(1, min((self.classes or 1) + BESIDE, MOST_TOP, self.operator.size // 2))
        start = None if self.memory.vectors is None else self.memory.vectors.sum(0)
        few, most = (WARM, COLD) if count == 1 else (3 * count, 6 * count + COLD)
        found = extreme_eigenpairs(
            self.operator, count=count, tolerance=1e-3, most=most if start is None else few, start=start
        )
        if start is not None and found.errors[0] > CLOSE * abs(found.values[0]):
            found = extreme_eigenpairs(
                self.operator, count=count, tolerance=1e-3, most=most, start=found.vectors.sum(0)
            )
        self.memory.vectors = found.vectors
        return found


@dataclass(frozen=True)
class Look:
    """A question asked at every look of a level and above."""

    name: str
    question: str
    level: Level
    cost: Cost
    laws: tuple[str, ...]
    read: Callable[[Scene], Iterator[Reading]]

    @property
    def instrument(self) -> Instrument:
        """What a page shows of it."""
        return Instrument(
            question=self.question,
            read=lambda subject: (),
            needs=frozenset(),
            cost=self.cost,
            laws=self.laws,
            name=self.name,
        )


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
    far = weight_travel(scene.subject.model, scene.memory.origin)
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
        meaning=sharpness_meaning(value / edge, converged=top.errors[0] <= CLOSE * abs(value)),
    )


def _kernel(scene: Scene) -> Iterator[Reading]:
    model, samples = scene.subject.model, samples_of(scene.subject, POINTS)
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
    memory, telling = scene.memory, telling_kernel(model, x, now)
    if memory.kernel is None:
        memory.kernel, memory.telling = now, telling
        if weight_travel(model, memory.origin) > 0:
            first = at_state(model, memory.origin)
            memory.kernel = empirical_ntk(first, x).double().cpu()
            memory.telling = telling_kernel(first, x, memory.kernel)
    alive = telling / memory.telling if memory.telling > 0 else float("nan")
    reading = drift_reading(now, memory.kernel)
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


def _subspace(scene: Scene) -> Iterator[Reading]:
    top, size = scene.top, scene.operator.size
    count = min(scene.classes or 1, len(top.values))
    share, chance = subspace_share(scene.slope.gradient, top.vectors[:count]), count / size
    yield Reading(
        quantity="share of the gradient in the top Hessian directions",
        where=f"{count} of {size:,}",
        measured=share,
        expected=Band(chance, 1.0),
        meaning=f"Of the squared gradient on the probe {100 * share:.0f} % lies along the {count} steepest directions; of a "
        f"random one {100 * chance:.2g} %. With small full-batch steps it is near zero, since these are minimised first; noise "
        "of batches and the edge of stability bring it up.",
    )
    values = torch.tensor(top.values, dtype=torch.float64)
    if int((values > 0).sum()) > 1:
        place, ratio = outlier_gap(values)
        yield Reading(
            quantity="Hessian eigenvalues above the largest gap",
            measured=float(place),
            meaning=f"Among the {len(values)} largest the widest gap, by a factor {ratio:.2f}, lies behind number {place}"
            + (": faint, no clear outliers." if ratio < 1.5 else ": as many stand apart from the bulk."),
        )


def _noise(scene: Scene) -> Iterator[Reading]:
    yield from catalogue.instrument("gradient-noise").read(scene.subject)


def _balance(scene: Scene) -> Iterator[Reading]:
    subject, memory, how = scene.subject, scene.memory, scene.batching
    if how.size is None or subject.lr is None:
        raise ValueError("expected the batch size and step of training, got none; pass batch_size=... and lr=...")
    if subject.momentum:
        raise ValueError("expected SGD without momentum, got momentum, whose balance needs the optimiser's own state")
    assert subject.model is not None and subject.loss is not None
    found = gradient_moments(subject.model, subject.loss, subject.data)
    if found is None:
        return
    here = trainable_vector(subject.model)
    centre = memory.centre = here if memory.centre is None else memory.centre
    pull = float(((here - centre).double() * scene.slope.gradient.double()).sum())
    noise = batch_scatter(
        found.scatter.value, found.squared_mean.value, batch_size=how.size, samples=how.samples, sampler=how.sampler
    )
    square = max(found.squared_mean.value, 0.0) + noise
    memory.window = [*memory.window, (scene.slope.loss, pull, dissipation(square, lr=subject.lr))][-LONGEST:]
    losses, pulls, demanded = (list(column) for column in zip(*memory.window, strict=True))
    trend = block_trend(losses, blocks=BLOCKS) if len(losses) >= SHORTEST else None
    if trend is not None and drifting(trend):
        memory.forget_window()
        raise ValueError(
            f"expected a steady loss, got one that changed by {trend.value:.3g} ± {trend.stderr:.2g}: drifting, not stationary"
        )
    if memory.settling < SHORTEST:  # any centre is right on average; the mean of the weights is the least noisy
        memory.settling += 1
        memory.centre = centre + (here - centre) / memory.settling
        if memory.settling == SHORTEST:
            memory.window = []
    if trend is None or memory.settling < SHORTEST or len(memory.window) < SHORTEST:
        looks = memory.settling + len(memory.window) * (memory.settling == SHORTEST)
        raise ValueError(f"expected {2 * SHORTEST} looks without drift, got {looks} so far; nothing is said yet")
    ratio = block_ratio(pulls, demanded, blocks=BLOCKS)
    yield Reading(
        quantity="pull of the loss over what stationary SGD demands",
        where=f"last {len(losses)} looks",
        measured=ratio.value,
        stderr=ratio.stderr,
        expected=BALANCED,
        meaning=balance_meaning(ratio),
    )


LOOKS = (
    Look("loss", "Does the loss fall?", "cheap", "backward", (), _loss),
    Look("travel", "How far have the weights come?", "cheap", "free", ("weight-movement",), _travel),
    Look(
        "sharpness",
        "How curved is the loss, against the edge of the step?",
        "standard",
        "hvp",
        ("edge-of-stability", "edge-with-momentum"),
        _sharpness,
    ),
    Look(
        "kernel-drift",
        "Is training lazy, and is the network alive?",
        "standard",
        "backward",
        ("ntk-freezing", "lazy-linearization"),
        _kernel,
    ),
    Look(
        "collapse",
        "Have the features of the classes collapsed?",
        "standard",
        "forward",
        ("simplex-etf-cosines",),
        _collapse,
    ),
    Look(
        "top-subspace",
        "Does the gradient live in the steepest directions?",
        "full",
        "hvp",
        ("gauss-newton-split",),
        _subspace,
    ),
    Look(
        "gradient-noise",
        "How noisy is the gradient of a batch?",
        "full",
        "backward",
        ("constant-step-noise-floor",),
        _noise,
    ),
    Look(
        "stationarity",
        "Is SGD stationary, or does it still drift?",
        "full",
        "backward",
        ("constant-step-noise-floor",),
        _balance,
    ),
)
"""In the order in which they are read: what is cheap, and what later ones use, first."""


def looks_of(level: Level) -> tuple[Look, ...]:
    """The looks of a level and of those below it."""
    return tuple(look for look in LOOKS if LEVELS.index(look.level) <= LEVELS.index(level))
