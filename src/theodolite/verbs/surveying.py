"""Many instruments, one subject: each instrument whose needs are met is read, the others are skipped with a reason."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from theodolite import catalogue
from theodolite.core.checks import InputError
from theodolite.core.multiple_comparisons import in_families
from theodolite.core.question import Answer, Cost, Question, Skipped
from theodolite.core.reading_table import row_of
from theodolite.core.survey_budget import SurveyBudget
from theodolite.io.workers import Backend, completed
from theodolite.verbs._survey_facts import facts_of, nothing_read, says_nothing, skips_of, unread
from theodolite.verbs.diagnosis import diagnosis_of
from theodolite.verbs.subjects import subject_of, subject_to_judge
from theodolite.verbs.surveys import Survey

if TYPE_CHECKING:
    from theodolite.core.reading import Reading
    from theodolite.core.subject import Subject

NOTHING = "found nothing it could measure here"


def survey(
    target: Subject | str | Path | Any,
    *,
    instruments: Iterable[str] = (),
    cost: Cost = "train",
    budget: str | float | None = "60s",
    jobs: int = 1,
    backend: Backend = "loky",
    out: str | Path | None = None,
    **facts: Any,
) -> Survey:
    """Use every instrument that applies, or those named, up to a ``cost`` and within a ``budget`` of time.

    ``target`` is a Subject, a module, a state dict or a path; ``facts`` are the other fields of `Subject` (data, loss, lr,
    ...). ``validation`` is held-out data, whose loss and accuracy the page shows too. The data is read once for all
    instruments; each counts its work, and the numbers of samples, probes and iterations are chosen to fit; errors
    include that choice. ``budget`` is seconds of one core's work, ``"2m"``, or None for no limit (all of the data): a busy
    machine takes longer, at most three times as long, and reads the same. With several ``jobs``
    the tensors of a checkpoint, or the instruments of a model, are distributed over workers. With ``out`` results are
    written to that folder as they come, and an interrupted survey of the same checkpoint continues there.
    """
    started = time.perf_counter()
    validation = facts.pop("validation", None)
    subject = subject_of(target, **facts)
    if out is not None:
        subject = subject.storing(Path(out))
    names = tuple(catalogue.question(name).name for name in instruments) or catalogue.instrument_names()
    reasons = {name: _reason_to_skip(name, subject, cost) for name in names}
    ready = [name for name in names if not reasons[name]]
    shared = SurveyBudget.opened(budget)
    results = _results(subject, ready, shared, jobs=jobs, backend=backend)
    answers = tuple(result for result in results if isinstance(result, Answer))
    if subject.faults and not answers:
        raise InputError(next(iter(subject.faults.values())))
    judged = _to_judge(subject, validation)
    found = diagnosis_of(judged, subject.name)
    _forgive_constants(subject)
    unsurveyed = unread(subject, answers)
    if subject.model is None and says_nothing(answers):
        raise nothing_read(subject, unsurveyed, answers)
    skipped = [Skipped(name, reason) for name, reason in reasons.items() if reason]
    skipped += [result for result in results if isinstance(result, Skipped)]
    skipped += [Skipped(f"weights {name}", reason) for name, reason in subject.faults.items()]
    skipped += skips_of(unsurveyed)
    facts_seen = facts_of(subject, time.perf_counter() - started)
    return Survey(subject.name, answers, tuple(skipped), facts_seen, dict(subject.faults), judged, unsurveyed, found)


def _to_judge(subject: Subject, validation: Any) -> Subject:
    """The subject of the diagnosis; what a pass over the weights of a checkpoint has found of each tensor is known there."""
    if subject.model is not None:
        return subject_to_judge(subject, validation=validation)
    from theodolite.evidence.weights import facts_of_row
    from theodolite.instruments._common.weights import seen_before

    rows = seen_before(subject, "weight_facts")
    subject.seen["known weight facts"] = {name: facts_of_row(row) for name, row in rows.items() if row is not None}
    return subject


def _forgive_constants(subject: Subject) -> None:
    """Masks and constants of a graph are infinite on purpose: no faults of a checkpoint."""
    if subject.faults:
        from theodolite.evidence.weights import is_constant, weight_facts

        facts = weight_facts(subject)
        for name in [name for name in subject.faults if name in facts and is_constant(facts[name])]:
            del subject.faults[name]


def _results(
    subject: Subject, ready: Sequence[str], shared: SurveyBudget, *, jobs: int, backend: Backend
) -> list[Answer | Skipped]:
    """Weights read once, the data visited once, then instrument by instrument, the cheapest first."""
    from theodolite.report.progress import tracked

    for _ in tracked(["weights"], total=1, label="reading weights", inner=subject.progress):
        _read_weights(subject, ready, jobs=jobs, backend=backend)
    if subject.model is None:  # its tensors were shared out, and what is left is arithmetic on what was found
        jobs, backend = 1, "loky"
    results: dict[str, Answer | Skipped] = {name: Skipped(name, NOTHING) for name in ready if not _finds(name, subject)}
    questions = [catalogue.question(name) for name in ready if name not in results]
    shared = _priced(shared, subject, questions)
    if any("features" in question.sees for question in questions):
        for _ in tracked(["data"], total=1, label="reading the data", left=shared.left):
            _visit(subject, shared)
    order = get_args(Cost)
    queue = sorted(shared.prices, key=lambda name: (shared.prices[name], order.index(catalogue.question(name).cost)))
    work = completed(_answer, [(name, subject, shared) for name in queue], jobs=jobs, backend=backend)
    inner = subject.progress if jobs == 1 else None
    for index, (result, faults) in tracked(
        work, total=len(queue), label="reading instruments", inner=inner, left=shared.left
    ):
        results[queue[index]] = result
        subject.faults.update(faults)
    results.update(
        _looked_again([result for result in results.values() if isinstance(result, Answer)], subject, shared)
    )
    return [results[name] for name in sorted(ready, key=lambda n: order.index(catalogue.question(n).cost))]


def _looked_again(answers: Sequence[Answer], subject: Subject, shared: SurveyBudget) -> dict[str, Answer]:
    """Answers with an error above its number, once more, where seconds are left that were thought to be enough without."""
    wide = [answer for answer in answers if "gradient" in answer.question.sees or "product" in answer.question.sees]
    wide = sorted((answer for answer in wide if answer.unknown), key=lambda answer: shared.prices[answer.question.name])
    found = {}
    for place, answer in enumerate(wide):
        allowance = shared.second(answer.question.name, len(wide) - place, subject.allowance.samples)
        if allowance is None:
            continue
        started = time.perf_counter()
        with contextlib.suppress(Exception):  # the first answer stands
            again = Answer(answer.question, read(answer.question.name, subject.within(allowance)))
            if again.readings and again.unknown <= answer.unknown:
                seconds = answer.seconds + time.perf_counter() - started
                found[answer.question.name] = replace(again, seconds=seconds)
    return found


def read(name: str, target: Subject | Any, **facts: Any) -> tuple[Reading, ...]:
    """One instrument's readings of a subject; errors are raised, not collected.

    >>> import torch, theodolite as th
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
    >>> readings = th.read("initialization", model)
    """
    from theodolite.core.state import untouched

    subject, chosen = subject_of(target, **facts), catalogue.instrument(name)
    missing = chosen.missing(subject)
    if missing:
        raise InputError(f"expected a subject with {', '.join(missing)} for {name}, got none; pass them to Subject")
    with untouched(subject.model):
        readings = in_families(chosen.read(subject))
    subject.store.put(f"answer {chosen.name}", [row_of(reading) for reading in readings])
    return readings


def _read_weights(subject: Subject, names: Sequence[str], *, jobs: int, backend: Backend) -> None:
    """All that these instruments ask of weights, each tensor read once; of a checkpoint also whether all are finite."""
    asked = dict.fromkeys(part for name in names for part in catalogue.question(name).of_weights)
    if subject.model is None:  # what the diagnosis asks of them, while they are in memory
        asked["weight_facts"] = None
    if asked or subject.model is None:
        from theodolite.instruments._common.weights import weighed

        weighed(subject, *asked, jobs=jobs, backend=backend)


_NEEDS = {
    "adapter": "a low-rank adapter",
    "lr": "lr (--lr)",
    "origin": "origin, the weights before training (--against)",
}


def _reason_to_skip(name: str, subject: Subject, cost: Cost) -> str:
    chosen = catalogue.question(name)
    missing = chosen.missing(subject)
    if missing:
        told = ", ".join(_NEEDS.get(need, need) for need in missing)
        return f"needs {told}, which was not given"
    trainable = subject.model is not None and any(p.requires_grad for p in subject.model.parameters())
    if chosen.cost in ("backward", "hvp", "train") and not trainable:
        return "needs trainable parameters, and there are none"
    order = get_args(Cost)
    return f"costs {chosen.cost}, more than {cost}" if order.index(chosen.cost) > order.index(cost) else ""


def _finds(name: str, subject: Subject) -> bool:
    """Whether an instrument that can tell so without work has anything to read here; what fails is said when it is read."""
    question = catalogue.question(name)
    if subject.model is None or "loss" not in question.needs:  # only what costs gradients is worth asking
        return True
    from theodolite.core.state import untouched

    finds = catalogue.instrument(name).finds
    if finds is None:
        return True
    with contextlib.suppress(Exception), untouched(subject.model):
        return finds(subject)
    return True


def _priced(shared: SurveyBudget, subject: Subject, questions: Sequence[Question]) -> SurveyBudget:
    """With what each instrument costs at the least, from the price of single passes here, and what a step costs."""
    kinds = {kind for question in questions for kind in question.sees} - {"features"}
    if not kinds or subject.model is None or subject.data is None:
        return shared.priced({question.name: 0.0 for question in questions})
    from theodolite.instruments._common.data_visit import pace_of

    pace = pace_of(subject, *sorted(kinds))
    step = pace.step() if "gradient" in kinds else 0.0
    return shared.priced({question.name: pace.price(question.sees) for question in questions}, step=step)


def _visit(subject: Subject, shared: SurveyBudget) -> None:
    """The features of all layers, seen once; what goes wrong there is said by the instruments that ask for them."""
    from theodolite.instruments._common.data_visit import features_of

    with contextlib.suppress(Exception):
        features_of(subject.within(shared.visit(subject.allowance.samples)))


def _answer(name: str, subject: Subject, shared: SurveyBudget) -> tuple[Answer | Skipped, dict[str, str]]:
    """What the instrument says, and the tensors it could not read (a worker's own subject is lost when it ends)."""
    started = time.perf_counter()
    refusal = shared.refusal(name)
    if refusal:
        return Skipped(name, refusal), subject.faults
    try:
        readings = read(name, subject.within(shared.allowance(name, subject.allowance.samples)))
    except Exception as error:  # one instrument that fails must not lose the others
        return Skipped(name, _reason(error, name)), subject.faults
    if not readings:
        return Skipped(name, NOTHING), subject.faults
    return Answer(catalogue.question(name), readings, time.perf_counter() - started), subject.faults


def _reason(error: Exception, name: str) -> str:
    """Why an instrument failed, in the words of whoever raised it; what torch says of itself is left to `read`."""
    frames, kind = traceback.extract_tb(error.__traceback__), type(error).__name__
    inside = bool(frames) and "torch" in Path(frames[-1].filename).parts
    if not inside and not isinstance(error, RuntimeError):
        return f"{kind}: {' '.join(str(error).split()) or 'no message'}"
    return f"torch cannot compute it for this model and data ({kind}); th.read({name!r}, subject) shows why"
