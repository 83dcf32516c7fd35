"""The rows of the table of benchmarks whose jobs are in bench_rows.py: sizes, peers, floors, goals and what growth to expect.

A goal that is missed has a reason here; it is printed only where the run missed it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from growth import growth_row, seconds_words

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS, DADAPY = ROOT / ".venv-peers", ROOT / ".venv-dadapy"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4000000"}  # what is given back is not counted as held
OWN = ("ours", "floor", "Adam on all weights", "scikit-learn", "all cells held", "nothing kept")


def ahead(own, others):
    """Faster than every peer that ran."""
    return all(other["seconds"] > own["seconds"] for other in others.values())


def times(*, between="-", **least):
    """At least so many times as fast as each of the peers named; what stands between the words of their names."""

    def held(own, others):
        return all(others[name.replace("_", between)]["seconds"] >= n * own["seconds"] for name, n in least.items())

    return held


@dataclass(frozen=True)
class Row:
    """A job at three sizes; what a size counts, what is expected of time and memory as powers of it, and the floor."""

    name: str
    work: str
    counts: str
    sizes: tuple[float, ...]
    peers: tuple[str, ...]
    expected: tuple[str, str]
    floor: str = ""
    far: str = ""  # why we are above the floor
    goal: str = "ahead of the peers"
    holds: Callable = ahead
    why: str = ""  # it is missed
    each: tuple[float, str] | None = None  # what the value counts: told in microseconds of each
    threads: bool = False  # all cores, not one
    no_peer: str = "no peer known"


ROWS = (
    Row(
        "kernels",
        "NTK and NNGP kernel of a ReLU network, d = 784, float32",
        "points",
        (1000, 2000, 4000),
        ("neural-tangents",),
        ("2", "2"),
        "the products of half of all pairs, and both kernels written once",
        "an arc cosine and a root for every pair and layer",
    ),
    Row(
        "kernels of tanh",
        "NTK and NNGP kernel of a tanh network, d = 784, float32 (the peer by its quadrature of degree 25)",
        "points",
        (200, 400, 800),
        ("neural-tangents",),
        ("2", "2"),
        "the products of half of all pairs, and both kernels written once",
        "the expectation of a tanh has no closed form: it is read off a series for every pair and layer",
    ),
    Row(
        "twonn",
        "TwoNN dimension of a ball of 5 dimensions in 50 columns with noise in all",
        "rows",
        (12_500, 25_000, 50_000),
        ("DADApy", "torchid", "scikit-dimension"),
        ("1 to 1.3 (tree)", "1"),
        "products of all pairs, each pair once: for a search without a tree",
        "a tree in the few directions that matter leaves most pairs out",
        "5 times scikit-dimension, 3 times DADApy",
        times(scikit_dimension=5, DADApy=3),
        "a tree in 50 columns of noise leaves few pairs out",
    ),
    Row(
        "many rows",
        "TwoNN dimension of a cube of 5 dimensions in 10 columns, with its error, from a million of the rows",
        "rows",
        (2_500_000, 5_000_000, 10_000_000),
        (),
        ("1 to 1.3 (tree)", "1"),
        goal="60 s, 8 GB",
        holds=lambda own, others: own["seconds"] <= 60 and own["extra"] <= 8192,
        no_peer="DADApy takes 12 s for 50,000 rows",
    ),
    Row(
        "cells",
        "exact cells of a ReLU network, three hidden layers, in a square",
        "width",
        (64, 128, 256),
        (),
        ("2 (cells) to 4", "2 to 3"),
        "one pass of the network at one point of each cell",
        "cutting polygons, and the affine maps of all units in every cell",
        "20 us a cell",
        lambda own, others: own["seconds"] <= 20e-6 * own["value"],
        "the maps of 256 units in every cell of the layer before",
        (1.0, "cell"),
        no_peer="none on the package index; relu_edge_subdivision took 140 s elsewhere",
    ),
    Row(
        "cells of two layers",
        "exact cells of a ReLU network, two hidden layers, in a square",
        "width",
        (32, 64, 128),
        (),
        ("2 (cells) to 4", "2 to 3"),
        "one pass of the network at one point of each cell",
        "cutting polygons",
        "14 us a cell",
        lambda own, others: own["seconds"] <= 14e-6 * own["value"],
        "few cells: what is done once for each layer weighs",
        (1.0, "cell"),
    ),
    Row(
        "plane",
        "exact cells of a ReLU network, two hidden layers, in the plane",
        "width",
        (8, 12, 16),
        ("relucent",),
        ("2", "2"),
    ),
    Row(
        "ridge",
        "kernel ridge regression, ReLU NTK, d = 784, ten targets",
        "points",
        (2000, 4000, 8000),
        ("scikit-learn",),
        ("2", "2"),
        "one product with the kernel",
        "its upper half is kept and read once an iteration; columns of the preconditioner",
        "ahead of the peers, in half of their memory",
        lambda own, others: all(
            2 * own["extra"] <= other["extra"] and own["seconds"] < other["seconds"] for other in others.values()
        ),
        "half of the kernel is kept where memory is free, where scikit-learn factors the whole of it",
    ),
    Row(
        "kept ridge",
        "kernel ridge regression with memory for two fifths of the kernel",
        "points",
        (2000, 4000, 8000),
        ("nothing kept",),
        ("2 to 2.3", "2"),
        "one product with the kernel",
        "four fifths of the upper half are kept, the rest is computed for each iteration; columns of the preconditioner",
        "half of the time without",
        times(between=" ", nothing_kept=2),
        "the preconditioner is not kept",
    ),
    Row(
        "hadamard",
        "Hadamard transform, float32",
        "levels",
        (20, 22, 24),
        ("hadamard-transform",),
        ("1 (in 2^levels)", "1"),
        "one copy",
        "24 levels in few passes over memory: additions, not bytes, are what one core is short of",
    ),
    Row(
        "power law",
        "power law fit of eigenvalues, WeightWatcher's rule",
        "values",
        (1000, 4000, 16_000),
        ("WeightWatcher",),
        ("1 to 2", "1"),
        "a sort and sums",
        "a distance for every lower end of the tail that the rule tries",
    ),
    Row(
        "alpha-ReQ",
        "alpha-ReQ of features (4 n x n), reptrix' rule",
        "n",
        (256, 512, 1024),
        ("reptrix",),
        ("3", "2"),
        "covariance and eigenvalues",
        "nothing else is done; single precision where that is enough",
    ),
)
FULL_RIDGE = Row(
    "ridge at full size",
    "kernel ridge regression, ReLU NTK, d = 784, ten targets, 4 GB of tiles kept, all cores",
    "points",
    (50_000,),
    (),
    ("2 to 2.3", "1"),
    "one product with the kernel",
    "one product for each iteration, and the columns of the preconditioner",
    "472 s of processor time (half of 945)",
    lambda own, others: own["seconds"] <= 472.5,
    "iterations times one pass of the kernel: a pass is bound by the arc cosines and roots of 2.5 billion pairs",
    threads=True,
)
GROWN = (  # rows of other scripts, whose growth is measured here
    Row("hessian", "one product with the Hessian of a digits MLP", "samples", (900, 1800, 3600), (), ("1", "1")),
    Row(
        "eigenvalues",
        "ten largest eigenvalues of the Hessian of a digits MLP",
        "samples",
        (900, 1800, 3600),
        (),
        ("1", "1"),
    ),
    Row("subspace", "four steps in a Fastfood subspace", "million parameters", (2.5, 5, 10), (), ("1", "1")),
    Row("look", "a cheap look of th.Watch at an MLP", "million parameters", (1, 2, 4), (), ("1", "1")),
    Row("structure", "one matrix (n x n) tested for structure", "n", (256, 512, 1024), (), ("2 to 3", "2")),
)
STREAMED = Row(
    "streamed cells",
    "cells of three hidden layers told part by part and not kept",
    "width",
    (128, 256, 512),
    ("all cells held",),
    ("2 (cells) to 4", "0 to 1 (with the width, not with the cells)"),
    "",
    "",
    "memory bounded: 256 MB for 800,000 cells",
    lambda own, others: own["extra"] <= 256,
    "a part in front of every bend, with its maps before and behind it",
    (1.0, "cell"),
)


def measured(row, tool, size, *, seconds):
    """What a job took, or why there is no answer."""
    own = tool in OWN
    python = sys.executable if own else (DADAPY if tool == "DADApy" else PEERS) / "bin" / "python"
    path = os.environ.get("PYTHONPATH", "") if own else str(PEERS / "torchid")
    command = [str(python), str(HERE / "bench_rows.py"), "--row", row.name, "--tool", tool, "--size", str(size)]
    environment = {**os.environ, **({} if row.threads else THREADS), "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
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


def row_records(row, *, seconds=300):
    """The lines of a row: its line in the table, and that of its growth."""
    largest = row.sizes[-1]
    ours = {size: measured(row, "ours", size, seconds=seconds) for size in row.sizes}
    own = ours[largest]
    line = {"work": row.work, "size": f"{largest:,g} {row.counts}", "goal": row.goal, "why": row.why}
    line |= {"no peer": row.no_peer}
    if "error" in own:
        yield "row", {**line, "ours": f"did not run: {own['error']}", "met": None}
        return
    floor = measured(row, "floor", largest, seconds=seconds) if row.floor else {}
    others = {peer: measured(row, peer, largest, seconds=seconds) for peer in row.peers}
    ran = {name: other for name, other in others.items() if "error" not in other}
    each = f" ({1e6 * own['seconds'] / own['value']:.1f} us a {row.each[1]})" if row.each else ""
    line |= {
        "ours": f"{seconds_words(own['seconds'])}{each}, {own['extra']:.0f} MB",
        "theirs": [_beside(row, own, name, other) for name, other in others.items()],
        "floor": "",
        "met": row.holds(own, others) if len(ran) == len(others) else None,
    }
    if "seconds" in floor:
        line |= {"floor": f"{seconds_words(floor['seconds'])} ({own['seconds'] / floor['seconds']:.1f})"}
        line |= {"floor is": row.floor, "far": row.far}
    yield "row", line
    if len(row.sizes) > 1:
        yield from row_growth(row, list(ours.values()))


def row_growth(row, found=None):
    """The line of growth."""
    found = found or [measured(row, "ours", size, seconds=200) for size in row.sizes]
    wrong = next((one["error"] for one in found if "error" in one), None)
    if wrong:
        yield "growth", {"work": row.work, "sizes": f"did not run: {wrong}"}
        return
    scale = [2.0**size for size in row.sizes] if row.name == "hadamard" else None
    keys = ("seconds", "extra")
    yield "growth", growth_row(row.work, row.sizes, found, row.expected, counts=row.counts, scale=scale, keys=keys)


def _beside(row, own, name, other):
    if "error" in other:
        return {"told": f"{name}: {other['error']}", "ratio": ""}
    less = f", memory {other['extra'] / own['extra']:.1f}" if own["extra"] > 1 and other["extra"] > 1 else ""
    told = f"{name} {seconds_words(other['seconds'])}, {other['extra']:.0f} MB{_apart(row, own, other)}"
    return {"told": told, "ratio": f"{other['seconds'] / own['seconds']:.1f}{less}"}


def _apart(row, own, other):
    if "ridge" in row.name:
        return ""
    apart = abs(own["value"] - other["value"]) / max(abs(own["value"]), 1e-300)
    return ", same answer" if apart < 1e-9 else f", answer differs by {apart:.0e}"
