"""The same findings everywhere: what the diagnosis prints of 40 runs, quiet, with a busy machine, with two threads, and again.

    python benchmarks/determinism.py [--subjects 40] [--jobs 1] [--out FILE.jsonl]

Runs are those of the field (benchmarks/clinic_field), faulty and cured, spread over its kinds. Each is trained with one thread,
so that all conditions are asked about the same weights, and then diagnosed under its condition; names, severities, sentences with
their numbers, and what could not be judged are compared letter by letter. Rows are kept as they come, and what is started again
goes on where it stopped.
"""

import argparse
import subprocess
import sys
import warnings
from pathlib import Path

import torch
from clinic_field import CASES, train
from joblib import Parallel, delayed
from kept_rows import keep, read

CONDITIONS = {"quiet": (1, 0), "again": (1, 0), "two threads": (2, 0), "four busy processes": (1, 4)}


def said(name, fixed, threads):
    """All that the diagnosis of one run says."""
    import theodolite as th

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    run = CASES[name].build(0, fixed=fixed)
    x, y = run.train
    known = {"loss": run.loss, "optimizer": run.optimizer, "validation": run.validation}
    watch = th.Watch(run.model, probe=(x[:256], y[:256]), every=25, level="cheap", **known)
    train(run, watch=watch)
    torch.set_num_threads(threads)
    found = watch.diagnosis
    return [[f.name, f.severity, f.says, f.remedy, list(f.leads_to)] for f in found.findings] + [str(found)]


def answered(condition, name, cured, threads):
    """One row."""
    return {"condition": condition, "case": name, "cured": cured, "said": said(name, cured, threads)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = sorted(CASES)
    chosen = [(names[i * len(names) // options.subjects], bool(i % 2)) for i in range(options.subjects)]
    told = {(row["condition"], row["case"], row["cured"]): row["said"] for row in read(options.out)}
    for condition, (threads, load) in CONDITIONS.items():
        waiting = [one for one in chosen if (condition, *one) not in told]
        others = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(10000))"]) for _ in range(load)]
        try:
            work = (delayed(answered)(condition, *one, threads) for one in waiting)
            for row in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
                told[condition, row["case"], row["cured"]] = row["said"]
                keep(options.out, row)
        finally:
            for other in others:
                other.kill()
        apart = [one for one in chosen if told[(condition, *one)] != told[("quiet", *one)]]
        print(f"{condition:20} {len(chosen)} runs, {len(apart)} differ from the first time {apart or ''}", flush=True)


if __name__ == "__main__":
    main()
