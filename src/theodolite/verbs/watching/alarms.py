"""What is said while a run goes wrong: findings from the history of looks, at no price beyond theirs.

The loss is the probe's as the step sees it. A ratio of measured to predicted change alone is no alarm, since the noise of batches
turns its sign near a minimum: it counts with the size of the step, and with the loss beside its start.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from theodolite.core.ailment import SEVERITIES, Finding, Severity
from theodolite.verbs.watching.records import Record, has_gradient, last_standing

LOG = logging.getLogger("theodolite")
LEVEL = {"critical": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}

DOUBLED, RISEN = 1.8, 1.15
"""A loss above this multiple of its start is too much by itself, and above this one where the last step overshot too."""
BOLD, OVERSHOT, WORSE = 0.05, 0.2, 0.0
"""Predicted change as a share of the loss from which on a step is bold; ratios below which it overshot, and did harm."""
BACK, LOW = 5.0, 0.25
"""A loss that has come back: this multiple of its lowest, which was below this share of the start, and above that now."""
STILL, AGAIN = 0.9, 3
"""A loss above this share of its start stands still; where so many looks in turn saw a step overshoot, that is why."""
RUNAWAY, GONE = 1e3, 1e-9
UP, LOOKS = 1.15, 2
"""Held-out loss above this multiple of its lowest at so many looks in turn, while the training loss still falls: overfitting."""


MISSING, IDLE = "in no group", "without a gradient"
"""Why a step does not change a parameter."""


class Stopped(RuntimeError):  # noqa: N818  a decision of the user, not an error
    """Raised out of a watch with ``stop_on``: the finding that training was stopped for is ``finding``."""

    def __init__(self, line: str, finding: Finding) -> None:
        super().__init__(line)
        self.finding = finding


Listener = Callable[[int, Finding], None]


@dataclass
class Alarms:
    """Which findings stand, so that each is told once when it appears or gets worse."""

    on_finding: Listener | None = None
    stop_on: Severity | None = None
    standing: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.stop_on is not None and self.stop_on not in SEVERITIES:
            raise ValueError(f"expected stop_on to be one of {', '.join(SEVERITIES)}, got {self.stop_on!r}")

    def told(self, step: int, found: Sequence[Finding]) -> list[str]:
        """One line for each finding that is new or has got worse; the logger and the listener hear it."""
        lines = []
        for finding in found:
            before = self.standing.get(finding.name)
            if before is not None and SEVERITIES.index(before.severity) <= SEVERITIES.index(finding.severity):
                continue
            line = line_of(step, finding)
            lines.append(line)
            LOG.log(LEVEL[finding.severity], line)
            if self.on_finding is not None:
                self.on_finding(step, finding)
        self.standing = {finding.name: finding for finding in found}
        return lines

    def stop(self, step: int) -> None:
        """Raise where a finding stands that training is to be stopped for."""
        for finding in self.standing.values():
            if self.stop_on and SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.stop_on):
                raise Stopped(line_of(step, finding), finding)


def line_of(step: int, finding: Finding) -> str:
    """One line for a log.

    >>> line_of(40, Finding(name="step-too-large", severity="critical", says="the loss rose.", remedy="lr at most 0.013"))
    'step 40: step too large: the loss rose; lr at most 0.013'
    """
    return f"step {step}: {finding.name.replace('-', ' ')}: {finding.says.rstrip('.')}; {finding.remedy}"


def findings_of_run(
    records: Sequence[Record], *, events: Mapping[str, float], left_out: Mapping[str, Sequence[str]] | None = None
) -> tuple[Finding, ...]:
    """What the looks so far say is wrong, worst first; what a thinned look left out stands as it was read last.

    ``left_out`` are names of parameters that no step changes, by the reason: ``in no group`` or ``without a gradient``. Of an
    optimizer that maximizes a loss that rises says nothing.
    """
    records = [*records[:-1], *last_standing(records)]
    rises = () if events.get("maximizes") else _too_large(records)
    found = [*rises, *_dead(records), *_overfits(records), *_kept(events), *_left_out(left_out or {})]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def largest_lr(record: Record) -> float:
    """The largest step that the last look's own numbers allow; a third of the present one where it has none."""
    facts, lr = record.facts, record.lr or math.nan
    bounds = [0.3 * lr]
    if facts.get("sharpness", 0.0) > facts.get("edge", math.inf):
        bounds.append(0.5 * lr * facts["edge"] / facts["sharpness"])
    best = facts.get("best_factor", math.nan)
    if facts.get("predicted", 0.0) < 0 and 0 < best < 1:
        bounds.append(lr * best)
    return float(f"{min(bounds):.2g}")


def _too_large(records: Sequence[Record]) -> Iterator[Finding]:
    told = [record for record in records if "step_loss" in record.facts]
    if len(told) < 2:
        return
    losses = [record.facts["step_loss"] for record in told]
    first, now, last = losses[0], losses[-1], told[-1]
    if not math.isfinite(now):
        finite = [value for value in losses if math.isfinite(value)]
        seen = "the loss is not finite"
        if finite:
            seen += f"; it began at {first:.3g} and was {finite[-1]:.3g} last"
        yield _step(seen, last, replace_lr=0.1 * (last.lr or math.nan))
        return
    lowest = min(losses)
    ratio, overshot = last.facts.get("trust", math.nan), _overshot(last)
    seen = f"the loss of the probe went from {first:.3g} to {now:.3g}"
    change, promise = last.facts.get("change", math.nan), last.facts.get("predicted", math.nan)
    read = next((record for record in reversed(told) if has_gradient(record)), last)
    which = "the last step" if read is last else f"the step before step {read.step}"
    step = "" if math.isnan(ratio) else f"; {which} changed it by {change:+.2g}, the gradient promises {promise:+.2g}"
    whole = [record for record in told if has_gradient(record)]
    if first > 0 and now > RUNAWAY * first:
        yield _step(f"{seen}, more than a thousandfold: the run diverges", last, replace_lr=0.1 * (last.lr or math.nan))
    elif first > 0 and (now > DOUBLED * first or (now > RISEN * first and overshot)):
        yield _step(seen + step, last)
    elif first > 0 and now > STILL * first and len(whole) > AGAIN and all(_overshot(r) for r in whole[-AGAIN:]):
        yield _step(f"{seen}, and the last {AGAIN} looks saw steps that overshoot{step}", last)
    elif first > 0 and lowest < LOW * first < now and now > BACK * lowest and overshot and ratio < WORSE:
        yield replace(_step(f"{seen}, having been {lowest:.3g}{step}", last), severity="warning")


def _overshot(record: Record) -> bool:
    """Whether the last step was bold and gained little of what the gradient promised, or did harm."""
    facts = record.facts
    loss, promised = abs(facts.get("step_loss", 0.0)), abs(facts.get("predicted", 0.0))
    return loss > 0 and promised > BOLD * loss and facts.get("trust", math.nan) < OVERSHOT


def _step(seen: str, record: Record, *, replace_lr: float | None = None) -> Finding:
    known = record.lr is not None
    lr = float(f"{replace_lr:.2g}") if replace_lr is not None and known else largest_lr(record) if known else math.nan
    return Finding(
        name="step-too-large",
        severity="critical",
        says=seen + ".",
        remedy=f"lr at most {lr:g}" if known else "take a smaller lr",
        suggested={"lr": lr} if known else {},
        evidence=tuple(reading for look, reading in record.readings if look in ("loss", "last-step", "sharpness")),
    )


def _dead(records: Sequence[Record]) -> Iterator[Finding]:
    facts = records[-1].facts if records else {}
    alive, gradient = facts.get("alive", math.nan), facts.get("gradient", math.nan)
    if alive <= GONE or (gradient == 0 and facts.get("step_loss", 0.0) > 0 and len(records) > 1):
        yield Finding(
            name="units-dead",
            severity="critical",
            says="no weight makes a difference between samples any more: the network is dead.",
            remedy="start again with a smaller lr",
        )


def _overfits(records: Sequence[Record]) -> Iterator[Finding]:
    told = [r for r in records if math.isfinite(r.facts.get("validation_loss", math.nan))]
    if len(told) <= LOOKS:
        return
    held = [r.facts["validation_loss"] for r in told]
    place = min(range(len(held)), key=held.__getitem__)
    rose = len(held) - place > LOOKS and all(value > UP * held[place] for value in held[-LOOKS:])
    if rose and held[place] > 0 and told[-1].facts["loss"] < told[place].facts["loss"]:
        yield Finding(
            name="overfits",
            severity="warning",
            says=f"the held-out loss was {held[place]:.3g} at step {told[place].step} and is {held[-1]:.3g}, while that of the "
            "probe still falls.",
            remedy=f"keep the weights of step {told[place].step}, or regularize",
            suggested={"stop_at": told[place].step},
        )


def _kept(events: Mapping[str, float]) -> Iterator[Finding]:
    kept, steps = events.get("gradient kept", 0.0), events.get("optimizer steps", 0.0)
    if kept >= 3 and kept >= 0.5 * (steps - 1):
        yield Finding(
            name="gradient-accumulates",
            severity="critical",
            says=f"the gradient was not cleared before {kept:.0f} of {steps:.0f} steps.",
            remedy="optimizer.zero_grad() before each backward pass",
            suggested={"zero_grad": True},
        )


def _left_out(names: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    told = {why: own for why, own in names.items() if own}
    if not told:
        return
    missing = list(told.get(MISSING, ()))
    remedies = ["add them to the optimizer"] if missing else []
    remedies += ["let the loss depend on them"] if told.get(IDLE) else []
    yield Finding(
        name="not-in-optimizer",
        severity="note",
        says=f"trainable parameters that no step changes: {', '.join(_few(own, why) for why, own in told.items())}.",
        remedy=f"{', '.join(remedies)}, or p.requires_grad_(False)",
        suggested={"add_to_optimizer": missing} if missing else {},
    )


def _few(names: Sequence[str], why: str) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{', '.join(names[:4])}{more} ({why})"
