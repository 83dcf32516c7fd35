"""The pool of interventions, each tried on a copy of the user's training; the cause is the smallest that recovers most.

All arms begin with a quarter of the steps; the better half goes on to half of them, the best few to all (successive halving).
What the run has lost is the share of the skill of the best arm that it has not. A run near its best arm is healthy, whatever
its signs look like.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from torch import nn

from theodolite.core.subject import Subject
from theodolite.evidence.batches import is_thinned, price, training_and_held_out
from theodolite.evidence.constant_answers import constant_loss
from theodolite.evidence.interventions import Intervention, Outcome
from theodolite.evidence.loss_checks import asked_beside, falls_without_end, trained_beside
from theodolite.evidence.start import passes, steps_are_known, steps_made
from theodolite.evidence.task import Score, is_language, scores
from theodolite.evidence.thresholds import (
    A_FEW,
    A_RUN,
    CRITICAL,
    LATE,
    LONG,
    MOST,
    NOTHING,
    PART,
    PARTS,
    RARELY,
    SHORT,
    WELL,
    WORST,
    WORTH,
)
from theodolite.evidence.trial import (
    AS_IT_IS,
    Change,
    Gain,
    Trial,
    evaluations,
    gain_of,
    judged_constant,
    judged_majority,
    loss_to_beat,
    present_score,
    present_skill,
)
from theodolite.evidence.work import work_of

FURTHER = {"cpu": 6.0, "cuda": 15.0}
"""Nominal seconds for which the last arms are taken on where a run is held back by something that they have not shown, or where
one of them is ahead of a plain copy and has not had the steps to be ahead of the run. On a GPU a step costs its calls, whatever
the batch: smaller ones would not be cheaper."""

FIRST_KEPT, HEAVY = 6, 1 << 28
"""Arms that are taken beyond a quarter of the steps, and bytes of parameters from which on they are a third as many: a copy with
its optimizer's state takes three times those."""

FIRST_STEPS = ("lr x 0.1", "lr x 10")
"""Steps behind which others are tried only where they helped: the next of each is reckoned with, those after it are not."""

FACT = 7
"""The rank below which an intervention undoes an exact fact, such as a parameter that no step changes: where undoing it recovers
something it is the cause, even if another arm recovers more."""

LONGER = 60
"""The rank from which on an intervention is more training."""

HORIZON = 20_000
"""Steps that are taken to be planned where nobody said: a run that comes down slowly may have them before it."""


@dataclass
class Experiment:
    """Arms by the name of their change, what they are compared with, and the cause where one was found."""

    subject: Subject
    arms: dict[str, Trial] = field(default_factory=dict)
    alive: list[Intervention] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    cause: Outcome | None = None
    why_not: str = ""
    reproduced: bool = True

    @property
    def too_short(self) -> bool:
        """Whether the copy as it is has learned nothing where the run has: its steps were too few to compare arms."""
        if self.plain is None or not steps_made(self.subject) or not present_skill(self.subject) > NOTHING:
            return False
        return self.plain.steps < steps_made(self.subject) and not _has_learned(self, AS_IT_IS.name)

    @property
    def tells_little(self) -> bool:
        """Whether arms have made so few steps that one which something measured asks for is not refuted by being behind."""
        return self.too_short or (self.plain is not None and self.plain.steps < min(A_RUN, steps_made(self.subject)))

    @property
    def plain(self) -> Trial | None:
        """The training as it is, on a copy."""
        return self.arms.get(AS_IT_IS.name)

    def trial(self, change: Change, steps: int) -> Trial:
        """The arm of that change, taken on to so many steps."""
        if change.name not in self.arms:
            self.arms[change.name] = arm = Trial(self.subject, change)
            first = (
                None
                if change.from_here or change.scored_by or math.isfinite(judged_constant(self.subject))
                else arm.score()
            )
            if first is not None:
                self.subject.seen.setdefault("untrained losses", []).append(first.loss)
        return self.arms[change.name].advance(max(1, round(change.stretch * steps)))


def has_won(subject: Subject) -> bool:
    """Whether nearly all was won that can be, on held-out data where there are any: then nothing can have cost it much."""
    return present_skill(subject) >= WELL


def has_fitted(subject: Subject) -> bool:
    """Whether a run has come nine tenths of the way down on what it trains on: its steps are not what keeps its loss up."""
    own, constant = scores(subject)[0], constant_loss(subject)
    return bool(steps_made(subject)) and own is not None and 0 <= own.loss <= WORTH * constant


def experiment(subject: Subject, interventions: Iterable[Intervention]) -> Experiment:
    """Try all of them, and find the cause of what was lost, if anything was."""
    found = Experiment(subject)
    if subject.model is None or subject.optimizer is None or not subject.has("loss"):
        found.why_not = "they need a model, data with targets, a loss and an optimizer"
        return found
    if trained_beside(subject):
        found.why_not = "the loss has a network of its own, which this optimizer does not train"
        return found
    if falls_without_end(subject):
        found.why_not = "this loss falls without end, so that a lower one is not a better one"
        return found
    made = steps_made(subject)
    if made and has_won(subject):
        return found
    pool = list(interventions)
    if not pool:
        return found
    longest = longest_trial(subject, len({one.change.name for one in pool if one.after in ("", *FIRST_STEPS)}))
    if longest < A_FEW:
        found.why_not = "a step costs too much for trials within this budget"
        return found
    subject.seen["trial steps"] = longest
    try:
        plain = found.trial(AS_IT_IS, longest // 4)
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        found.why_not = f"this training cannot be copied ({type(error).__name__}: {' '.join(str(error).split())[:100]})"
        return found
    if plain.broken:
        found.why_not = f"a copy of the training does not run ({plain.broken})"
        return found
    found.alive = _halved(found, pool, longest)
    _decide(found, made)
    if made and found.reproduced and (found.cause is None or found.cause.intervention.rank >= LONGER):
        _follow_the_run(found, made)
    return found


def _follow_the_run(found: Experiment, made: int) -> None:
    """Make all steps of a run that a plain copy is ahead of, beyond chance, in half of them or fewer: does the copy stay there?

    A run that overfits was better once, and so is such a copy; one whose loop does something else was not, and to go on with it
    is no remedy.
    """
    subject, plain = found.subject, found.plain
    assert plain is not None
    ahead = gain_of(subject, plain.score(), present_score(subject))
    if 2 * plain.steps > made or not ahead.is_worth(NOTHING) or asked_beside(subject):
        return
    steps = min(made, int(_room(subject) / _a_step(subject)))
    before, subject.seen["trial steps"] = subject.seen["trial steps"], steps
    longer = Trial(subject, AS_IT_IS).advance(steps // 2)
    longer.score()
    longer.advance(steps)
    subject.seen["trial steps"] = before
    if not _is_reproduced(subject, longer, made):
        found.arms[AS_IT_IS.name], found.reproduced, found.cause = longer, False, None


def _is_reproduced(subject: Subject, plain: Trial, made: int) -> bool:
    """Whether a plain copy is no better than the run; half way, too, for where batches are small the end goes up and down.

    A network that the loss asks stands still for a copy, and may not have done so for the run: then the two are not compared.
    """
    if asked_beside(subject):
        return True
    run = present_score(subject)
    ahead = [gain_of(subject, score, run).is_worth(WORTH) for score in (plain.score(), plain.score_at_half)]
    return plain.steps > made or not all(ahead)


def _a_step(subject: Subject) -> float:
    """Nominal seconds of a step of a trial."""
    size = max(map(len, training_and_held_out(subject)[0]))
    return price(subject).step(size) * evaluations(subject.optimizer) * passes(subject)


def _room(subject: Subject) -> float:
    """Nominal seconds for what goes beyond the budget where it leaves a question open."""
    further = FURTHER["cpu" if subject.model is None or _is_on_cpu(subject.model) else "cuda"]
    return min(max(further, work_of(subject).budget), work_of(subject).allowed)


def take_on(found: Experiment, *, held_back: bool) -> None:
    """Take the last arms on, where trials of a part of the run's steps did not show what holds it back.

    Where nothing else says that something does, only those that are ahead of a plain copy in as many steps, or that something
    measured asks for where that copy has made few steps; where something does, those first, and those that still fall.
    """
    subject, plain, made = found.subject, found.plain, steps_made(found.subject)
    found.alive = [one for one in found.alive if one.rank < LONGER and not one.change.from_here]
    if plain is None or has_won(subject):
        return
    promising = [one for one in found.alive if _is_ahead(found, one) or (held_back and _still_falls(found, one))]
    if not promising and found.tells_little:
        promising = [one for one in found.alive if one.sign]
    found.alive = promising if promising or not held_back else found.alive
    names = {one.change.name for one in found.alive}
    # the training as it is, too, and both again in another order
    longest = min(made, int(_room(subject) / (_a_step(subject) * (len(names) + 3))))
    if not names or longest <= plain.steps:
        return
    subject.seen["trial steps"] = longest
    found.trial(AS_IT_IS, longest)
    for one in found.alive:
        found.trial(one.change, longest)
    before, found.outcomes = found.cause, []
    _decide(found, made)
    if found.cause is None:
        found.cause = before


def _is_on_cpu(model: nn.Module) -> bool:
    return all(p.device.type == "cpu" for p in model.parameters())


def _first_kept(subject: Subject) -> int:
    own = [] if subject.model is None else list(subject.model.parameters())
    return FIRST_KEPT // 3 if sum(p.numel() * p.element_size() for p in own) >= HEAVY else FIRST_KEPT


def _is_ahead(found: Experiment, one: Intervention) -> bool:
    plain = found.plain
    assert plain is not None
    mine, other = found.arms[one.change.name].score(), plain.score()
    if gain_of(found.subject, mine, other, losses_alike=one.alike).is_worth(WORTH):
        return True
    if mine is None or other is None or not one.alike:
        return False
    return mine.loss < other.loss - WORTH * abs(judged_constant(found.subject))  # neither may have learned anything yet


def _still_falls(found: Experiment, one: Intervention) -> bool:
    """Whether an arm that has learned nothing yet comes down otherwise than the training as it is: half its pace would do.

    Smaller steps begin more slowly: among arms that ignore the input the lowest loss says little.
    """
    arm, constant = found.arms[one.change.name], judged_constant(found.subject)
    half = arm.steps // 2
    score = None if arm.diverged or not half or not one.alike else arm.score()
    if score is None or not math.isfinite(constant) or one.change.from_here or _follows_plain(found, one):
        return False
    pace = (sum(arm.losses[:half]) - sum(arm.losses[-half:])) / half / (arm.steps - half)
    left = min(steps_made(found.subject) or SHORT, LONG) - arm.steps
    learned = constant - NOTHING * abs(constant)
    return score.loss - pace * left / 2 < learned < score.loss


def _follows_plain(found: Experiment, one: Intervention) -> bool:
    """Whether an arm does as the training as it is, which has learned nothing in all of its steps."""
    plain, mine = found.plain, found.arms[one.change.name].score()
    other = None if plain is None else plain.score()
    if mine is None or other is None or not one.alike or not steps_made(found.subject):
        return False
    assert plain is not None
    same = abs(mine.loss - other.loss) <= RARELY * abs(plain.losses[0] - other.loss)  # of the way that it has come
    return same and present_skill(found.subject) <= NOTHING


def longest_trial(subject: Subject, arms: int = 12) -> int:
    """Steps that the best arms are taken to, within the budget; the run's own where that is fewer.

    Arms are taken to a quarter, the six best to a half and three to the whole; so is the training as it is, and one or two more
    around the best step.
    """
    training, held_out = training_and_held_out(subject)
    if not training:
        return 0
    scores = (arms + min(6, arms) + min(3, arms) + 3) * sum(price(subject).forward(len(part)) for part in held_out)
    made = steps_made(subject)
    wanted = min(made, LONG) if made and steps_are_known(subject) else SHORT
    rounds = 2.5 + arms / 4 + min(6, arms) / 4 + min(3, arms) / 2
    return int(
        min(
            max(wanted, A_RUN),
            max(work_of(subject).left - scores, work_of(subject).left / 2) / (rounds * _a_step(subject)),
        )
    )


def _halved(found: Experiment, pool: list[Intervention], longest: int) -> list[Intervention]:
    """The interventions that were taken to the end."""
    alive: list[Intervention] = []
    many = _first_kept(found.subject)
    for one in sorted(pool, key=lambda i: i.rank):
        if one.after and not _helped(found, one.after):
            continue
        try:
            found.trial(one.change, longest // 4)
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError, IndexError):
            continue  # the change cannot be made to this network
        alive.append(one)
        _let_go(found, _kept(found, alive, many, NOTHING))
    for goal, kept, slack in ((longest // 2, many, NOTHING), (longest, 3, -NOTHING)):
        alive = _kept(found, alive, kept, slack)
        _let_go(found, alive)
        found.trial(AS_IT_IS, goal)
        for one in alive:
            found.trial(one.change, goal)
    return alive


def _let_go(found: Experiment, kept: list[Intervention]) -> None:
    """Arms that will not be taken further: copies of a large model are many numbers."""
    names = {AS_IT_IS.name, *(one.change.name for one in kept)}
    for name, arm in found.arms.items():
        if name not in names and not arm.released:
            arm.release()


def _kept(found: Experiment, alive: list[Intervention], count: int, slack: float) -> list[Intervention]:
    """The best few arms, and those that something measured asks for where they help; several interventions may share one arm.

    Another step may hide what is measured: ten times the step outruns updates that are rounded away. After a quarter of the steps
    it is enough not to be behind: weights decay with time.
    """
    ranked = sorted(alive, key=lambda one: (not _follows_plain(found, one), _merit(found, one)), reverse=True)
    best = list(dict.fromkeys(one.change.name for one in ranked))[:count]
    asked = {one.change.name for one in ranked if one.sign and _is_level(found, one.change.name, slack)}
    if not any(found.arms[name].score() is None or _has_learned(found, name) for name in best):
        asked.update([one.change.name for one in ranked if _still_falls(found, one)][:1])
    return [one for one in ranked if one.change.name in asked.union(best)]


def _has_learned(found: Experiment, name: str) -> bool:
    """Whether an arm is better than ignoring the input by more than nothing."""
    return present_skill(found.subject, found.arms[name].score()) > NOTHING


def _is_level(found: Experiment, name: str, slack: float) -> bool:
    """Whether an arm's loss is that of the training as it is in as many steps, or lower, within a share of the constant's.

    After a few steps only what is far behind is not.
    """
    slack = PART if found.tells_little else slack
    plain, mine = found.plain, found.arms[name].score()
    other = None if plain is None else plain.score()
    constant = judged_constant(found.subject)
    if mine is None or other is None or not math.isfinite(constant):
        return mine is not None
    return mine.loss < other.loss + slack * abs(constant)


def _helped(found: Experiment, name: str) -> bool:
    """Whether an arm went better than the training as it is, or no worse with a larger step or where nothing was learned.

    Where training makes the loss larger than it was, a step of zero would do better: then smaller ones are tried in any case.
    """
    arm, plain = found.arms.get(name), found.plain
    if arm is None or plain is None:
        return False
    if arm.change.lr < 1 and (plain.diverged or _last_loss(plain) > plain.losses[0]):
        return True
    if arm.diverged:
        return False
    mine, other = arm.score(), plain.score()
    if mine is None:
        return False
    constant = judged_constant(found.subject)
    slack = NOTHING * abs(constant) if math.isfinite(constant) else 0.0
    if other is None or mine.loss < other.loss - slack:
        return True
    return mine.loss <= other.loss + slack and (arm.change.lr > 1 or mine.loss > constant - slack)


def _merit(found: Experiment, one: Intervention) -> float:
    """The skill that an arm has so far; of the first loss of a plain copy where none can be told."""
    score = found.arms[one.change.name].score()
    if score is None:
        return -math.inf
    constant = judged_constant(found.subject)
    if not one.alike:
        common = judged_majority(found.subject)
        return (
            (score.accuracy - common) / (1 - common) if common < 1 and score.accuracy == score.accuracy else -math.inf
        )
    return (constant - score.loss) / abs(constant) if math.isfinite(constant) and constant else -score.loss


def _decide(found: Experiment, made: int) -> None:
    subject, plain = found.subject, found.plain
    assert plain is not None
    control, run = plain.score(), present_score(subject) if made else None
    reference = control
    if made:
        found.reproduced = _is_reproduced(subject, plain, made)
        reference = _better(run, control)
    for one in found.alive:
        trial = found.arms[one.change.name]
        # then the copy is longer than the run, too
        longer = run is not None and one.change.from_here and plain.steps > made
        beside = control if _catches_up(found, one, trial.score(), run) else run if longer else reference
        gain = gain_of(subject, trial.score(), beside, losses_alike=one.alike)
        if reference is None or _blows_up(subject, plain, reference):
            # what comes down where the training blows up is a cure, however far it has to go
            lower = control is None or (cured := trial.score()) is None or cured.loss < control.loss
            gain = Gain(1.0, math.nan, math.inf) if lower and _comes_down(subject, trial) else Gain(0.0, math.nan, 0.0)
        found.outcomes.append(Outcome(subject, one, trial, plain, gain, run if made else reference, bool(made)))
    worthy = [o for o in found.outcomes if _counts(found, o, made)]
    if not worthy:
        return
    begun_anew = [o for o in worthy if o.intervention.rank < LONGER]
    only_longer = [o for o in worthy if o.intervention.rank >= LONGER and o.misses_much] if made < A_RUN else []
    # what is ahead of the run in fewer steps than it made says more than going on with it, unless it made next to none
    worthy = only_longer or begun_anew or worthy
    recovered = _recovered(subject, worthy, reference)
    # one without a score has recovered nothing
    share = {id(o): recovered.get(o.trial.change.name, 0.0) for o in worthy}
    facts = [o for o in worthy if o.intervention.sign and o.intervention.rank < FACT]
    enough = facts or [o for o in worthy if share[id(o)] >= MOST] or worthy
    cause = min(enough, key=lambda o: (o.intervention.rank, -share[id(o)]))
    asked = [o for o in worthy if o.intervention.sign and o is not cause]
    if asked and cause.intervention.alone is not None:
        score = found.trial(cause.intervention.alone, cause.trial.steps).score()
        if not gain_of(subject, score, reference, losses_alike=cause.intervention.alike).is_worth(WORTH):
            cause = min(asked, key=lambda o: (o.intervention.rank, -share[id(o)]))
    sure = cause.gain.lost >= CRITICAL and not (run is not None and is_thinned(subject))
    found.cause = cause if sure or _holds_again(found, cause, run) else None


def _catches_up(found: Experiment, one: Intervention, mine: Score | None, run: Score | None) -> bool:
    """Whether a copy on thinned batches has come as far as the run did on whole ones: then it is held against a plain copy.

    Fewer samples a step and no more steps take every copy less far: the plain one stays behind the run.
    """
    if run is None or mine is None or one.change.from_here or not one.alike or not is_thinned(found.subject):
        return False
    if one.change.lr > 1:  # a larger step may only be sooner where all have fewer
        return False
    return mine.loss <= run.loss


def _holds_again(found: Experiment, outcome: Outcome, run: Score | None) -> bool:
    """Whether the arm is ahead in another order of the batches, too: where less than half is lost the decision hangs on it."""
    subject, trial = found.subject, outcome.trial
    reference = run
    other = Trial(subject, trial.change, seed=1).advance(trial.steps)
    if run is None or not trial.change.from_here:  # what goes on from the run is compared with it
        as_run = (
            outcome.plain if trial.change.reorders else Trial(subject, AS_IT_IS, seed=1).advance(outcome.plain.steps)
        )
        control = as_run.score()
        again = _catches_up(found, outcome.intervention, other.score(), run)
        reference = control if again else _better(run, control)
    gain = gain_of(subject, other.score(), reference, losses_alike=outcome.intervention.alike)
    return gain.is_worth(WORTH)


def _recovered(subject: Subject, worthy: list[Outcome], reference: Score | None) -> dict[str, float]:
    """Of each arm the share of the way from the run to the best arm, by loss; of losses that are not alike by accuracy.

    The way begins at ignoring the input where the run is worse than that, and at the run where no arm is better.
    """
    scores = {o.trial.change.name: score for o in worthy if (score := o.trial.score()) is not None}
    alike = {o.trial.change.name for o in worthy if o.intervention.alike}
    constant, common = loss_to_beat(subject), judged_majority(subject)
    best = min((scores[name].loss for name in scores if name in alike), default=constant)
    low = constant
    if reference is not None:
        low = min(WORST * abs(constant) if constant <= best else constant, reference.loss)
    right = common if reference is None else reference.accuracy
    most = max((score.accuracy for score in scores.values() if score.accuracy == score.accuracy), default=math.nan)
    found = {}
    for name, score in scores.items():
        by_loss = (low - score.loss) / (low - best) if name in alike and low > best else math.nan
        # where many answers are likely the loss is what counts, as in `gain_of`
        by_accuracy = (score.accuracy - right) / (most - right) if most > right else math.nan
        known = [by_loss] if name in alike and is_language(subject) else [by_loss, by_accuracy]
        found[name] = max((share for share in known if not math.isnan(share)), default=0.0)
    top = max(found.values(), default=0.0)
    return {name: value / top if top > 0 else 1.0 for name, value in found.items()}


def _blows_up(subject: Subject, plain: Trial, reference: Score) -> bool:
    """Whether nothing was learned and the loss rose, for a quarter of the steps, to more than twice where it began.

    A schedule may bring such a run back to ignoring the input in the end: its last loss does not show what happened.
    """
    cut = max(1, plain.steps // 4)
    quarters = [plain.losses[i : i + cut] for i in range(0, plain.steps - cut + 1, cut)]
    rose = any(sum(part) / cut > 2 * abs(plain.losses[0]) for part in quarters)
    return rose and present_skill(subject, reference) <= NOTHING


def _last_loss(trial: Trial) -> float:
    """The mean over the last quarter of its steps."""
    last = trial.losses[-max(1, trial.steps // 4) :]
    return sum(last) / len(last)


def _comes_down(subject: Subject, trial: Trial) -> bool:
    """Whether the last quarter of a trial lies clearly below its first steps, or at the loss of ignoring the input.

    That is what a training reaches first; of many classes it is not far below where it begins, and half of the way will do.
    """
    score, constant = trial.score(), judged_constant(subject)
    if trial.diverged or trial.steps < A_FEW:
        return False
    if score is not None and score.loss <= constant + NOTHING * abs(constant):
        return True
    first = trial.losses[: max(1, trial.steps // 16)]
    start, end = sum(first) / len(first), _last_loss(trial)
    return end < MOST * start or (start > (1 + WORTH) * constant > 0 and end < (start + constant) / 2)


def _better(one: Score | None, other: Score | None) -> Score | None:
    if one is None or other is None:
        return one or other
    by_loss = one if one.loss <= other.loss else other
    if one.accuracy != one.accuracy:
        return by_loss
    top = max(one.accuracy, other.accuracy)
    return replace(by_loss, accuracy=top, shares=(one if one.accuracy == top else other).shares)


def _counts(found: Experiment, outcome: Outcome, made: int) -> bool:
    """Whether what an arm recovers is worth an alarm; before a run only what no number of steps would make up for."""
    if not outcome.gain.is_worth(outcome.intervention.least):
        return False
    plain = found.plain
    assert plain is not None
    control = plain.score()
    if control is None:
        return True
    if made:
        return outcome.trial.change.lr >= 1 or _trains_better(found.subject, outcome.trial, plain)
    if plain.steps < LATE:  # the first steps of a training tell little, unless one learns much and the other nothing
        ahead = present_skill(found.subject, outcome.trial.score()) >= CRITICAL / 2
        return outcome.intervention.sign and ahead and present_skill(found.subject, control) <= NOTHING
    if outcome.intervention.sign:
        return not _is_soon_there(found, plain, control, outcome)
    return not _gets_there(found, plain, control, outcome)


def _trains_better(subject: Subject, one: Trial, other: Trial) -> bool:
    """Whether a trial has come further down than another on what both train on, too.

    Smaller steps that are ahead on other data alone have only fitted less: that the data differ, or are few, is what was found.
    """
    training = training_and_held_out(subject)[0][:PARTS]
    mine, theirs = one.score_on(training), other.score_on(training)
    return mine is None or theirs is None or mine.loss < theirs.loss


def _is_soon_there(found: Experiment, plain: Trial, control: Score, outcome: Outcome) -> bool:
    """Whether the training as it is has learned, and is where the other arm is in as many steps again, at its last pace."""
    other, constant = outcome.trial.score(), judged_constant(found.subject)
    if other is None or not outcome.intervention.alike or not control.loss < constant - PART * abs(constant):
        return False
    quarter = plain.steps // 4
    before, last = (sum(part) / quarter for part in (plain.losses[-2 * quarter : -quarter], plain.losses[-quarter:]))
    return last - 4 * (before - last) <= other.loss


def _gets_there(found: Experiment, plain: Trial, control: Score, outcome: Outcome) -> bool:
    """Whether the training as it is comes down so that the steps to come would take it where the other arm is."""
    other = outcome.trial.score()
    constant = judged_constant(found.subject)
    if other is None or not math.isfinite(constant):
        return True
    first = plain.losses[0]
    last = sum(plain.losses[-max(1, plain.steps // 8) :]) / max(1, plain.steps // 8)
    planned = found.subject.run.steps if found.subject.run is not None and found.subject.run.steps else HORIZON
    fall = max(0.0, first - last) / max(1, plain.steps) * planned
    return first - fall <= other.loss or present_skill(found.subject, control) >= CRITICAL
