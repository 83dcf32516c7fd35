"""The table of benchmarks: ours, the peers', the ratio, the floor, the goal and the growth, written as a page.

    python benchmarks/bench.py [SECTION ...] [--gpu] [--full] [--page PAGE]

`make bench` runs it (no GPU, under 15 minutes on two cores); `make bench-gpu` with `--gpu`. Each section is a process of its
own, and in it every tool and size; what a section says is kept in benchmarks/bench_results.json as it comes. Sections named
are measured anew and the others stay as they were; `--full` adds those that take minutes by themselves. A peer that is not
installed is said so in its row. Peers live in .venv-peers, DADApy in .venv-dadapy; both may be links.
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import bench_gpu
import bench_sections

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS, DADAPY = ROOT / ".venv-peers", ROOT / ".venv-dadapy"
SECONDS, FULL_SECONDS = 420, 1800  # that a section may take

HOW = """Every tool and size is measured in a process of its own, all sides of a row in the same run. Times are processor seconds
with one thread, less imports and the making of data, unless a row says otherwise. Memory is what the process took beyond
data and imports. Ratios are theirs over ours; behind the floor stands how many times the floor we take.
`make bench` writes this page again, `make bench-gpu` {that of a GPU}; a section that is run alone replaces its own rows.
[What others do that Theodolite does not](others.md) is a page of its own.
"""
HOW_GPU = """Every section is a process of its own; times are walls after the device has finished. neural-tangents is measured in
the same run where it imports; elsewhere its figures of an earlier run on such a device stand beside, and say so. Ratios are
theirs over ours; behind the floor stands how many times the floor we take. `make bench-gpu` writes this page again;
[the page of the processor](benchmarks.md) has the other rows.
"""
WANTED = {
    "neural-tangents",
    "scikit-dimension",
    "dadapy",
    "relucent",
    "weightwatcher",
    "reptrix",
    "jax",
    "backpack-for-pytorch",
}
WANTED |= {
    "nngeometry",
    "hadamard-transform",
    "curvlinops-for-pytorch",
    "pyhessian",
    "hessian-eigenthings",
    "cockpit-for-pytorch",
    "torchid",
}


def sections_of(*, gpu):
    """The script that has the sections, the names of the usual ones, and of all."""
    script = bench_gpu if gpu else bench_sections
    return Path(script.__file__), list(script.SECTIONS), [*script.SECTIONS, *script.FULL]


def section_lines(script, name, *, seconds):
    """What a section says, line by line; its last is an error where it failed or was stopped."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))}
    with subprocess.Popen(
        [sys.executable, str(script), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
        start_new_session=True,  # so that what it started ends with it
    ) as process:
        said = []
        reader = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
        reader.start()
        late = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        for line in process.stdout:
            if line.startswith("LINE "):
                yield json.loads(line.removeprefix("LINE "))
            elif line.strip():
                print("   ", line.rstrip(), flush=True)
        code = process.wait()
        stopped = not late.is_alive()
        late.cancel()
        reader.join()
    if code:
        last = (said or ["no message"])[-1].strip()[:160]
        yield ["error", f"stopped after {seconds} s" if stopped else last]


def section_result(script, name, *, seconds):
    """Rows and growth of a section, with when and where."""
    started, found = time.perf_counter(), {"rows": [], "growth": [], "error": ""}
    for kind, line in section_lines(script, name, seconds=seconds):
        if kind == "error":
            found["error"] = line
            print("   ", line, flush=True)
        else:
            found["rows" if kind == "row" else "growth"].append(line)
            print("   ", json.dumps(line, ensure_ascii=False), flush=True)
    return {
        **found,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "machine": machine(),
        "seconds": round(time.perf_counter() - started, 1),
    }


def machine():
    """The processor, its cores, the GPU, and the versions that matter."""
    cpu = platform.processor() or "unknown processor"
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {name: importlib.util.find_spec(name) for name in ("torch", "numpy", "scipy", "triton", "jax")}
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name, spec in found.items() if spec)
    return f"{_gpu()}{cpu}, {cores} cores, Python {platform.python_version()}, {versions}"


def _gpu():
    try:
        told = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True
        )
    except OSError:
        return ""
    return f"{told.stdout.splitlines()[0].strip()}, " if told.returncode == 0 and told.stdout.strip() else ""


def peer_versions():
    """The versions of the peers, as their own environments tell them."""
    code = (
        "import importlib.metadata as m; print(', '.join(sorted(f'{d.name} {d.version}' for d in m.distributions())))"
    )
    told = [f"torchid {path.name.split('-')[1]}" for path in PEERS.glob("torchid/torchid-*.dist-info")]
    for python in (PEERS / "bin/python", DADAPY / "bin/python"):
        if python.exists():
            told += subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip().split(", ")
    told = [one.removesuffix(".dist") for one in told]
    return sorted({one for one in told if one.partition(" ")[0].lower() in WANTED}, key=str.lower) or ["none installed"]


def _ruled(*columns):
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"


def _table(rows):
    text = _ruled("work", "size", "ours", "theirs", "ratio", "floor", "goal", "met")
    for row in rows:
        theirs = row.get("theirs") or [{"told": row.get("no peer", "no peer known"), "ratio": ""}]
        met = {True: "yes", False: "**no**", None: "not decided", "": "none asked"}[row.get("met")]
        for place, one in enumerate(theirs):
            start = f"{row['work']} | {row.get('size', '')} | {row['ours']}" if not place else " | | "
            end = f"{row.get('floor', '')} | {row.get('goal', '')} | {met}" if not place else " | | "
            text += f"| {start} | {one['told']} | {one['ratio']} | {end} |\n"
    return text


def _growth(lines):
    columns = ("work", "sizes", "times", "time exponent", "memory", "memory exponent", "expected")
    text = _ruled("work", "sizes", "times", "exponent of time", "memory", "of memory", "expected: time; memory")
    return text + "".join(f"| {' | '.join(line.get(key, '') for key in columns)} |\n" for line in lines)


def _missed(rows):
    said = []
    for row in rows:
        if row["met"] is False:
            reason = f"{row['why'][:1].upper()}{row['why'][1:]}."
            floor = f" The floor is {row['floor'].partition(' (')[0]}." if row.get("floor") else ""
            said.append(f"- {row['work']}, {row['size']}: goal {row['goal']}; measured {row['ours']}. {reason}{floor}")
    said += [
        f"- {row['work']}: not decided, for want of a peer or an answer; {row['ours']}."
        for row in rows
        if row["met"] is None
    ]
    return "\n".join(said) or "None."


def _floors(rows):
    kept = {row["floor is"]: row for row in rows if row.get("floor is")}
    return "\n".join(f"- {row['work']}: {row['floor is']}. Above it: {row['far']}." for row in kept.values())


def page(results, names, *, gpu):
    """The whole page, from what is kept."""
    kept = {name: results[name] for name in names if name in results}
    rows = [row for found in kept.values() for row in found["rows"]]
    lines = [line for found in kept.values() for line in found["growth"]]
    usual = Counter((found["date"], found["machine"]) for found in kept.values()).most_common(1)[0][0]
    seconds = sum(found["seconds"] for name, found in kept.items())
    apart = [
        f"- {name}: {found['date']}, {found['machine']}."
        for name, found in kept.items()
        if (found["date"], found["machine"]) != usual
    ]
    wrong = [f"- {name}: {found['error']}." for name, found in kept.items() if found["error"]]
    there = (ROOT / "docs" / "benchmarks_gpu.md").exists()
    how = HOW.replace("{that of a GPU}", "[that of a GPU](benchmarks_gpu.md)" if there else "that of a GPU")
    met, asked = sum(row.get("met") is True for row in rows), sum(row.get("met") != "" for row in rows)
    parts = [
        f"# Benchmarks{' on a GPU' if gpu else ''}\n",
        f"Measured {usual[0]} on {usual[1]}.",
        *([] if gpu else [f"Peers: {', '.join(peer_versions())}."]),
        f"\n{HOW_GPU if gpu else how}",
        f"{met} of {asked} rows that have a goal meet it.\n",
        _table(rows),
        f"## Misses\n\n{_missed(rows)}\n",
        f"The floors:\n\n{_floors(rows)}\n",
        "## Growth\n\nExponents fitted over three sizes, beside what is expected.\n",
        _growth(lines),
        *(["## Measured elsewhere or at another time\n", "\n".join(apart), ""] if apart else []),
        *(["## Sections that did not end\n", "\n".join(wrong), ""] if wrong else []),
        f"The sections took {seconds / 60:.1f} minutes in all.\n",
    ]
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="these alone; the others stay as they were")
    parser.add_argument("--gpu", action="store_true", help="the sections that need one, and nothing else")
    parser.add_argument("--full", action="store_true", help="also the sections that take minutes by themselves")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--results", type=Path, help="where what was measured is kept")
    parser.add_argument("--only-page", action="store_true", help="measure nothing, write the page from what is kept")
    options = parser.parse_args()
    stem = "benchmarks_gpu" if options.gpu else "benchmarks"
    place = options.page or ROOT / "docs" / f"{stem}.md"
    store = options.results or HERE / f"{'bench_gpu' if options.gpu else 'bench'}_results.json"
    script, usual, everything = sections_of(gpu=options.gpu)
    unknown = set(options.sections) - set(everything)
    if unknown:
        parser.error(f"expected sections among {', '.join(everything)}, got {', '.join(sorted(unknown))}")
    wanted = [] if options.only_page else options.sections or (everything if options.full else usual)
    if not wanted and not store.exists():
        parser.error(f"expected what was measured in {store}, got no such file; run without --only-page")
    results, began = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}, time.perf_counter()
    for name in wanted:
        print(f"{name} ({time.perf_counter() - began:.0f} s)", flush=True)
        results[name] = section_result(script, name, seconds=SECONDS if name in usual else FULL_SECONDS)
        store.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        place.write_text(page(results, everything, gpu=options.gpu), encoding="utf-8")
    place.write_text(page(results, everything, gpu=options.gpu), encoding="utf-8")
    print(f"written to {place} after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
