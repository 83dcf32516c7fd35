"""The table of benchmarks: ours, the peers', the ratio, the floor and the growth, measured in one run and written as a page.

`make bench` runs it (no GPU, under 15 minutes on two cores); `make bench-gpu` with `--gpu`. Every number is the processor
time of a process of its own with one thread, less imports and the making of data. A peer that is not installed is said so
in its row. Peers live in .venv-peers, DADApy in .venv-dadapy.
"""

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS, DADAPY = ROOT / ".venv-peers", ROOT / ".venv-dadapy"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4000000"}  # what is given back is not counted as held


HOW = """Every number is the processor time of a process of its own, less imports and the making of data; in the table with one
thread. `make bench` writes this page again; `make bench-gpu` writes one of the scripts that need a GPU.
[What others do that Theodolite does not](others.md) is a page of its own.
"""
TABLE = """
Memory is what the process took beyond data and imports. Ratios are theirs over ours; behind the floor stands how many times
the floor we take. A peer that is not installed is said so.
"""


@dataclass(frozen=True)
class Row:
    """A job at three sizes; what a size counts, what is expected of time and memory as powers of it, and the floor."""

    name: str
    work: str
    counts: str
    sizes: tuple[float, ...]
    peers: tuple[str, ...]
    expected: tuple[str, str]
    floor: str
    peer_size: float = 0.0  # where the largest is too much for the peers


ROWS = (
    Row(
        "kernels",
        "NTK and NNGP kernel of a ReLU network, d = 784, float32",
        "points",
        (1000, 2000, 4000),
        ("neural-tangents",),
        ("2", "2"),
        "the products of half of all pairs, and both kernels written once",
    ),
    Row(
        "twonn",
        "TwoNN dimension of a ball of 5 dimensions in 50 columns with noise in all",
        "rows",
        (12_500, 25_000, 50_000),
        ("DADApy", "torchid", "scikit-dimension"),
        ("1 to 1.3 (tree)", "1"),
        "products of all pairs, each pair once: for a search without a tree",
    ),
    Row(
        "cells",
        "exact cells of a ReLU network, three hidden layers, in a square",
        "width",
        (64, 128, 256),
        (),
        ("2 (cells) to 4", "2 to 3"),
        "one pass of the network at one point of each cell",
    ),
    Row(
        "plane",
        "exact cells of a ReLU network, two hidden layers, in the plane",
        "width",
        (8, 12, 16),
        ("relucent",),
        ("2", "2"),
        "",
    ),
    Row(
        "subspace",
        "four steps of Adam in a Fastfood subspace of 750, memory shared with the model",
        "million parameters",
        (2.5, 5, 10),
        ("Adam on all weights",),
        ("1", "1"),
        "four steps of SGD; memory: projected weights, projection and the largest layer's gradient are 2.4 models",
    ),
    Row(
        "ridge",
        "kernel ridge regression, ReLU NTK, d = 784, ten targets",
        "points",
        (2000, 4000, 8000),
        ("scikit-learn",),
        ("2 to 2.3", "1"),
        "one product with the kernel",
    ),
    Row(
        "hadamard",
        "Hadamard transform, float32",
        "levels",
        (20, 22, 24),
        ("hadamard-transform",),
        ("1 (in 2^levels)", "1"),
        "one copy",
    ),
    Row(
        "power law",
        "power law fit of eigenvalues, WeightWatcher's rule",
        "values",
        (1000, 4000, 16_000),
        ("WeightWatcher",),
        ("1 to 2", "1"),
        "a sort and sums",
    ),
    Row(
        "alpha-ReQ",
        "alpha-ReQ of features (4 n x n), reptrix' rule",
        "n",
        (256, 512, 1024),
        ("reptrix",),
        ("3", "2"),
        "covariance and eigenvalues",
    ),
)
SCRIPTS = (("curvature.py", ()), ("empirical_ntk.py", ()), ("conv_kernels.py", ()), ("subspace.py", ()))
GPU_SCRIPTS = (
    ("gpu_kernels.py", ()),
    ("gpu_hadamard.py", ()),
    ("gpu_spectra.py", ()),
    ("gpu_watch.py", ()),
    ("gpu_survey.py", ()),
    ("kernel_ridge.py", ("50000", "--device", "cuda")),
)


def measured(row, tool, size, *, seconds):
    """What a job took, or why there is no answer."""
    own = tool in ("ours", "floor", "Adam on all weights", "scikit-learn")
    python = sys.executable if own else (DADAPY if tool == "DADApy" else PEERS) / "bin" / "python"
    path = os.environ.get("PYTHONPATH", "") if own else str(PEERS / "torchid")
    command = [str(python), str(HERE / "bench_rows.py"), "--row", row.name, "--tool", tool, "--size", str(size)]
    environment = {**os.environ, **THREADS, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    if row.name == "subspace":
        environment |= MEMORY
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, timeout=seconds, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done in {seconds:.0f} s"}
    except OSError:
        return {"error": "not installed"}
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line:
        return json.loads(line.removeprefix("RESULT "))
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return {"error": "not installed" if "ModuleNotFoundError" in last else last[:80]}


def exponent(sizes, values):
    """The slope of log value on log size by least squares; None where a value is too small to say."""
    if min(values) <= 0:
        return None
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    middle, level = sum(x) / len(x), sum(y) / len(y)
    return sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)


def table_lines(row, report):
    """The lines of a row in the table, and its line in the table of growth."""
    ours = {size: measured(row, "ours", size, seconds=200) for size in row.sizes}
    lines, largest = [], row.sizes[-1]
    floor = measured(row, "floor", largest, seconds=100) if row.floor else {"error": ""}
    own = ours[largest]
    if "error" in own:
        return [f"| {row.work} | {largest:,g} {row.counts} | {own['error']} | | | | |"], ""
    bottom = f"{_seconds(floor['seconds'])} ({own['seconds'] / floor['seconds']:.1f})" if "seconds" in floor else ""
    at = f"{largest:,g} {row.counts}"
    shown = f"{_seconds(own['seconds'])}, {own['extra']:.0f} MB"
    for place, peer in enumerate(row.peers or ("",)):
        other = measured(row, peer, row.peer_size or largest, seconds=150) if peer else {"error": ""}
        report(f"  {peer or 'no peer'}: {other}")
        if "error" in other:
            theirs = f"{peer}: {other['error']}" if peer else "none known"
            cells = theirs, ""
        else:
            less = f", memory {other['extra'] / own['extra']:.1f}" if own["extra"] > 1 and other["extra"] > 1 else ""
            cells = (
                f"{peer} {_seconds(other['seconds'])}, {other['extra']:.0f} MB{_apart(own, other, row)}",
                f"{other['seconds'] / own['seconds']:.1f}{less}",
            )
        start = f"| {row.work} | {at} | {shown} |" if not place else "| | | |"
        lines.append(f"{start} {cells[0]} | {cells[1]} | {bottom if not place else ''} |")
    scale = [2.0**size for size in row.sizes] if row.name == "hadamard" else row.sizes
    powers = [exponent(scale, [ours[size][key] for size in row.sizes]) for key in ("seconds", "extra")]
    found = [f"{power:.2f}" if power is not None else "too small to say" for power in powers]
    sizes = ", ".join(f"{size:,g}" for size in row.sizes)
    times = ", ".join(_seconds(ours[size]["seconds"]) for size in row.sizes)
    return lines, (
        f"| {row.work} | {sizes} {row.counts} | {times} | {found[0]} | {row.expected[0]} | {found[1]} | {row.expected[1]} |"
    )


def _apart(own, other, row):
    if row.name in ("subspace", "ridge"):
        return ""
    apart = abs(own["value"] - other["value"]) / max(abs(own["value"]), 1e-300)
    return ", same answer" if apart < 1e-9 else f", answer differs by {apart:.0e}"


def _seconds(value):
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.3g} ms"


def script_section(script, arguments, *, seconds):
    """What another script prints, in a block of its own."""
    start = time.perf_counter()
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "COLUMNS": "130"}
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / script), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            cwd=ROOT,
            env=environment,
        )
        told = done.stdout.rstrip() or (done.stderr.strip().splitlines() or ["no output"])[-1]
    except subprocess.TimeoutExpired as stopped:
        told = f"{(stopped.stdout or b'').decode()}\nstopped after {seconds} s"
    words = " ".join([script, *arguments])
    return f"## `benchmarks/{words}`\n\n{time.perf_counter() - start:.0f} s.\n\n```text\n{told}\n```\n"


def machine():
    """The processor, its cores, and the versions that matter."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        )
        if Path("/proc/cpuinfo").exists()
        else (),
        platform.processor() or "unknown processor",
    )
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "numpy", "scipy"))
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def peer_versions():
    """The versions of the peers, as their own environments tell them."""
    code = (
        "import importlib.metadata as m; print(', '.join(sorted(f'{d.name} {d.version}' for d in m.distributions())))"
    )
    told = []
    for python in (PEERS / "bin/python", DADAPY / "bin/python"):
        if python.exists():
            told += subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip().split(", ")
    wanted = {"neural-tangents", "scikit-dimension", "dadapy", "relucent", "weightwatcher", "reptrix"}
    wanted |= {"hadamard-transform", "curvlinops-for-pytorch", "pyhessian", "hessian-eigenthings", "jax"}
    return sorted({one for one in told if one.partition(" ")[0].lower() in wanted}) or ["none installed"]


def _ruled(*columns):
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"


def page(rows, scripts, title):
    """The whole page; says on the terminal where it stands."""
    start, lines, growth = time.perf_counter(), [], []
    for row in rows:
        print(f"{row.name} ({time.perf_counter() - start:.0f} s)", flush=True)
        own, grown = table_lines(row, print)
        lines += own
        growth += [grown] if grown else []
    sections = [script_section(name, arguments, seconds=150) for name, arguments in scripts]
    today = datetime.datetime.now(tz=datetime.UTC).date()
    text = f"# {title}\n\nMeasured {today} on {machine()}.\nPeers: {', '.join(peer_versions())}.\n\n{HOW}"
    if rows:
        floors = "\n".join(f"- {row.work}: {row.floor}." for row in rows if row.floor)
        text += (
            f"{TABLE}\n{_ruled('work', 'size', 'ours', 'theirs', 'times slower, and larger', 'floor')}"
            + "\n".join(lines)
            + f"\n\nThe floors:\n\n{floors}\n\n## Growth\n\nFitted exponents over three sizes, beside what is expected.\n\n"
            + _ruled("work", "sizes", "times", "exponent of time", "expected", "of memory", "expected")
            + "\n".join(growth)
            + "\n"
        )
    took = time.perf_counter() - start
    return f"{text}\n{chr(10).join(sections)}\nThe whole run took {took / 60:.1f} minutes.\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--gpu", action="store_true", help="the scripts that need one, and nothing else")
    parser.add_argument("--only", nargs="*", help="rows by name; no other scripts are run")
    options = parser.parse_args()
    if options.gpu:
        text = page((), GPU_SCRIPTS, "Benchmarks on a GPU")
    else:
        rows = [row for row in ROWS if not options.only or row.name in options.only]
        text = page(rows, () if options.only else SCRIPTS, "Benchmarks")
    options.page.write_text(text, encoding="utf-8")
    print(f"written to {options.page}")


if __name__ == "__main__":
    main()
