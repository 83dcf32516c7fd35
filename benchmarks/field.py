"""The field: runs that people asked about in public, rebuilt, and whether the library names what was found to be wrong.

    python benchmarks/field.py [CASE ...] [--jobs 2] [--most N] [--out FILE.jsonl]
                                            ask the library; OK, MISS and ALARM lines and totals
    python benchmarks/field.py --truth [CASE ...] [--seeds 2] [--out FILE.jsonl]
                                            train each case beside its cure, without the library

Rows are kept as they come, and what is started again goes on where it stopped; benchmarks/figures.py writes docs/field.md.

A case is named by any part of its name or by its kind (losses, data, steps, depth, loops, sequences, finetuning). Each case is
asked about before its first step (th.diagnose) and after its run (th.Watch, every 25 steps): OK where one of the names in
`accept` is found at warning or worse, by itself or in leads_to, and where its cure has none at warning or worse.

What makes a case true: the cure learns (at least half of the way from the best constant answer to perfect), the run as asked
keeps at most 0.85 of the cure's skill in every seed, or says why it costs nothing yet and keeps at least 0.85; and where the
answer was that nothing is wrong, both learn and neither keeps less than 0.9 of the other.
"""

import argparse
import copy
import math
import random
import time
import warnings
from collections import Counter
from pathlib import Path

import torch
from clinic_field import CASES, held_out_loss, score_of, skill_of, train
from joblib import Parallel, delayed
from kept_rows import keep, read

BAD = ("critical", "warning")
KEPT, LEARNS, SAME, RISE = 0.85, 0.5, 0.9, 1.25


def chosen(words):
    """The cases whose name holds one of the words, or whose kind is one; all where there are none."""
    found = [case for case in CASES.values() if not words or any(w in case.name or w == case.kind for w in words)]
    if not found:
        raise SystemExit(f"expected a part of a name or a kind, got {', '.join(words)}: leave it out to list all")
    return found


def trained(name, seed, fixed):
    """Score, skill, seconds of the processor, and the last held-out loss over the lowest of eight looks."""
    torch.set_num_threads(1)
    run = CASES[name].build(seed, fixed=fixed)
    lowest, every = math.inf, max(run.steps // 8, 1)

    def look(step):
        nonlocal lowest
        if (step + 1) % every == 0:
            lowest = min(lowest, held_out_loss(run))

    started = time.process_time()
    train(run, watch=look)
    seconds = time.process_time() - started
    rise = held_out_loss(run) / lowest if 0 < lowest < math.inf else 1.0
    return {"score": score_of(run), "skill": skill_of(run), "seconds": seconds, "rise": rise, "steps": run.steps}


def truth_of(case, seeds):
    """One row of the table: the run as asked beside its cure, and what does not hold."""
    pairs = [[trained(case.name, seed, fixed) for fixed in (False, True)] for seed in range(seeds)]
    kept = [max(asked["skill"], 0.0) / max(cured["skill"], 1e-9) for asked, cured in pairs]
    wrong = []
    if min(cured["skill"] for _, cured in pairs) < LEARNS:
        wrong.append("the cure does not learn")
    if case.accept and case.costs_nothing and min(kept) < KEPT:
        wrong.append("it costs something")
    if case.accept and not case.costs_nothing and max(kept) > KEPT:
        wrong.append("it costs nothing")
    if not case.accept and (min(kept) < SAME or max(kept) > 1 / SAME):
        wrong.append("one of the two is not healthy")
    healthy = [cured for _, cured in pairs] + ([asked for asked, _ in pairs] if not case.accept else [])
    if max(one["rise"] for one in healthy) > RISE:
        wrong.append("a healthy run overfits")

    def mean(which, what):
        return sum(pair[which][what] for pair in pairs) / len(pairs)

    return {
        "case": case.name,
        "kind": case.kind,
        "accept": case.accept,
        "source": case.source,
        "costs_nothing": case.costs_nothing,
        "asked": mean(0, "score"),
        "cured": mean(1, "score"),
        "kept": max(kept),
        "skill": min(cured["skill"] for _, cured in pairs),
        "seconds": mean(0, "seconds"),
        "wrong": wrong,
    }


def summary(rows):
    """What the table comes to."""
    faulty, healthy = [r for r in rows if r["accept"]], [r for r in rows if not r["accept"]]
    kinds = Counter(r["kind"] for r in faulty)
    free = sum(bool(r["costs_nothing"]) for r in faulty)
    held = sum(not r["wrong"] for r in rows)
    return (
        f"{len(faulty)} faults ({', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items()))}), {free} of them without a cost "
        f"yet; {len(healthy)} questions whose answer was that nothing is wrong. {held} of {len(rows)} are what they claim. "
        f"A run takes {sum(r['seconds'] for r in rows) / len(rows):.2f} s of one core on average, "
        f"{max(r['seconds'] for r in rows):.1f} s at most."
    )


def american(name):
    """One spelling for names that have two."""
    return name.replace("ised-", "ized-").replace("ises-", "izes-")


def asked(name, fixed, every=25):
    """What the library says of one run, before its first step and after its last, and seconds of the processor."""
    torch.set_num_threads(1)
    import theodolite as th

    warnings.simplefilter("ignore")
    found, seconds, clock = [], {}, time.process_time
    run = CASES[name].build(0, fixed=fixed)
    started = clock()
    train(run)
    seconds["training"] = clock() - started
    run = CASES[name].build(0, fixed=fixed)
    x, y = run.train

    def take(stage, ask):
        started = clock()
        try:
            for f in ask().findings:
                row = {"name": f.name, "severity": f.severity, "stage": stage, "says": f.says, "remedy": f.remedy}
                found.append(row | {"leads_to": list(f.leads_to)})
        except Exception as error:
            said = f"{type(error).__name__}: {str(error)[:160]}"
            found.append({"name": said, "severity": "error", "stage": stage, "says": "", "leads_to": []})
        seconds[stage] = clock() - started

    # together: the copy's optimizer holds the copy's weights
    model, optimizer = copy.deepcopy((run.model, run.optimizer))
    take("start", lambda: th.diagnose(model, data=(x, y), loss=run.loss, optimizer=optimizer))
    known = {"loss": run.loss, "optimizer": run.optimizer, "validation": run.validation}
    started = clock()
    watch = th.Watch(run.model, probe=(x[:256], y[:256]), every=every, **known)
    train(run, watch=watch)
    seconds["watched"] = clock() - started
    take("run", lambda: watch.diagnosis)
    return {"case": name, "fixed": fixed, "found": found, "seconds": seconds}


def verdict(case, row):
    """OK, MISS or ALARM, whether the cause leads, and the names at warning or worse."""
    serious = [f for f in row["found"] if f["severity"] in BAD]
    names = [f["name"] for f in serious]
    if row["fixed"] or not case.accept:
        return ("ALARM" if serious else "OK"), False, names
    accept = [american(n) for n in case.accept]
    met = any(american(n) in accept for f in serious for n in (f["name"], *f["leads_to"]))
    met |= "classes-unbalanced" in accept and any(
        f["name"] == "classes-unbalanced" for f in row["found"]
    )  # a note suffices
    after = [f["name"] for f in serious if f["stage"] == "run"] or names
    return ("OK" if met else "MISS"), bool(after) and american(after[0]) == accept[0], names


def ask(cases, jobs, out, most=None):
    """Ask about every case and its cure, and tell how many were right."""
    known = {(r["case"], r["fixed"]): r for r in read(out)}
    wanted = [(case, fixed) for case in cases for fixed in (False, True)]
    random.Random(0).shuffle(wanted)  # so that what is done when it is stopped is a fair part of the whole
    waiting = [(case.name, fixed) for case, fixed in wanted if (case.name, fixed) not in known][:most]
    tally, first, errors, seconds = Counter(), 0, 0, 0.0

    def tell(row):
        nonlocal first, errors, seconds
        case = CASES[row["case"]]
        said, leads, names = verdict(case, row)
        healthy = row["fixed"] or not case.accept
        tally["healthy" if healthy else "faulty", said] += 1
        first += leads
        broken = [f["name"] for f in row["found"] if f["severity"] == "error"]
        errors += bool(broken)
        spent = row["seconds"]
        seconds += spent["start"] + spent["watched"] + spent["run"]
        what = f"{case.name}{' (cured)' if row['fixed'] else ''}"
        wants = "" if healthy else f"  wants {case.accept[0]}"
        times = f"{spent['start']:.1f} + {spent['run']:.1f} beside {spent['training']:.1f} s"
        print(f"{said:5} {what:52} {', '.join(names + broken) or '-'}{wants}  {times}", flush=True)

    for row in known.values():
        if any(row["case"] == case.name for case in cases):
            tell(row)
    for row in Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(asked)(*one) for one in waiting):
        keep(out, row)
        tell(row)
    faulty, healthy = (sum(n for (k, _), n in tally.items() if k == kind) for kind in ("faulty", "healthy"))
    print(
        f"found {tally['faulty', 'OK']} of {faulty}, the cause first {first}; healthy runs with an alarm "
        f"{tally['healthy', 'ALARM']} of {healthy}; {errors} with an exception; {seconds:.0f} s of one core"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="parts of names, or kinds")
    parser.add_argument("--truth", action="store_true", help="train, do not ask the library")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, help="ask about so many runs more at most")
    parser.add_argument("--out", type=Path, help="keep the rows here, and go on from there")
    options = parser.parse_args()
    cases = chosen(options.cases)
    if not options.truth:
        ask(cases, options.jobs, options.out, options.most)
        return 0
    rows = [row for row in read(options.out) if row["case"] in {case.name for case in cases}]
    waiting = [case for case in cases if case.name not in {row["case"] for row in rows}]
    work = (delayed(truth_of)(case, options.seeds) for case in waiting)
    for row in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
        rows.append(row)
        keep(options.out, row)
        scores = f"asked {row['asked']:6.3f} cured {row['cured']:6.3f} kept {row['kept']:.2f}"
        wrong = "; ".join(row["wrong"])
        print(f"{'NO ' if wrong else 'yes'} {row['case']:44} {scores} {row['seconds']:4.1f} s {wrong}", flush=True)
    print(summary(rows))
    return sum(bool(row["wrong"]) for row in rows)


if __name__ == "__main__":
    raise SystemExit(main())
