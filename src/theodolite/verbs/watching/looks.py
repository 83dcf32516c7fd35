"""What a watch reads at each look, by level: each look is a question with readings, and none has a memory of its own.

What is carried from look to look (the starting weights and kernel, the last eigenvectors to begin the search from) lies in
`Carried`, which belongs to the watch.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from theodolite import catalogue
from theodolite.core.checks import InputError
from theodolite.core.question import Question
from theodolite.core.reading import SIGMAS, Band, Reading
from theodolite.instruments.sharpness import sharpness_meaning
from theodolite.measure.dynamics import thinned_travel, thinned_weights, weight_travel
from theodolite.theory.dynamics import StepQuality, step_quality
from theodolite.verbs.watching.look_context import CLOSE, LARGE, LEVELS, Level, LookContext
from theodolite.verbs.watching.tangent import kernel_readings
from theodolite.verbs.watching.thinning import Size
from theodolite.verbs.watching.training_hooks.gradient_noise import accumulation_readings
from theodolite.verbs.watching.training_hooks.loss_between_looks import loss_as_evaluated

LOSS, SHARPNESS = "loss on the probe", "largest Hessian eigenvalue"
PRECONDITIONED = "largest preconditioned Hessian eigenvalue"


@dataclass(frozen=True, kw_only=True)
class Look(Question):
    """A question asked at every look of a level and above."""

    level: Level
    read: Callable[[LookContext], Iterator[Reading]]


def _loss(context: LookContext) -> Iterator[Reading]:
    if context.bare:
        with context.stepping():
            seen = loss_as_evaluated(context.subject)
    else:
        seen = context.slope.loss
        context.facts["gradient"] = context.slope.norm
    loss = loss_as_evaluated(context.subject) if context.normalized else seen
    context.facts |= {"loss": loss, "step_loss": seen}
    finite = math.isfinite(seen)
    yield Reading(
        quantity=LOSS,
        measured=loss,
        meaning="In evaluation mode, always on the same samples." if finite else "The loss is not finite.",
    )
    if context.normalized:
        yield Reading(
            quantity="loss on the probe, as the step sees it",
            measured=seen,
            meaning="Batch normalization uses the statistics of the batch, as in training; dropout is off.",
        )
    if finite and not context.bare:
        norm = context.slope.norm
        yield Reading(
            quantity="norm of the gradient on the probe",
            measured=norm,
            meaning=f"{_when(context)}Zero at a minimum, and in a dead network.{_mode(context)}"
            if norm == norm
            else "It is not finite.",
        )


def _when(context: LookContext) -> str:
    return "At the weights before the last step. " if context.one_back else ""


def _mode(context: LookContext) -> str:
    mode = " As the step sees it: batch normalization by the batch's own statistics." if context.normalized else ""
    return mode + (
        " From differences of gradients: this model has no second backward pass." if _differs(context) else ""
    )


def _differs(context: LookContext) -> bool:
    return "by_differences" in context.facts


TRUST = "change of the loss by the last step, measured over predicted"


def _last_step(context: LookContext) -> Iterator[Reading]:
    """What the last step of training did to the loss of the probe, beside what the gradient predicts."""
    training = context.training
    if training.optimizer is None:
        return
    if not training.before:
        if training.steps:
            raise InputError(
                "expected the weights before the last step, got none: they are kept only before a measurement"
            )
        raise InputError("expected a step of the optimizer before this measurement, got none yet")
    effect = context.effect
    if effect.length == 0:
        raise InputError(
            "expected a step that moves the weights, got one that did not (lr 0, or a loss scale that overflowed)"
        )
    quality = step_quality(effect.forecast, effect.change)
    level = effect.loss - effect.change
    share = abs(effect.forecast / level) if level else math.inf
    facts = {
        "trust": quality.ratio,
        "trust_noise": effect.ratio_noise,
        "predicted": effect.forecast,
        "change": effect.change,
        "change_noise": effect.noise,
        "step_length": effect.length,
        "best_factor": quality.best,
    }
    context.facts |= facts
    yield Reading(
        quantity=TRUST,
        measured=quality.ratio,
        stderr=effect.ratio_noise if math.isfinite(effect.ratio_noise) else 0.0,
        meaning=_trust_meaning(quality, share, effect.forecast) + _mode(context),
    )
    yield Reading(
        quantity="predicted change of the loss by the last step, relative to the loss",
        measured=effect.forecast / level if level else math.nan,
        stderr=0.0,
        meaning=f"The step moved the weights by {effect.length:.2g} of their length; the loss changed by {effect.change:.3g}.",
    )


def _trust_meaning(quality: StepQuality, share: float, predicted: float) -> str:
    said = "1: a small step; 1/2: the best length in its direction; below 0: it overshot. "
    if predicted >= 0:
        return said + "On the probe the step goes uphill, because of momentum or batch noise."
    if share < 1e-4:
        return said + f"The step is small: it should change the loss by {share:.1g} of the loss."
    if quality.ratio < 0:
        return said + f"The step overshot: {quality.best:.2g} times its length would have been best."
    if quality.best < 1:
        return said + f"The step is large: {quality.best:.2g} times its length would have been best."
    return said + "The loss fell nearly as much as the gradient predicts."


def _travel(context: LookContext) -> Iterator[Reading]:
    model, carried = context.model, context.carried
    if carried.thinned is None and sum(p.numel() for p in model.parameters()) < LARGE:
        far, error = weight_travel(model, carried.origin), 0.0
    else:  # the start lies in the memory of the host: some of its entries are brought over once
        if carried.thinned is None:
            carried.thinned = thinned_weights(model, state=carried.origin)
        found = thinned_travel(thinned_weights(model), carried.thinned)
        far, error = found.value, found.stderr
    yield Reading(
        quantity="relative distance from the starting weights",
        measured=far,
        stderr=error,
        meaning=f"The weights moved by {100 * far:.3g} % of their length at the start. "
        + ("Little, as in lazy training." if far < 0.1 else "Far: what was true at the start may no longer be true."),
    )


def _sharpness(context: LookContext) -> Iterator[Reading]:
    if context.rule is not None and context.rule.waiting:
        raise InputError(
            f"expected a step of {context.rule.name} before its stability limit is known, got none yet: its state is empty"
        )
    top, edge = context.top, context.edge
    rule = context.rule  # after the search, which lets go of what the rule holds for each parameter
    value, bound = top.values[0], top.errors[0]
    if context.training.precision is not None:  # products are rounded as training is
        bound += torch.finfo(context.training.precision).eps * abs(value)
    error = bound / SIGMAS
    context.facts |= {"sharpness": value, "sharpness_error": bound}
    seen = context.scaled
    quantity = PRECONDITIONED if seen else SHARPNESS
    if edge is None or math.isinf(edge):
        told = "The learning rate of gradient descent must stay below 2 over this; pass lr=... to the watch."
        if rule is not None:
            context.facts["edge"] = math.nan  # that of descent is not its edge
            told = (
                f"No stability limit is known: {rule.why or 'a step that uses only signs is stable at any curvature'}; see "
                "what the last step did to the loss."
            )
        yield Reading(quantity=quantity, measured=value, stderr=error, meaning=told + _mode(context))
        return
    context.facts["edge"] = edge
    yield Reading(
        quantity=quantity,
        where=f"by the state of {rule.name}" if seen and rule is not None else "",
        measured=value,
        stderr=error,
        expected=Band(high=edge),
        against="health",
        meaning=sharpness_meaning(
            value / edge,
            converged=top.errors[0] <= CLOSE * abs(value),
            optimizer=rule.name if seen and rule is not None else "descent",
        )
        + _mode(context),
    )


def _collapse(context: LookContext) -> Iterator[Reading]:
    yield from catalogue.instrument("collapse").read(context.subject)


def _dear(readings: str) -> Callable[[LookContext], Iterator[Reading]]:
    """A look of level full, whose file is imported when it is first taken."""

    def read(context: LookContext) -> Iterator[Reading]:
        from theodolite.verbs.watching import full_looks

        yield from getattr(full_looks, readings)(context)

    return read


LOOKS = (
    Look(name="loss", question="Does the loss fall?", level="cheap", cost="backward", laws=(), read=_loss),
    Look(
        name="accumulated-noise",
        question="How much of an accumulated gradient is noise?",
        level="cheap",
        cost="free",
        laws=("constant-step-noise-floor",),
        read=accumulation_readings,
    ),
    Look(
        name="last-step",
        question="Did the last step do what the gradient predicted?",
        level="cheap",
        cost="backward",
        laws=("trust-ratio-of-a-quadratic",),
        read=_last_step,
    ),
    Look(
        name="travel",
        question="How far have the weights moved?",
        level="cheap",
        cost="free",
        laws=("weight-movement",),
        read=_travel,
    ),
    Look(
        name="sharpness",
        question="How sharp is the loss, compared with the stability limit?",
        level="standard",
        cost="hvp",
        laws=("edge-of-stability", "edge-with-momentum", "adam-edge", "adam-settles-at-its-edge", "rmsprop-edge"),
        read=_sharpness,
    ),
    Look(
        name="kernel-drift",
        question="Is training lazy, and is the network alive?",
        level="standard",
        cost="backward",
        laws=("ntk-freezing", "lazy-linearization"),
        read=kernel_readings,
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
        question="Does the gradient lie in the steepest directions?",
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
        question="Is SGD stationary, or is it still drifting?",
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


def is_dear(look: Look, size: Size) -> bool:
    """Whether a look of this size leaves it out."""
    return (size != "whole" and look.level != "cheap") or (size == "loss" and look.name == "last-step")


def trouble_in(context: LookContext, step: int) -> str:
    """In words, if loss or gradient are not finite: nothing else is then worth reading."""
    if "loss" not in context.facts:
        return f"the loss could not be read at step {step}"
    if not math.isfinite(context.facts["step_loss"]) or not math.isfinite(context.facts["loss"]):
        return f"loss is not finite at step {step}"
    return "" if context.bare or math.isfinite(context.slope.norm) else f"gradient is not finite at step {step}"
