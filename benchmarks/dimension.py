"""Intrinsic dimension beside scikit-dimension, DADApy and torchid: answers, coverage, time and memory, in one run.

Every measurement is a process of its own with one thread; times are processor seconds without imports. `make bench` makes the
environment of the peers; DADApy needs one of its own (numpy below 2): python -m venv .venv-dadapy and pip install
dadapy==0.3.4 there. torchid is a wheel for Python 3.13 that runs on 3.11 when unpacked: --torchid names the folder. What is
not there is left out and said. `--quick` leaves out 50,000 rows.
"""

import argparse
import gzip
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
SETS = {
    "line 1": ("torus", 1),
    "sphere 2": ("sphere", 2),
    "torus 3": ("torus", 3),
    "ball 5": ("ball", 5),
    "cube 10": ("cube", 10),
    "sphere 10": ("sphere", 10),
    "gauss 20": ("gauss", 20),
    "ball 40": ("ball", 40),
}


def tables(folder, real):
    """Ball of 5 dimensions in 50 columns, flat and full of noise, at each size; known manifolds; real data."""
    import numpy as np
    import torch

    from theodolite.construct.dimension import manifold, rotated

    for n in (2000, 10_000, 50_000):
        g = torch.Generator().manual_seed(n)
        x = rotated(manifold("ball", n, 5, generator=g), 50, generator=g)
        np.save(folder / f"flat{n}.npy", x.numpy())
        np.save(folder / f"full{n}.npy", (x + 1e-3 * torch.randn(x.shape, generator=g, dtype=torch.float64)).numpy())
    for place, (kind, d) in enumerate(SETS.values()):
        for draw in range(5):
            g = torch.Generator().manual_seed(100 * place + draw)
            np.save(
                folder / f"set{place}-{draw}.npy",
                rotated(manifold(kind, 2000, d, generator=g), 80, generator=g).numpy(),
            )
    for name, path in (
        ("MNIST test", "mnist/t10k-images-idx3-ubyte.gz"),
        ("Fashion test", "fashion/t10k-images-idx3-ubyte.gz"),
    ):
        if (real / path).exists():
            pixels = np.frombuffer(gzip.decompress((real / path).read_bytes())[16:], dtype=np.uint8)
            np.save(folder / f"{name}.npy", pixels.reshape(-1, 784).astype(np.float64))
    if (real / "cifar10/train_first5000.png").exists() and importlib.util.find_spec("PIL"):
        from PIL import Image  # no dependency of ours, but of many packages

        pixels = np.asarray(Image.open(real / "cifar10/train_first5000.png").convert("RGB"))
        np.save(folder / "CIFAR-10 (5,000).npy", pixels.reshape(5000, -1).astype(np.float64))


def theodolite(x, job):
    from theodolite.measure import dimension as own

    if job == "all":
        graph = own.nearest_neighbors(x, 128)
        found = (
            own.dimension_twonn(graph),
            own.dimension_mle(graph),
            own.dimension_gride(graph, near=4),
            own.dimension_correlation(graph),
            own.dimension_calibrated(graph.rows),
        )
        return [(e.value, e.stderr) for e in found]
    if job == "curve":
        return [(e.value, e.stderr) for e in own.gride_curve(x)]
    jobs = {
        "twonn": own.dimension_twonn,
        "mle": lambda x: own.dimension_mle(x, neighbors=(20, 20)),
        "correlation": own.dimension_correlation,
    }
    found = jobs[job](x)
    return [(found.value, found.stderr)]


def scikit_dimension(x, job):
    import skdim

    jobs = {"twonn": skdim.id.TwoNN, "mle": lambda: skdim.id.MLE(K=20), "correlation": skdim.id.CorrInt}
    if job == "all":
        return [(scikit_dimension(x, name)[0][0], None) for name in ("twonn", "mle", "correlation")]
    return [(float(jobs[job]().fit(x).dimension_), None)]


def dadapy(x, job):
    from dadapy import Data

    data = Data(coordinates=x, verbose=False, n_jobs=1)
    if job == "curve":
        values, errors, _ = data.return_id_scaling_gride(range_max=128)
        return list(zip(map(float, values), map(float, errors), strict=True))
    value, error, _ = data.compute_id_2NN()
    return [(float(value), float(error))]


def torchid(x, job):
    import torch
    from torchid import estimators

    kinds = {"twonn": "TwoNN", "mle": "MLE", "correlation": "CorrInt"}
    model = getattr(estimators, kinds[job])()
    table = torch.from_numpy(x)
    found = model.fit(table) if hasattr(model, "fit") else model(table)
    value = getattr(found, "dimension_", found)
    return [(float(value), None)]


TOOLS = {"theodolite": theodolite, "scikit-dimension": scikit_dimension, "DADApy": dadapy, "torchid": torchid}


def inner(options):
    import warnings

    import numpy as np

    warnings.simplefilter("ignore")
    found = {}
    for name in options.tables:
        x = np.load(options.folder / f"{name}.npy")
        TOOLS[options.tool](x[:300], options.job)  # imports and compilation are not timed
        started = time.process_time()
        found[name] = TOOLS[options.tool](x, options.job)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("RESULT " + json.dumps({"values": found, "seconds": seconds, "peak": peak}))


def process(options, tool, job, names):
    python = {"theodolite": sys.executable, "DADApy": options.dadapy / "bin/python"}.get(
        tool, options.peers / "bin/python"
    )
    path = os.pathsep.join(
        filter(None, (str(options.torchid) if tool == "torchid" else "", os.environ.get("PYTHONPATH", "")))
    )
    command = [str(python), __file__, "--tool", tool, "--job", job, "--folder", str(options.folder), "--tables", *names]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, **THREADS, "PYTHONPATH": path},
            check=False,
            timeout=600,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)[:60]}
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:60]}
    return json.loads(line.removeprefix("RESULT "))


def speed(console, options):
    for kind in ("flat", "full"):
        for n in (2000, 10_000) if options.quick else options.sizes:
            console.print(speed_table(options, kind, n))


def speed_table(options, kind, n):
    from rich.table import Table

    words = "flat" if kind == "flat" else "with noise of 1e-3 in every column"
    table = Table(
        "estimator",
        "tool",
        "CPU s",
        "peak MB",
        "value",
        "difference from ours",
        "times slower",
        title=f"ball of 5 dimensions in 50 columns, {words}, {n:,} rows",
    )
    curve = ["theodolite", "DADApy"] if kind == "flat" and n <= 10_000 else ["theodolite"]
    for job, tools in (("twonn", list(TOOLS)), ("curve", curve)):
        ours = None
        for tool in tools:
            got = process(options, tool, job, [f"{kind}{n}"])
            if "error" in got:
                table.add_row(job, tool, got["error"])
                continue
            values = got["values"][f"{kind}{n}"]
            told = f"{values[0][0]:.4f}" + (f" to {values[-1][0]:.4f}" if job == "curve" else "")
            ours = ours or (got["seconds"], values[0][0])
            apart = "" if tool == "theodolite" else f"{abs(values[0][0] / ours[1] - 1):.1e}"
            ratio = "" if tool == "theodolite" else f"{got['seconds'] / ours[0]:.1f}"
            table.add_row(job, tool, f"{got['seconds']:.2f}", f"{got['peak']:.0f}", told, apart, ratio)
    return table


def accuracy(console, options):
    import statistics

    from rich.table import Table

    table = Table(
        "set",
        "estimator",
        "mean ± mean stated error",
        "within 3 errors",
        "scikit-dimension",
        title="known manifolds, 2,000 rows in 80 columns, five draws each",
    )
    for place, (label, (_, truth)) in enumerate(SETS.items()):
        names = [f"set{place}-{draw}" for draw in range(5)]
        ours = process(options, "theodolite", "all", names)
        peer = process(options, "scikit-dimension", "all", names)
        peers = {}
        if "error" not in peer:
            rows = [peer["values"][name] for name in names]
            peers = dict(
                zip(("TwoNN", "MLE", "correlation"), ([row[i][0] for row in rows] for i in range(3)), strict=True)
            )
        for index, estimator in enumerate(("TwoNN", "MLE", "Gride 4", "correlation", "calibrated")):
            pairs = [ours["values"][name][index] for name in names]
            inside = sum(abs(value - truth) <= 3 * error for value, error in pairs)
            mean = statistics.mean(value for value, _ in pairs)
            other = f"{statistics.mean(peers[estimator]):.2f}" if estimator in peers else ""
            table.add_row(
                label if not index else "",
                estimator,
                f"{mean:.2f} ± {statistics.mean(e for _, e in pairs):.2f}",
                f"{inside} of 5",
                other,
            )
    console.print(table)


def real(console, options):
    from rich.table import Table

    table = Table("data", "TwoNN", "MLE", "Gride 4", "correlation", "calibrated", "CPU s", title="real data")
    for name in ("MNIST test", "Fashion test", "CIFAR-10 (5,000)"):
        if (options.folder / f"{name}.npy").exists():
            got = process(options, "theodolite", "all", [name])
            cells = [f"{v:.1f} ± {e:.1f}" for v, e in got["values"][name]] if "error" not in got else [got["error"]] * 5
            table.add_row(name, *cells, f"{got.get('seconds', 0):.1f}")
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("speed", "accuracy", "real"))
    parser.add_argument("--sizes", type=int, nargs="*", default=(2000, 10_000, 50_000))
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data", help="real data, where it is there"
    )
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers")
    parser.add_argument("--dadapy", type=Path, default=ROOT / ".venv-dadapy")
    parser.add_argument("--torchid", type=Path, default=ROOT / ".venv-peers" / "torchid")
    for name in ("--tool", "--job"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--tables", nargs="*", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tool == "tables":
        tables(options.folder, options.data)
        return
    if options.tool:
        inner(options)
        return
    from rich.console import Console

    console = Console(width=130)
    with tempfile.TemporaryDirectory() as place:
        options.folder = Path(place)
        command = [
            sys.executable,
            __file__,
            "--tool",
            "tables",
            "--folder",
            place,
        ]  # a child's peak counts its parent's
        subprocess.run(command, check=True)
        for part in (speed, accuracy, real):
            if options.only in (None, part.__name__):
                part(console, options)


if __name__ == "__main__":
    main()
