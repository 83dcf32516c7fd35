"""Every law at other seeds, with other instruction sets, other sums and other numbers of threads: where does one not hold?

    python benchmarks/sweep.py                       all cells, one after the other; a killed run goes on where it stopped
    python benchmarks/sweep.py --cells "seed 0" "avx2, 1 thread" --laws relu-critical
    python benchmarks/sweep.py --show                only the table of what is known

A cell is a process of its own: instruction sets and threads are chosen when the libraries load. Each law's result is a line of
``benchmarks/results/sweep.jsonl``; it is measured again only where a source that it may depend on has changed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from theodolite import catalogue
from theodolite.core.source_digest import source_digest

RESULTS = Path(__file__).resolve().parent / "results" / "sweep.jsonl"
SEEDS = range(5)
CORES = ("Haswell", "Prescott")


def cells():
    """Each cell's name, with the seed and what the environment says."""
    found = {f"seed {seed}": (seed, environment(threads=1)) for seed in SEEDS}
    found["2 threads"] = (0, environment(threads=2))
    for capability in ("default", "avx2"):
        for threads in (1, 2):
            chosen = environment(threads=threads, ATEN_CPU_CAPABILITY=capability)
            found[f"{capability}, {threads} thread{'s' * (threads > 1)}"] = (0, chosen)
    libraries = blas()
    if "openblas" in libraries:
        found |= {f"openblas {core}": (0, environment(threads=1, OPENBLAS_CORETYPE=core)) for core in CORES}
    if "mkl" in libraries:
        found["mkl compatible"] = (0, environment(threads=1, MKL_CBWR="COMPATIBLE"))
    return found


def environment(*, threads, **others):
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), **others}


def blas():
    """The libraries of linear algebra that numpy, scipy and torch have loaded."""
    import scipy.linalg  # noqa: F401  loads its own OpenBLAS
    import threadpoolctl
    import torch

    found = {library["internal_api"] for library in threadpoolctl.threadpool_info()}
    return found | (
        {"mkl"} if torch.backends.mkl.is_available() else set()
    )  # linked into torch, not a library of its own


def known():
    """The last word on each (cell, law) whose files are as they were."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]
    marks = digests()
    return {(r["cell"], r["law"]): r for r in records if r["digest"] == marks.get(r["law"])}


def digests():
    return {e.name: source_digest(catalogue.ROOT, e.path) for e in catalogue.entries() if e.kind == "law"}


def measure(cell, seed, names):
    """In this process: each law, and the line that says how it went."""
    import torch

    threads, marks = int(os.environ["OMP_NUM_THREADS"]), digests()
    torch.set_num_threads(threads)
    for name in names:
        start = time.process_time()
        try:
            verdict = catalogue.law(name).check(seed=seed)
            outcome = {
                "holds": verdict.holds,
                "statuses": [reading.status for reading in verdict.readings],
                "worst": [
                    f"{r.where}: {r.measured:.6g} ± {r.stderr:.2g}, expected {r.expected} ({r.status})"
                    for r in verdict.readings
                    if r.status != "agrees"
                ],
            }
        except Exception as error:  # a law that cannot be run is a result too
            outcome = {"holds": False, "statuses": ["error"], "worst": [repr(error)]}
        record = {"cell": cell, "law": name, **outcome, "seconds": time.process_time() - start, "digest": marks[name]}
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def table(chosen):
    """A line a cell: how many laws hold, how many do not, and which."""
    found = known()
    print(f"{'cell':<20}{'hold':>6}{'not':>5}{'unknown':>9}{'s':>7}  do not hold")
    total = len(catalogue.law_names())
    for cell in chosen:
        mine = [record for (name, _), record in found.items() if name == cell]
        wrong = sorted(record["law"] for record in mine if not record["holds"])
        seconds = sum(record["seconds"] for record in mine)
        counts = f"{len(mine) - len(wrong):>6}{len(wrong):>5}{total - len(mine):>9}{seconds:>7.0f}"
        print(f"{cell:<20}{counts}  {', '.join(wrong)}")
    failing = sorted({record["law"] for (cell, _), record in found.items() if cell in chosen and not record["holds"]})
    print(f"\n{len(failing)} laws do not hold in some cell")
    for law in failing:
        for cell in chosen:
            record = found.get((cell, law))
            if record and not record["holds"]:
                print(f"  {law} in {cell}: {'; '.join(record['worst']) or 'the wrong form is not refuted'}")
    return not failing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", metavar="CELL", help="only these")
    parser.add_argument("--laws", nargs="+", metavar="LAW", help="only these")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    every = cells()
    chosen = arguments.cells or list(every)
    names = arguments.laws or catalogue.law_names()
    if unknown := set(chosen) - set(every):
        parser.error(f"expected cells among {list(every)}, got {sorted(unknown)}; choose from them")
    if arguments.measure:
        (cell,) = chosen
        return measure(cell, every[cell][0], names)
    RESULTS.parent.mkdir(exist_ok=True)
    for cell in [] if arguments.show else chosen:
        done = known()
        missing = [name for name in names if (cell, name) not in done]
        if missing:
            print(f"{cell}: {len(missing)} laws", file=sys.stderr, flush=True)
            command = [sys.executable, __file__, "--measure", "--cells", cell, "--laws", *missing]
            subprocess.run(command, env={**os.environ, **every[cell][1]}, check=False)
    return 0 if table(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
