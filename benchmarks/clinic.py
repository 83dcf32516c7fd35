"""The clinic: how often the diagnosis is right on runs whose ailment is known, and how often it leaves healthy ones alone.

Each case is trained as its script says, with a watch that looks now and then, and diagnosed at the end; checkpoints are
diagnosed as they are. Thresholds were chosen on the part "chosen"; figures are reported on the part "unseen", which differs by
architecture and by seed.

    python -m benchmarks.clinic [--split unseen] [--only WORD] [--jobs 2] [--seeds 1] [--cure] [--out FILE.jsonl]

Results are appended to the file as they come, and a run that is started again goes on where it stopped.
"""

import argparse
import itertools
import json
import math
import random
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.clinic_cases import cases, run, score
from benchmarks.clinic_cases.run import chance

BAD = ("critical", "warning")
LOOKS, PROBE, MOST_BATCHES = 12, 2048, 256


def diagnosed(case, seed):
    """The diagnosis of one case, what it took, and how the run did."""
    import theodolite as th

    setup = case.build(seed)
    if getattr(setup, "state_dict", None) is not None:
        started = time.perf_counter()
        return th.diagnose(setup.state_dict), time.perf_counter() - started, setup
    watch = th.Watch(
        setup.model,
        optimizer=setup.optimizer,
        probe=probe_of(setup.loader),
        loss=setup.loss,
        validation=setup.validation,
        every=max(1, setup.steps // LOOKS),
        level="cheap",
    )
    run(setup, watch=watch)
    started = time.perf_counter()
    found = watch.diagnosis
    return found, time.perf_counter() - started, setup


def probe_of(loader):
    """Some batches as training draws them; the loader goes on as if it had not been asked."""
    kept = loader.generator.get_state()
    most = min(MOST_BATCHES, max(1, PROBE // loader.batch))
    probe = list(itertools.islice(loader, most))
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
        "findings": [
            {"name": f.name, "severity": f.severity, "says": f.says, "remedy": f.remedy} for f in found.findings
        ],
        "found": bool(bad),
        "first": bool(named) and named[0] in right,
        "among": bool(right & set(chained)),
        "seconds": seconds,
        **measured(case, setup),
    }
    if cure and case.cure is not None and row["first"]:
        row["cured"] = cured(case, seed, bad[0], setup)
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
    suggested = translated(dict(finding.suggested), sick)
    if not suggested:
        return None
    try:
        treated = case.cure(suggested, seed)
    except ValueError:
        return None
    run(treated)
    twin = case.twin(seed)
    run(twin)
    before, after, healthy = (score(s, *s.validation, balanced=case.balanced) for s in (sick, treated, twin))
    floor = chance(sick, balanced=case.balanced)
    return bool(after - max(before, floor) >= 0.5 * (healthy - max(before, floor)))


def translated(suggested, setup):
    """Our keys in the words of the cases; an initialisation becomes its two variances."""
    if "initialise" in suggested:
        from theodolite import criticality

        point = criticality(suggested.pop("initialise"))
        suggested |= {"weight_variance": point.weight_variance, "bias_variance": point.bias_variance or 0.0}
    known = (
        "lr",
        "steps",
        "batch_size",
        "weight_decay",
        "clip",
        "momentum",
        "dropout",
        "statistics_momentum",
        "dtype",
        "weight_variance",
        "bias_variance",
    )
    return {key: value for key, value in suggested.items() if key in known and value is not None}


def interval(hits, total):
    """Wilson's 95 % interval of a share."""
    if not total:
        return "–"
    z, p = 1.96, hits / total
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    return f"{hits}/{total} = {p:.0%} ({middle - half:.0%} to {middle + half:.0%})"


def table(rows):
    """By ailment, then all together."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["ailment"] or "healthy"].append(row)
    print(f"{'ailment':24} {'runs':>5} {'found':>6} {'among':>6} {'first':>6} {'cured':>8}")
    for name in sorted(groups):
        own = groups[name]
        tried = [row["cured"] for row in own if row.get("cured") is not None]
        counts = [sum(row[key] for row in own) for key in ("found", "among", "first")]
        print(f"{name:24} {len(own):5} {counts[0]:6} {counts[1]:6} {counts[2]:6} {f'{sum(tried)}/{len(tried)}':>8}")
    sick = [row for row in rows if row["ailment"]]
    healthy = [row for row in rows if not row["ailment"]]
    tried = [row["cured"] for row in sick if row.get("cured") is not None]
    print("\nsick runs found         ", interval(sum(r["found"] for r in sick), len(sick)))
    print("cause named first       ", interval(sum(r["first"] for r in sick), len(sick)))
    print("cause named at all      ", interval(sum(r["among"] for r in sick), len(sick)))
    print("healthy runs with alarm ", interval(sum(r["found"] for r in healthy), len(healthy)))
    print("remedy cures            ", interval(sum(tried), len(tried)))
    times = sorted(row["seconds"] for row in rows)
    if times:
        print(f"seconds a diagnosis      median {times[len(times) // 2]:.1f}, longest {times[-1]:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("chosen", "unseen"), default="unseen")
    parser.add_argument("--only", default="", help="cases whose name holds this word")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="only each so many-th case")
    parser.add_argument("--cure", action="store_true", help="apply the remedy and train again")
    parser.add_argument("--out", type=Path, default=Path("clinic.jsonl"))
    options = parser.parse_args()
    from joblib import Parallel, delayed

    chosen = [c for c in cases() if c.split == options.split and options.only in c.name][:: options.every]
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {(row["case"], row["seed"]) for row in done}
    waiting = [(c.name, seed) for c in chosen for seed in c.seeds[: options.seeds] if (c.name, seed) not in known]
    random.Random(0).shuffle(waiting)  # so that what is done when it is stopped is a fair part of the whole
    with options.out.open("a") as file:
        work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
            delayed(_one)(name, seed, options.cure) for name, seed in waiting
        )
        for row in work:
            file.write(json.dumps(row) + "\n")
            file.flush()
            done.append(row)
    names = {c.name for c in chosen}
    table([row for row in done if row["case"] in names])


def _one(name, seed, cure):
    import torch

    torch.set_num_threads(1)
    time.perf_counter = time.process_time  # seconds of one core: a busy machine changes neither trials nor times
    case = next(c for c in cases() if c.name == name)
    return record_of(case, seed, cure)


if __name__ == "__main__":
    main()
