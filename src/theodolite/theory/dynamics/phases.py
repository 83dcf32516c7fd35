r"""Which phase a run is in: lazy, stable, catapult, edge, divergent, dead, or undecided, with the numbers that decide.

With curvature $\lambda$ and step $\eta$ the ratio $\rho=\eta\lambda/(2+2\beta)$ is 1 at the edge of stability. A run that
starts at $\rho<1$ goes down at once (lazy, or stable where its tangent kernel moves). One that starts at $\rho>1$ first goes
up; it then comes down on flatter ground, $\rho<1$ (catapult), or grows without end (divergent), or loses every unit (dead:
where the target is 0 its loss is 0 too). The loss alone cannot tell these apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from theodolite.core.checks import InputError, not_negative
from theodolite.theory.dynamics.descent import step_size_edge

Name = Literal["lazy", "stable", "catapult", "edge", "divergent", "dead", "slow", "undecided"]

FALLEN = 0.9
"""A loss below this share of its start has fallen."""

RISEN = 1.01
"""A loss above this multiple of its start has risen: less is not told from the noise of a batch."""

RAISED = 0.8
"""Where the edge falls below this share of what it was, the step was raised: beyond the edge then is a new launch.

At a constant step it is not: the sharpness overshoots the edge, by as much as a half, before it settles there."""

RUNAWAY, HOPELESS, DOWN = 1e3, 1e12, 0.1
"""A loss that grew by the first factor diverges, unless it flies as in a catapult; by the second, it does.

A catapult's loss peaks at about a tenth of the width, which is many times a start that was near its minimum. In flight the
curvature falls and is beyond the edge still; once it is not, the loss comes down, below the third share of its peak. Where
curvature is gone and the loss stays up, as in a classifier that is sure of the wrong classes, nothing will bring it down."""

BOUNCED = 1.5
"""A loss that rose by this factor above its lowest since the launch was thrown up, though it may have fallen far before."""

THROWN = 6.0
"""Beyond this multiple of the edge no flight comes down: rectifiers bear steps of 12 over the curvature, smooth units of 4."""

BELOW, AT, HOVERS, RECENT = 0.8, 0.9, 0.75, 3
"""Curvature over the edge: below the first it is away from it, above the second at it, and above the third it hovers there where
one of some recent looks saw it at it. Of Adam it is a saw: slowly up to the edge, and down to 0.8 of it at once."""

LAZY = 0.5
"""A convention: a tangent kernel that moved by less than this share of its norm is called lazy."""

GONE = 1e-9
"""A tangent kernel below this share of its start is dead: rounding leaves it some 1e-7 to 1e-16."""


@dataclass(frozen=True)
class Moment:
    """What decides a phase, at one step: loss, curvature and its error, step, and what is left of the tangent kernel.

    ``alive`` is the norm of the tangent kernel, as far as it tells samples apart, over that at the start; ``drift`` its
    relative change; ``edge`` the (preconditioned) curvature that the optimizer bears, (2 + 2 momentum) / lr unless told;
    ``peak`` the highest loss seen since the moment before, where it was looked for, and ``bounce`` the largest factor by which it
    rose meanwhile above its lowest. None where it was not measured.
    """

    step: int
    loss: float
    sharpness: float | None = None
    error: float = 0.0
    lr: float | None = None
    momentum: float = 0.0
    alive: float | None = None
    drift: float | None = None
    edge: float | None = None
    peak: float | None = None
    bounce: float = 1.0

    @property
    def highest(self) -> float:
        """The highest loss that is known of this moment and the time before it."""
        return self.loss if self.peak is None else max(self.loss, self.peak)

    @property
    def bearable(self) -> float | None:
        """The curvature at the edge of the step: ``edge`` where the optimizer has its own, else that of descent."""
        if self.edge is not None:
            return self.edge
        return step_size_edge(self.lr, momentum=self.momentum) if self.lr else None

    @property
    def ratio(self) -> float | None:
        r"""$\rho=\eta\lambda/(2+2\beta)$, 1 at the edge."""
        if self.sharpness is None or self.bearable is None:
            return None
        return self.sharpness / self.bearable

    @property
    def beyond(self) -> bool:
        """Whether the curvature lies beyond the edge by more than its error."""
        if self.sharpness is None or self.bearable is None:
            return False
        return self.sharpness - self.error > self.bearable


@dataclass(frozen=True)
class TrainingPhase:
    """A name, and in words the numbers that decided it."""

    name: Name
    reason: str


def training_phase(history: Sequence[Moment]) -> TrainingPhase:
    r"""The phase of a run that goes on, from what was measured at its steps so far, oldest first.

    `run_outcome` says how a finished run of an exact model ended.

    Source: lewkowycz2020; cohen2021. Differs from the source: *dead*, *edge* and *stable* are told apart from catapult and lazy.

    >>> start = Moment(0, loss=1.0, sharpness=3.0, lr=1.0, alive=1.0)
    >>> up = Moment(4, loss=5.0, sharpness=2.0, lr=1.0, alive=0.7)
    >>> training_phase([start, up, Moment(9, loss=0.1, sharpness=0.5, lr=1.0, alive=0.2)]).name
    'catapult'
    >>> training_phase([start, Moment(9, loss=0.0, sharpness=0.0, lr=1.0, alive=0.0)]).name
    'dead'
    """
    if not history:
        return TrainingPhase("undecided", "Nothing was measured yet.")
    first, now = history[0], history[-1]
    lost = next((m for m in history if not math.isfinite(m.loss)), None)
    if lost is not None:
        return TrainingPhase(
            "divergent", f"The loss became infinite or NaN at step {lost.step}; it began at {first.loss:.4g}."
        )
    read = next((m for m in reversed(history) if m.alive is not None), None)  # what overflowed cannot be read again
    if read is not None and read.alive is not None and read.alive <= GONE:
        return TrainingPhase(
            "dead",
            f"The network is dead: by step {read.step} it gives every sample the same answer and no weight can change that (the "
            f"part of the tangent kernel that separates samples fell to {read.alive:.2g} of its first value). The loss, "
            f"{now.loss:.4g}, can still be low. Start again with a smaller learning rate.",
        )
    if now.loss > (HOPELESS if _in_flight(history) else RUNAWAY) * max(first.loss, 1e-300):
        return TrainingPhase("divergent", f"The loss grew from {first.loss:.4g} to {now.loss:.4g} by step {now.step}.")
    ratios = [m for m in history if m.ratio is not None]
    if not ratios and len(history) > 1:
        return _by_loss(history)
    if len(history) < 2:
        why = "one more measurement is needed" if ratios else 'curvature was not measured (that needs level="standard")'
        return TrainingPhase("undecided", f"Loss {now.loss:.4g} at step {now.step}; {why}.")
    return _by_curvature(history, ratios)


def run_outcome(
    losses: Sequence[float], curvatures: Sequence[float], *, lr: float, fitted: float = 1e-6
) -> TrainingPhase:
    r"""How a finished run of an exact model ended: lazy, catapult, divergent, dead or slow.

    From the losses and the tangent kernel's largest eigenvalue at each step, known to rounding. A run that goes on, or whose
    curvature is an estimate taken now and then, has a `training_phase`: it leaves open what this decides.

    *Divergent*: not finite, or $10^{12}$ times the start and not falling. *Dead*: no tangent kernel is left, so that nothing
    moves any more (with target 0 the loss is 0 too). *Slow*: the loss is not below ``fitted`` of its start. Else *catapult*
    where $\gamma\lambda_0>2$ and the loss rose, and *lazy* where not.
    Source: lewkowycz2020. Differs from the source: dead and slow are told.

    >>> run_outcome([1.0, 4.0, 0.0], [3.0, 2.0, 1.0], lr=1.0).name, run_outcome([1.0, 0.0], [3.0, 0.0], lr=1.0).name
    ('catapult', 'dead')
    """
    not_negative(lr=lr)
    if len(losses) != len(curvatures) or len(losses) < 2:
        raise InputError(
            f"expected a loss and a curvature for each of two steps or more, got {len(losses)} and {len(curvatures)}"
        )
    first, last, product = losses[0], losses[-1], lr * curvatures[0]
    seen = (
        f"step times curvature went from {product:.4g} to {lr * curvatures[-1]:.4g}, the loss from {first:.4g} "
        f"by {max(losses):.4g} to {last:.4g} in {len(losses) - 1} steps"
    )
    if not math.isfinite(last) or (last > 1e12 * first and last >= 0.5 * max(losses)):
        return TrainingPhase("divergent", seen)
    if curvatures[-1] <= 1e-14 * curvatures[0]:
        return TrainingPhase("dead", seen)
    if last > fitted * first:
        return TrainingPhase("slow", seen)
    return TrainingPhase("catapult" if product > 2 and max(losses) > first else "lazy", seen)


def _in_flight(history: Sequence[Moment]) -> bool:
    """Whether a loss that is far up is that of a catapult, as far as can be told."""
    first, now = history[0], history[-1]
    if now.sharpness is None or first.sharpness is None or now.sharpness >= first.sharpness:
        return False
    if now.ratio is not None and now.ratio > THROWN:
        return False
    return now.ratio is None or now.ratio >= 1 or now.loss < DOWN * max(m.highest for m in history)


def is_launch(history: Sequence[Moment]) -> bool:
    """Whether a flight begins at the last moment: a step beyond the edge, at the start or newly raised.

    >>> is_launch([Moment(0, 1.0, sharpness=3.0, lr=1.0)]), is_launch([Moment(0, 1.0, sharpness=1.0, lr=1.0)])
    (True, False)
    """
    launches = _launches([m for m in history if m.ratio is not None])
    return bool(launches) and launches[-1] is history[-1]


def _launches(known: Sequence[Moment]) -> list[Moment]:
    return [m for before, m in zip((None, *known), known, strict=False) if m.beyond and _raised(before, m)]


def _by_curvature(history: Sequence[Moment], known: Sequence[Moment]) -> TrainingPhase:
    launches = _launches(known)
    now = history[-1]
    ratio = known[-1].ratio or 0.0
    last = "" if known[-1] is now else f" (measured at step {known[-1].step})"
    seen = (
        f"Your learning rate is {_distance(ratio)} the stability limit{last}; the loss went from {history[0].loss:.4g} to "
        f"{now.loss:.4g}."
    )
    since = [m for m in known if not launches or m.step > launches[-1].step]
    if _hovers(since, unseen=not launches and known[0] is not history[0]):
        return TrainingPhase(
            "edge", f"{seen} Sharpness has grown to that limit and stays there, the edge of stability."
        )
    if launches:
        start = launches[0]
        peak = max([start.loss, *(m.highest for m in history if m.step > start.step)])
        seen = (
            f"At step {start.step} your learning rate was {_distance(start.ratio or 0.0)} the stability limit. The loss "
            f"went from {start.loss:.4g} up to {peak:.4g} and is {now.loss:.4g}; your learning rate is {_distance(ratio)} "
            f"the limit{last or ' now'}."
        )
        fallen = now.loss < FALLEN * start.loss
        if fallen and known[-1] is launches[-1] and peak <= RISEN * start.loss:  # no curvature was read since
            return TrainingPhase("stable", f"{seen} The loss was never seen to rise: training survived it.")
        if fallen and ratio < 1:
            bounce = max([1.0, *(m.bounce for m in history if m.step > start.step)])
            if peak > RISEN * start.loss or bounce > BOUNCED:
                again = (
                    f" Between looks it rose to {bounce:.3g} times its lowest." if peak <= RISEN * start.loss else ""
                )
                return TrainingPhase(
                    "catapult", f"{seen}{again} A catapult: after the jump the loss surface is flatter."
                )
            return TrainingPhase(
                "stable", f"{seen} The loss was never seen to rise: the loss surface became flatter without a jump."
            )
        return TrainingPhase("undecided", f"{seen} The jump is not over: the loss may come down or diverge.")
    if now.loss < FALLEN * history[0].loss:
        return _calm(seen, now.drift)
    return TrainingPhase("undecided", f"{seen} Training is stable, but the loss has not fallen yet.")


def _hovers(known: Sequence[Moment], *, unseen: bool) -> bool:
    """Whether the curvature came from below to the edge, and is there or was lately; ``unseen``: it is not known where from."""
    ratios = [m.ratio or 0.0 for m in known]
    if not ratios or (min(ratios) >= BELOW and not unseen):
        return False
    return ratios[-1] >= HOVERS and max(ratios[-RECENT:]) >= AT


def _by_loss(history: Sequence[Moment]) -> TrainingPhase:
    """Without curvature: a loss that fell and was never seen to rise is that of stable steps; more is not known."""
    first, now = history[0], history[-1]
    peak = max(m.loss for m in history)
    seen = f"The loss went from {first.loss:.4g} to {now.loss:.4g}, at most {peak:.4g}. Curvature was not compared with a limit"
    if now.loss < FALLEN * first.loss and peak <= RISEN * first.loss:
        return TrainingPhase("stable", f"{seen}. The loss fell and was never seen to rise.")
    return TrainingPhase(
        "undecided", f'{seen} (that needs level="standard", enough steps and an optimizer with a known limit).'
    )


def _raised(before: Moment | None, now: Moment) -> bool:
    """Whether a step begins here, or was raised."""
    if before is None or before.bearable is None or now.bearable is None:
        return True
    return now.bearable < RAISED * before.bearable


def _calm(seen: str, drift: float | None) -> TrainingPhase:
    """Every step is stable: lazy only where the tangent kernel is known to stay."""
    if drift is None:
        return TrainingPhase("stable", f"{seen} Every step is stable. Whether features change was not measured.")
    if drift < LAZY:
        return TrainingPhase(
            "lazy",
            f"{seen} Every step is stable, but the network behaves like a linear model: its features hardly change (its "
            f"tangent kernel has changed by {drift:.1%}).",
        )
    size = f"by {drift:.0%}" if drift < 2 else f"{drift:.2g}-fold"
    return TrainingPhase(
        "stable",
        f"{seen} Every step is stable. The network is learning features (its tangent kernel has changed {size}).",
    )


def _distance(ratio: float) -> str:
    """Where a learning rate lies, in words: so many times below or above.

    >>> _distance(0.0185), _distance(0.97), _distance(1.3)
    ('54 times below', 'at', '1.3 times')
    """
    if ratio <= 0:
        return "far below"
    if 0.95 <= ratio < 1.05:
        return "at"
    times = max(ratio, 1 / ratio)
    return (f"{times:,.0f} times" if times >= 10 else f"{times:.1f} times") + " below" * (ratio < 1)
