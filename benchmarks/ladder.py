"""The ladder: every healthy run at a third, one and three times its best step, and whether the library leaves it alone.

    python benchmarks/ladder.py [WORD ...] [--jobs 2] [--most N] [--out FILE.jsonl]   train the rungs and say which are healthy
    python benchmarks/ladder.py [WORD ...] --diagnose ...                             and ask the library about every healthy one

Rows are kept as they come, runs in a random order, and what is started again goes on where it stopped.

Healthy runs are the cures of the field, the questions whose answer was that nothing is wrong, and the healthy cases of the clinic
(benchmarks/clinic_cases/healthy.py; those whose images can be read here, THEODOLITE_DATA; cifar is left out for its price).

How a rung is chosen. Each run is trained at a third, one and three times the step of its script; where the best of them is at an
end of that ladder, a rung is added there. The best step has the best score on held-out data, and the lowest loss
there among scores within 0.002 of it. Rungs are a third, one and three times that step. A rung is healthy where
  - its skill (0 at the best constant answer, 1 at perfect) is at least 0.95 of the best rung's: it still learns nearly as well;
  - its held-out loss ends within 1.25 times the lowest of eight looks: it is not past its best;
  - and the best rung's own skill is at least 0.25: there is something to learn, and it is learned.
What really diverges, stalls or overfits at its step is left out and counted. Nothing of the library enters this choice.
"""

import argparse
import math
import random
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import clinic_cases as clinic
import clinic_field as field
import torch
from clinic_cases.run import chance
from joblib import Parallel, delayed
from kept_rows import keep, read

NEARLY, RISE, LEARNS, TIED = 0.95, 1.25, 0.25, 0.002
LOOKS, MOST = 8, 1
DEAR = ("cifar",)  # four runs that would take a twelfth of all the time


@dataclass
class Climb:
    """One healthy run at one step size, whichever half it comes from."""

    kind: str
    run: object

    @property
    def steps(self):
        return self.run.steps

    def train(self, watch):
        if self.kind == "field":
            field.train(self.run, watch=watch)
        else:
            clinic.run(self.run, watch=watch)

    def loss(self):
        return (field if self.kind == "field" else clinic).held_out_loss(self.run)

    def score(self):
        return field.score_of(self.run) if self.kind == "field" else clinic.score(self.run, *self.run.validation)

    def chance(self):
        return field.chance_of(self.run) if self.kind == "field" else chance(self.run)


def names(words):
    """All healthy runs whose name holds one of the words."""
    found = [f"field/{case.name}/cured" for case in field.CASES.values()]
    found += [f"field/{case.name}/asked" for case in field.CASES.values() if not case.accept]
    found += [f"clinic/{case.name}" for case in clinic.cases() if case.ailment is None and case.data not in DEAR]
    return [name for name in found if not words or any(word in name for word in words)]


def climb(name, factor):
    """The run of this name with its step size multiplied."""
    kind, _, rest = name.partition("/")
    if kind == "field":
        case, _, which = rest.partition("/")
        run = field.CASES[case].build(0, fixed=which == "cured")
        optimizer = run.optimizer
    else:
        case = next(case for case in clinic.cases() if case.name == rest)
        run = case.build(case.seeds[0])
        optimizer = run.optimizer
        if run.scheduler is not None:
            run.scheduler.base_lrs = [factor * lr for lr in run.scheduler.base_lrs]
    for group in optimizer.param_groups:
        group["lr"] *= factor
    return Climb(kind, run)


def rung(name, factor):
    """How the run does at this multiple of its script's step."""
    one = climb(name, factor)
    lowest, every = math.inf, max(one.steps // LOOKS, 1)

    def look(step):
        nonlocal lowest
        if (step + 1) % every == 0:
            lowest = min(lowest, one.loss())

    started = time.process_time()
    one.train(look)
    loss, base = one.loss(), one.chance()
    past = loss / lowest if 0 < lowest < math.inf else 1.0  # a loss that may be negative has no ratio
    row = {"score": one.score(), "loss": loss, "past": past if math.isfinite(past) else math.inf}
    row["skill"] = (row["score"] - base) / (1 - base) if math.isfinite(loss) else -1.0
    return row | {"seconds": time.process_time() - started, "lr": one.run.optimizer.param_groups[0]["lr"]}


def rungs(name):
    """The run at a third, one and three times its best step, and which of them are healthy."""
    torch.set_num_threads(1)
    tried = {power: rung(name, 3.0**power) for power in (-1, 0, 1)}

    def best():
        top = max(row["score"] for row in tried.values() if row["skill"] > -1) if tried else 0.0
        tied = [p for p, row in tried.items() if row["skill"] > -1 and row["score"] >= top - TIED]
        return min(tied, key=lambda p: tried[p]["loss"])

    for _ in range(MOST):
        power = best()
        if power not in (min(tried), max(tried)):
            break
        tried[power + (1 if power == max(tried) else -1)] = rung(
            name, 3.0 ** (power + (1 if power == max(tried) else -1))
        )
    power = best()
    found = []
    for step, word in ((-1, "third"), (0, "best"), (1, "three")):
        if power + step not in tried:
            tried[power + step] = rung(name, 3.0 ** (power + step))
        row = tried[power + step]
        well = (
            tried[power]["skill"] >= LEARNS and row["skill"] >= NEARLY * tried[power]["skill"] and row["past"] <= RISE
        )
        found.append({"run": name, "rung": word, "power": power + step, "healthy": bool(well), **row})
    return found, sum(row["seconds"] for row in tried.values())


def diagnosed(name, power, every=25):
    """What the library says of one rung: names at warning or worse, before its first step and after its last."""
    torch.set_num_threads(1)
    import theodolite as th

    warnings.simplefilter("ignore")
    started, found = time.process_time(), []
    one = climb(name, 3.0**power)
    run = one.run
    if one.kind == "field":
        pairs, probe = run.train, (run.train[0][:256], run.train[1][:256])
    else:
        pairs = run.loader.x, run.loader.y
        probe = pairs[0][:256], pairs[1][:256]
    known = {"loss": run.loss, "optimizer": run.optimizer}
    try:
        found += [(f.name, f.severity, "start", f.says) for f in th.diagnose(run.model, data=pairs, **known).findings]
        one = climb(name, 3.0**power)  # as it was
        run = one.run
        known = {"loss": run.loss, "optimizer": run.optimizer, "validation": run.validation}
        watch = th.Watch(run.model, probe=probe, every=every, **known)
        one.train(watch)
        found += [(f.name, f.severity, "run", f.says) for f in watch.diagnosis.findings]
    except Exception as error:
        found.append((f"{type(error).__name__}: {str(error)[:160]}", "error", "", ""))
    return {"run": name, "power": power, "found": found, "seconds": time.process_time() - started}


def wilson(hits, count, z=1.96):
    """A 95 % interval for a share."""
    if not count:
        return 0.0, 1.0
    share, zz = hits / count, z * z
    middle = (share + zz / (2 * count)) / (1 + zz / count)
    half = z / (1 + zz / count) * math.sqrt(share * (1 - share) / count + zz / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def climbed(name, known, answers, diagnose):
    """The rungs of one run, and what the library says of the healthy ones, where that is asked; those that are known stay."""
    rows = known
    if not rows:
        rows, cost = rungs(name)
        rows[0]["cost"] = cost
    wanted = [row["power"] for row in rows if row["healthy"] and row["power"] not in answers] if diagnose else []
    return [] if known else rows, [diagnosed(name, power) for power in wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="parts of names: field, clinic, a case")
    parser.add_argument("--diagnose", action="store_true", help="ask the library about every healthy rung")
    parser.add_argument("--most", type=int, help="so many runs more at most")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep rungs and answers here, and go on from there")
    options = parser.parse_args()
    wanted = names(options.words)
    random.Random(0).shuffle(wanted)  # so that what is done when it is stopped is a fair part of the whole
    told = [row for row in read(options.out) if row["run"] in wanted]
    rows, answers = ([row for row in told if key in row] for key in ("rung", "found"))
    work = []
    for name in wanted:
        own = [row for row in rows if row["run"] == name]
        done = [row["power"] for row in answers if row["run"] == name]
        if not own or (options.diagnose and any(row["healthy"] and row["power"] not in done for row in own)):
            work.append(delayed(climbed)(name, own, done, options.diagnose))
    for found, said in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work[: options.most]):
        rows += found
        answers += said
        for row in found:
            marks = f"skill {row['skill']:5.2f}  loss over lowest {row['past']:4.2f}  step {row['lr']:.2g}"
            print(f"{'yes' if row['healthy'] else 'no '} {row['run']:58} {row['rung']:6} {marks}", flush=True)
        for row in said:
            bad = [f"{name} ({severity}, {stage})" for name, severity, stage, _ in row["found"] if severity != "note"]
            where = f"{row['run']:58} x 3^{row['power']:+d}"
            print(f"{'ALARM' if bad else 'OK   '} {where}  {', '.join(bad) or '-'}  {row['seconds']:.1f} s", flush=True)
        for row in (*found, *said):
            keep(options.out, row)
    healthy = [row for row in rows if row["healthy"]]
    by_word = {word: sum(row["rung"] == word for row in healthy) for word in ("third", "best", "three")}
    print(
        f"{len({row['run'] for row in rows})} runs, {len(rows)} rungs, {len(healthy)} of them healthy "
        f"({', '.join(f'{word} {count}' for word, count in by_word.items())}); "
        f"{sum(row.get('cost', 0.0) for row in rows) / 60:.1f} minutes of one core to train them all"
    )
    if options.diagnose:
        print(summary(answers))
    return 0


def summary(answers):
    """How many healthy rungs have an alarm."""
    alarms = sum(any(f[1] in ("critical", "warning") for f in row["found"]) for row in answers)
    errors = sum(any(f[1] == "error" for f in row["found"]) for row in answers)
    low, high = wilson(alarms, len(answers))
    return (
        f"{alarms} of {len(answers)} healthy runs have a warning or worse: {alarms / max(len(answers), 1):.1%} "
        f"(95 % interval {low:.1%} to {high:.1%}); {errors} with an exception; "
        f"{sum(row['seconds'] for row in answers):.0f} s of one core"
    )


if __name__ == "__main__":
    raise SystemExit(main())
