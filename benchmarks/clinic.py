"""The clinic: how often the diagnosis is right on runs whose ailment is known, and how often it leaves healthy ones alone.

Each case is trained as its script says, with a watch that looks now and then, and diagnosed at the end; checkpoints are
diagnosed as they are. Thresholds were chosen on the part "chosen"; figures are reported on the part "unseen", which differs by
architecture and by seed.

A sick run must have cost something: where it keeps more than nine tenths of the skill (score less chance) of its twin, the same
script without the ailment, or where that twin learns nothing itself, it is left out of the figures by program, and counted. What
twins score is kept beside the results (FILE.twins.jsonl).

    python -m benchmarks.clinic [--split unseen] [--only WORD ...] [--jobs 2] [--seeds 1] [--cure] [--out FILE.jsonl]

Results are appended to the file as they come, and a run that is started again goes on where it stopped; benchmarks/figures.py
writes docs/clinic.md.
"""

import argparse
import itertools
import json
import random
import time
from pathlib import Path

from benchmarks.clinic_cases import cases, report, run, score
from benchmarks.clinic_cases.cures import NUMBERS
from benchmarks.clinic_cases.run import chance

BAD = ("critical", "warning")
LOOKS, PROBE, MOST_BATCHES = 12, 2048, 512


def diagnosed(case, seed):
    """The diagnosis of one case, what it took, and how the run did."""
    import theodolite as th

    setup = case.build(seed)
    if getattr(setup, "state_dict", None) is not None:
        started = time.perf_counter()
        return th.diagnose(setup.state_dict), time.perf_counter() - started, setup
    probe, every = probe_of(setup.loader), max(1, setup.steps // LOOKS)
    known = {"optimizer": setup.optimizer, "loss": setup.loss, "validation": setup.validation}
    watch = th.Watch(setup.model, probe=probe, every=every, level="cheap", **known)
    run(setup, watch=watch)
    started = time.perf_counter()
    return watch.diagnosis, time.perf_counter() - started, setup


def probe_of(loader):
    """Some batches as training draws them, spread over one pass; the loader goes on as if it had not been asked."""
    kept = loader.generator.get_state()
    most = min(MOST_BATCHES, max(1, PROBE // loader.batch))
    every = -(-len(loader) // most)
    probe = list(itertools.islice(loader, 0, None, every))
    loader.generator.set_state(kept)
    return probe


def record_of(case, seed, cure):
    """One line of results."""
    found, seconds, setup = diagnosed(case, seed)
    bad = [finding for finding in found.findings if finding.severity in BAD]
    named = [finding.name for finding in bad]
    chained = [name for finding in bad for name in (finding.name, *finding.leads_to)]
    right = {case.ailment, *case.also}
    row = {
        "case": case.name,
        "ailment": case.ailment,
        "architecture": case.architecture,
        "data": case.data,
        "grade": case.grade,
        "split": case.split,
        "seed": seed,
        "right": sorted(name for name in right if name),
        "findings": [
            {
                "name": f.name,
                "severity": f.severity,
                "says": f.says,
                "remedy": f.remedy,
                "suggested": str(dict(f.suggested)),
                "leads_to": f.leads_to,
            }
            for f in found.findings
        ],
        "found": bool(bad),
        "first": bool(named) and named[0] in right,
        "among": bool(right & set(chained)),
        "seconds": seconds,
        **measured(case, setup),
    }
    if cure and case.cure is not None and row["first"]:
        row |= cured(case, seed, bad[0], setup)
    return row


def measured(case, setup):
    """How the run itself did, by which verify.py tells whether the case is what it claims; nothing for a checkpoint."""
    if getattr(setup, "state_dict", None) is not None:
        return {}
    return {
        "score": score(setup, *setup.validation, balanced=case.balanced),
        "chance": chance(setup, balanced=case.balanced),
        "holds": None if case.holds is None else bool(case.holds(setup)),
    }


def cured(case, seed, finding, sick):
    """Whether the suggestion, applied by program, wins back at least half of what the ailment cost; None where it cannot be."""
    suggested = {key: value for key, value in finding.suggested.items() if value is not None}
    if not suggested:
        return {}
    try:
        treated = case.cure(suggested, seed)
    except ValueError:
        return {}
    run(treated)
    twin = case.twin(seed)
    run(twin)
    before, after, healthy = (score(s, *s.validation, balanced=case.balanced) for s in (sick, treated, twin))
    floor = max(before, chance(sick, balanced=case.balanced))
    return {
        "cured": bool(after - floor >= 0.5 * (healthy - floor)),
        "number": set(suggested) <= NUMBERS,
        "scores": (before, after, healthy),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("chosen", "unseen"), default="unseen")
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose name holds one of these words")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="only each so many-th case")
    parser.add_argument("--cure", action="store_true", help="apply the remedy and train again")
    parser.add_argument("--out", type=Path, default=Path("clinic.jsonl"))
    parser.add_argument("--most", type=int, help="make at most so many runs more; 0: only tell what was made")
    options = parser.parse_args()
    from joblib import Parallel, delayed

    chosen = [c for c in cases() if c.split == options.split and any(word in c.name for word in options.only)]
    chosen = chosen[:: options.every]
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {(row["case"], row["seed"]) for row in done}
    waiting = [(c.name, seed) for c in chosen for seed in c.seeds[: options.seeds] if (c.name, seed) not in known]
    random.Random(0).shuffle(waiting)  # so that what is done when it is stopped is a fair part of the whole
    waiting = waiting[: options.most]
    with options.out.open("a") as file:
        work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
            delayed(_one)(name, seed, options.cure) for name, seed in waiting
        )
        for row in work:
            file.write(json.dumps(row) + "\n")
            file.flush()
            done.append(row)
    names = {c.name for c in chosen}
    rows = [row for row in done if row["case"] in names]
    add_twins(rows, {c.name: c for c in chosen}, options.out.with_suffix(".twins.jsonl"), options.jobs)
    print(report.table(rows))


def add_twins(rows, known, path, jobs):
    """Write into each row of a sick run what its twin scores; twins that were not run yet are run, each once."""
    from joblib import Parallel, delayed

    trained = [row for row in rows if row["ailment"] and "score" in row]
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    scores = {(one["twin"], one["seed"]): one for one in kept}
    missing = {(known[row["case"]].twin_name, row["seed"]): row["case"] for row in trained}
    missing = {key: name for key, name in missing.items() if key not in scores}
    with path.open("a") as file:
        for one in Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_twin)(name, seed) for (_, seed), name in missing.items()
        ):
            file.write(json.dumps(one) + "\n")
            file.flush()
            scores[one["twin"], one["seed"]] = one
    report.put_twins(rows, known, scores.values())


def _twin(name, seed):
    import torch

    torch.set_num_threads(1)
    case = next(c for c in cases() if c.name == name)
    twin = case.twin(seed)
    run(twin)
    reached = score(twin, *twin.validation, balanced=case.balanced)
    return {"twin": case.twin_name, "seed": seed, "score": reached, "chance": chance(twin, balanced=case.balanced)}


def _one(name, seed, cure):
    import torch

    torch.set_num_threads(1)
    time.perf_counter = time.process_time  # seconds of one core: a busy machine changes neither trials nor times
    case = next(c for c in cases() if c.name == name)
    return record_of(case, seed, cure)


if __name__ == "__main__":
    main()
