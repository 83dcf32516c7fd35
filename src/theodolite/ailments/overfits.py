"""Has the network gone on to fit its training data at the expense of held-out data?

Every trained network has a gap; it is an ailment where something was lost. With the held-out loss of the run: at the end it
stands above its best by more than three standard errors and by a material amount, while the training loss went on falling.
Without: the training data are known by heart while the held-out loss is nearly that of a constant answer, or above it, and the
held-out accuracy lies far below the training accuracy (binomial error, three standard errors). Where nothing was lost, three
standard errors are exceeded once in 700.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from theodolite.ailments._common.chart import Chart, RunMoment, seen
from theodolite.ailments._common.fit import Fit, Scores
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import SURE
from theodolite.core.ailment import Ailment, Finding

RISEN, LOST = 0.25, 0.12
"""By what share of its best, and of a constant answer's loss, the held-out loss must have risen."""
BY_HEART, NEAR_CHANCE, GAP = 0.3, 0.7, 0.12
"""Training loss below, held-out loss above these shares of a constant answer's; and the gap in accuracy."""
GROSS = 0.25
"""A gap in accuracy that is an ailment by itself."""
EXACT, UNEXPLAINED = 0.05, 0.15
"""The same for numbers: shares of a constant answer's loss that are left on training data, and lost beyond on held-out data."""


def judge(chart: Chart) -> Iterator[Finding]:
    fit = chart.fit
    if fit is None or fit.validation is None or not math.isfinite(chart.chance):
        return
    if not fit.training.loss < fit.validation.loss:
        return
    best = _best_moment(chart, fit)
    gap = fit.training.accuracy - fit.validation.accuracy
    known = gap == gap
    far = not known or gap > max(GAP, SURE * _binomial(fit.validation))
    by_heart = fit.training.loss < BY_HEART * chart.chance
    apart = by_heart and fit.validation.loss - SURE * fit.validation.stderr > NEAR_CHANCE * chart.chance and far
    gross = by_heart and known and gap > max(GROSS, SURE * _binomial(fit.validation))
    if (
        not known and fit.training.loss < EXACT * chart.chance
    ):  # numbers that are met exactly, and clearly missed elsewhere
        lost = fit.validation.loss - fit.training.loss
        gross = lost > UNEXPLAINED * chart.chance and lost > SURE * fit.validation.stderr
    if best is None and not apart and not gross:
        return
    yield _finding(chart, fit, best, gap)


def _best_moment(chart: Chart, fit: Fit) -> RunMoment | None:
    """The look with the best held-out loss, where the end is clearly worse."""
    assert fit.validation is not None
    looks = [m for m in chart.history if math.isfinite(m.validation_loss)]
    if len(looks) < 3:
        return None
    best = min(looks, key=lambda m: m.validation_loss)
    last = looks[-1]
    risen = last.validation_loss - best.validation_loss
    error = math.hypot(fit.validation.stderr, _scatter([m.validation_loss for m in looks]))
    enough = risen > RISEN * best.validation_loss and risen > LOST * chart.chance and risen > SURE * error
    return best if enough and best.step < last.step and fit.training.loss < best.validation_loss else None


def _scatter(values: list[float]) -> float:
    """The noise from look to look: the median of second differences, which a smooth curve does not have."""
    bends = sorted(abs(a - 2 * b + c) / math.sqrt(6) for a, b, c in zip(values, values[1:], values[2:], strict=False))
    return bends[len(bends) // 2] if bends else 0.0


def _binomial(scores: Scores) -> float:
    share = min(max(scores.accuracy, 0.01), 0.99)
    return math.sqrt(share * (1 - share) / max(1, scores.samples))


def _finding(chart: Chart, fit: Fit, best: RunMoment | None, gap: float) -> Finding:
    assert fit.validation is not None
    told = "" if gap != gap else f" Accuracy is {fit.training.accuracy:.1%} and {fit.validation.accuracy:.1%}."
    if best is None:
        seen_best, remedy, suggested = "", "more data, augmentation, weight decay or dropout; a smaller network", {}
    else:
        last = chart.history[-1]
        accuracy = "" if math.isnan(best.validation_accuracy) else f" (accuracy {best.validation_accuracy:.1%})"
        seen_best = (
            f" At step {best.step} the held-out loss was {best.validation_loss:.3g}{accuracy}, at step {last.step} it is "
            f"{last.validation_loss:.3g}."
        )
        remedy = f"stop at step {best.step} and keep those weights; or more data, augmentation, weight decay or dropout"
        suggested = {"early_stopping": best.step}
    return Finding(
        severity="warning",
        says=f"It fits its training data better and better and held-out data no more: loss {fit.training.loss:.3g} there, "
        f"{fit.validation.loss:.3g} here.{told}{seen_best}",
        remedy=remedy,
        suggested=suggested,
        evidence=(
            seen("loss on training data", fit.training.loss, stderr=fit.training.stderr),
            seen("loss on held-out data", fit.validation.loss, stderr=fit.validation.stderr),
            seen("loss of the best constant answer", chart.chance),
        ),
    )


ailment = Ailment(
    question="Does it overfit?",
    needs={"model", "data", "loss", "validation"},
    signs=("fit", "history"),
    judge=judge,
    examples={
        "sick": (
            lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 3e-3), samples=96, steps=400, noise=0.3),
        ),
        "healthy": (
            lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-3)),
            lambda seed: patient(seed, lambda own: torch.optim.SGD(own, 0.1), noise=0.3),
        ),
    },
)
