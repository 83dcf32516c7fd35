"""The looks of level full: the top Hessian subspace, the noise of gradients, and the balance of pull and noise in SGD."""

from collections.abc import Iterator

import torch

from theodolite import catalogue
from theodolite.core.checks import InputError
from theodolite.core.reading import Band, Reading
from theodolite.instruments.stationarity import BALANCED, balance_meaning, drifting
from theodolite.measure.curvature import outlier_gap
from theodolite.measure.dynamics import block_ratio, block_trend, gradient_moments, subspace_share, trainable_vector
from theodolite.theory.dynamics import batch_scatter, dissipation
from theodolite.verbs.watching.look_context import LookContext

BLOCKS, SHORTEST, LONGEST = 8, 20, 400
"""Blocks of looks for the balance of SGD, looks for the center of the weights and again before anything is said, and most."""


def subspace_readings(context: LookContext) -> Iterator[Reading]:
    """How much of the gradient lies in the steepest directions, and how many of these stand apart."""
    top, size = context.top, context.operator.size
    count = min(context.classes or 1, len(top.values))
    share, chance = subspace_share(context.slope.gradient, top.vectors[:count]), count / size
    spread = (2 * count) ** 0.5 / size  # of the share of a random direction
    yield Reading(
        quantity="share of the gradient in the top Hessian directions",
        where=f"{count} of {size:,}",
        measured=share,
        expected=Band(max(0.0, chance - 3 * spread), min(1.0, chance + 3 * spread)),
        against="chance",
        meaning=f"Of the squared gradient on the probe {100 * share:.0f} % lies along the {count} steepest directions; of a "
        f"random one {100 * chance:.2g} %. With small full-batch steps it is near zero, since these are minimized first; noise "
        "of batches and the edge of stability raise it.",
    )
    values = torch.tensor(top.values, dtype=torch.float64)
    if int((values > 0).sum()) > 1:
        place, ratio = outlier_gap(values)
        yield Reading(
            quantity="Hessian eigenvalues above the largest gap",
            measured=float(place),
            meaning=f"Among the {len(values)} largest the widest gap, a factor of {ratio:.2f}, comes after number {place}"
            + (": too small for clear outliers." if ratio < 1.5 else ": these are outliers."),
        )


def noise_readings(context: LookContext) -> Iterator[Reading]:
    """What the instrument says of the noise of gradients."""
    yield from catalogue.instrument("gradient-noise").read(context.subject)


def balance_readings(context: LookContext) -> Iterator[Reading]:
    """Whether pull and noise balance, once there were enough looks without drift."""
    subject, carried, how = context.subject, context.carried, context.batching
    if how.size is None or subject.lr is None:
        raise InputError("expected the batch size and step of training, got none; pass batch_size=... and lr=...")
    if subject.momentum:
        raise InputError("expected SGD without momentum, got momentum, whose balance needs the optimizer's own state")
    if context.rule is not None and not (context.rule.plain and context.rule.kind == "heavy-ball"):
        raise InputError(f"expected plain SGD, got {context.rule.name}, whose balance of pull and noise is another")
    found = gradient_moments(context.model, context.loss, subject.data)
    if found is None:
        return
    here = trainable_vector(context.model)
    center = carried.center = here if carried.center is None else carried.center
    pull = float(((here - center).double() * context.slope.gradient.double()).sum())
    noise = batch_scatter(
        found.scatter.value, found.squared_mean.value, batch_size=how.size, samples=how.samples, sampler=how.sampler
    )
    square = max(found.squared_mean.value, 0.0) + noise
    carried.window = [*carried.window, (context.slope.loss, pull, dissipation(square, lr=subject.lr))][-LONGEST:]
    losses, pulls, demanded = (list(column) for column in zip(*carried.window, strict=True))
    trend = block_trend(losses, blocks=BLOCKS) if len(losses) >= SHORTEST else None
    if trend is not None and drifting(trend):
        carried.forget_window()
        raise InputError(
            f"expected a steady loss, got one that changed by {trend.value:.3g} ± {trend.stderr:.2g}: drifting, not stationary"
        )
    if carried.settling < SHORTEST:  # any center is right on average; the mean of the weights is the least noisy
        carried.settling += 1
        carried.center = center + (here - center) / carried.settling
        if carried.settling == SHORTEST:
            carried.window = []
    if trend is None or carried.settling < SHORTEST or len(carried.window) < SHORTEST:
        looks = carried.settling + len(carried.window) * (carried.settling == SHORTEST)
        raise InputError(f"expected {2 * SHORTEST} measurements without drift, got {looks} so far; train on")
    ratio = block_ratio(pulls, demanded, blocks=BLOCKS)
    yield Reading(
        quantity="pull of the loss, relative to stationary SGD",
        where=f"last {len(losses)} measurements",
        measured=ratio.value,
        stderr=ratio.stderr,
        expected=BALANCED,
        meaning=balance_meaning(ratio),
    )
