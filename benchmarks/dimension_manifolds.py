"""Intrinsic dimension on 24 manifolds of known dimension: the mean relative error of every estimator, beside scikit-dimension.

The peer runs in the environment that `make bench` makes (or the one that --peers names), one process for all manifolds; where
it is not there, its columns are left out and that is said. `--rows` and `--draws` set how much is drawn.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
PEER = """
import json, sys, time, warnings
import numpy as np, skdim
warnings.simplefilter("ignore")
tables, told = np.load(sys.argv[1]), {}
makers = {"TwoNN": skdim.id.TwoNN, "MLE": lambda: skdim.id.MLE(K=20), "ESS": skdim.id.ESS, "DANCo": skdim.id.DANCo}
for method, make in makers.items():
    began, values = time.process_time(), {}
    for name in tables.files:
        if method == "DANCo" and tables[name].shape[1] > 30:  # its references take minutes a manifold there
            continue
        model = make()
        found = model.fit_transform_pw(tables[name], n_neighbors=30) if method == "ESS" else None
        value = float(np.nanmean(found)) if found is not None else float(model.fit(tables[name]).dimension_)
        values[name] = value
    told[method] = {"values": values, "seconds": time.process_time() - began}
print(json.dumps(told))
"""


def ours(x):
    import torch

    import theodolite as th
    from theodolite.measure import dimension as measure

    found = th.dimension(torch.from_numpy(x), picture=False)
    names = {
        "best": found.best.value,
        "calibrated": found.estimate("TwoNN, calibrated").value,
        "TwoNN": found.estimate("TwoNN").value,
        "MLE": found.estimate("MLE, k = 10 to 20").value,
        "correlation": found.estimate("correlation dimension").value,
        "local PCA": found.estimate("local PCA 95 %").value,
    }
    for name in ("dimension_ess", "dimension_danco"):
        names[name.removeprefix("dimension_").upper().replace("DANCO", "DANCo")] = getattr(measure, name)(x).value
    return names


def peers(python, tables):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.npz"
        np.savez(path, **tables)
        done = subprocess.run([python, "-c", PEER, str(path)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr.strip()[-200:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers" / "bin" / "python")
    options = parser.parse_args()
    import torch
    from rich.console import Console
    from rich.table import Table

    sys.path.insert(0, str(ROOT))  # benchmarks is no installed package
    from benchmarks.known_manifolds import benchmark_manifolds

    known_ones = benchmark_manifolds()
    console, errors, cells, tables = Console(width=150), {}, {}, {}
    for name, known in known_ones.items():
        for draw in range(options.draws):
            x = known.points(options.rows, generator=torch.Generator().manual_seed(draw)).numpy()
            tables[f"{name}/{draw}"] = x
            began = time.perf_counter()
            for method, value in ours(x).items():
                errors.setdefault(method, []).append(abs(value / known.dimension - 1))
                cells.setdefault(method, {}).setdefault(name, []).append(value)
            print(name, draw, f"{time.perf_counter() - began:.1f} s", file=sys.stderr)
    other = peers(str(options.peers), tables) if options.peers.exists() else {"error": f"no {options.peers}"}
    for method, told in other.items() if "error" not in other else ():
        for key, value in told["values"].items():
            name = key.rsplit("/", 1)[0]
            errors.setdefault(f"skdim {method}", []).append(abs(value / known_ones[name].dimension - 1))
            cells.setdefault(f"skdim {method}", {}).setdefault(name, []).append(value)
    table = Table("manifold", "true", *cells, title=f"{options.rows} rows, mean of {options.draws} draws")
    for name, known in known_ones.items():
        row = [f"{np.mean(found[name]):.2f}" if name in found else "" for found in cells.values()]
        table.add_row(name, str(known.dimension), *row)
    counted = [f"{100 * np.mean(found):.1f} % ({len(found)})" for found in errors.values()]
    table.add_row("mean error (manifolds)", "", *counted)
    console.print(table)
    if "error" in other:
        console.print(f"scikit-dimension left out: {other['error']}")


if __name__ == "__main__":
    main()
