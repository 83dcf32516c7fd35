r"""Are a few weights so much larger than the rest of their layer that they dominate it?

Trained weights can have heavy tails, so a large maximum alone means nothing. What no tail produces is a gap: if
$P(|w|>t)\propto t^{-\alpha}$, the k largest lie a factor r above the next with probability $r^{-\alpha k}$ (Renyi). $\alpha$ is
Hill's estimate from the ranks below the gap, moved two standard errors to the heavy side. Eight gaps are tried per layer;
entries count as outliers if the chance of all of them together is below 1e-4 and they also lie three times above the Gaussian
maximum $\sqrt{2\log n}$. With a model and data the harm is measured: the entries are clamped to the next largest and the loss
is computed again; clamping is advised only then. Outliers that the network needs are a note. Without data it is a warning if
one entry makes up most of its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from theodolite.core.ailment import Ailment, Finding, Severity, evidence, figure, times
from theodolite.core.subject import Subject
from theodolite.evidence.thresholds import CRITICAL, NOTHING, RARELY
from theodolite.evidence.weights import WeightFacts, is_table, weight_facts
from theodolite.io.weights import owners_of
from theodolite.measure.spectra.entry_tails import BODY, MOST_DETACHED, EntryTail
from theodolite.theory.spectra.entry_nulls import gap_probability, gaussian_maximum

if TYPE_CHECKING:
    from torch import Tensor

    from theodolite.evidence.task import Score

CHANCE, HIGH = 1e-4, 3.0
"""The chance of all gaps together, and how many times the Gaussian maximum outliers must be."""


def judge(subject: Subject) -> Iterator[Finding]:
    owners = owners_of(subject.model)
    facts_of = weight_facts(subject).values()
    judged = [
        facts for facts in facts_of if facts.tail is not None and not is_table(facts.name, owners.get(facts.name))
    ]
    tests = MOST_DETACHED * max(1, len(judged))
    found = [facts for facts in judged if _chance(facts) * tests < CHANCE and _is_high(facts)]
    if not found:
        return
    found.sort(key=lambda facts: -_tail(facts).row_share)
    worst = found[0]
    tail = _tail(worst)
    dominates = tail.row_share >= CRITICAL
    before, after = _cut_back(subject, found)
    least = "" if tail.count == 1 else "the smallest of them is "
    found_words = "is an outlier: it" if tail.count == 1 else "are outliers: the largest"
    one = "" if tail.count == 1 else "one "
    says = (
        f"{tail.count} of {tail.entries} entries of {worst.name} {found_words} is {times(tail.height)} times the standard "
        f"deviation of the others (Gaussian maximum: {gaussian_maximum(tail.entries):.2g}), {least}{times(tail.ratio)} "
        f"times as large as the next entry, and {one}makes up {tail.row_share:.0%} of its row."
    )
    severity: Severity = "warning" if dominates else "note"
    remedy = "compare with an earlier checkpoint"
    readings = [evidence("largest entry in standard deviations", _tail(f).height, where=f.name) for f in found[:20]]
    if before is not None and after is not None:
        severity = _severity(before.loss, after.loss, dominates=dominates)
        says += f" With outliers clamped to the next largest entry the loss is {figure(after.loss)}, not {figure(before.loss)}."
        readings.append(evidence("loss with the entries clamped", after.loss, stderr=after.stderr, where=worst.name))
        if severity != "note":  # only what was tried and does not cost anything
            remedy += f"; model.get_parameter({worst.name!r}).data.clamp_(-{tail.body:.3g}, {tail.body:.3g})"
    yield Finding(severity=severity, where=worst.name, says=says, remedy=remedy, evidence=tuple(readings))


def _severity(before: float, after: float, *, dominates: bool) -> Severity:
    """By what cutting the entries back does to the loss: a network that uses them is left alone."""
    if not before - after <= RARELY * abs(before):
        return "critical" if dominates else "warning"
    return "warning" if dominates and after <= before * (1 + NOTHING) else "note"


def _tail(facts: WeightFacts) -> EntryTail:
    assert facts.tail is not None
    return facts.tail


def _chance(facts: WeightFacts) -> float:
    tail = _tail(facts)
    heavy = tail.exponent * max(0.3, 1 - 2 / min(BODY, tail.entries // 10) ** 0.5)
    return gap_probability(max(1.0, tail.ratio), rank=tail.count, exponent=heavy)


def _is_high(facts: WeightFacts) -> bool:
    return bool(_tail(facts).height >= HIGH * gaussian_maximum(_tail(facts).entries))


def _cut_back(subject: Subject, found: list[WeightFacts]) -> tuple[Score | None, Score | None]:
    """Scores as it is and with the entries cut back to the next largest; nothing where there is no loss."""
    if subject.model is None or not subject.has("loss"):
        return None, None
    from theodolite.evidence.batches import batches
    from theodolite.evidence.start import at_weights
    from theodolite.evidence.task import score_of, scores

    before = scores(subject)[0]
    if before is None:
        return None, None
    changed: dict[str, Tensor] = {}
    for facts in found:
        tail = _tail(facts)
        flat = subject.weights[facts.name].read().detach().clone()
        flat.view(-1)[list(tail.places)] = flat.view(-1)[list(tail.places)].clamp(-tail.body, tail.body)
        changed[facts.name] = flat
    with at_weights(subject.model, changed):
        after = score_of(subject, batches(subject))
    return before, after


ailment = Ailment(question="Are single weights outliers?", needs={"weights"}, judge=judge)
