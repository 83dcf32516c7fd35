"""NNGP and NTK of infinite networks beside neural-tangents: time, first call, peak memory and agreement, in one run.

Each measurement is a process of its own, in this environment or in that of the peers, with as many threads as the machine
has cores. ReLU, erf and GELU in closed form, tanh as an arbitrary activation; d = 784, three hidden layers. `--quick` takes
the smallest size only. Times are the best of the repeats after the first call, wall clock; both kernels are made each time.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = time.perf_counter()
HERE = Path(__file__).resolve().parent
PEER = HERE.parent / ".venv-peers" / "bin" / "python"
VARIANCES = {"relu": (2.0, 0.0), "erf": (1.5, 0.1), "gelu": (1.98, 0.17), "tanh": (1.5, 0.05)}


def worker(case):
    """Time one case of ours."""
    import numpy as np
    import torch

    from theodolite.theory.kernels import mlp_kernels
    from theodolite.theory.kernels._map_sequences import dense_layers

    imported = time.perf_counter() - START
    layers = dense_layers(case["weights"], activation=case["activation"], bias_variances=case["biases"])
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(case["n"], case["d"])).astype(case["dtype"]))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(case["repeats"] + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = mlp_kernels(layers, x)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if case.get("save"):
            np.savez(case["save"], nngp=found.nngp.numpy(), ntk=found.ntk.numpy())
        del found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "first": walls[0],
                "wall": min(walls[1:] or walls),
                "cpu": min(cpus[1:] or cpus),
                "imported": imported,
                "peak": peak / 1024,
                "above": (peak - base) / 1024,
            }
        )
    )


def run(case, *, peer):
    command = [str(PEER), str(HERE / "peer_neural_tangents.py")] if peer else [sys.executable, __file__, "--case"]
    done = subprocess.run(
        [*command, json.dumps(case)], capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"}
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:60]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def times(console, sizes):
    from rich.table import Table

    table = Table(
        "activation",
        "type",
        "n",
        "ours, s",
        "peer, s",
        "ratio",
        "CPU s",
        "peer",
        "ratio",
        "first call",
        "peer",
        "MB above import",
        "peer",
        "ratio",
        title="both kernels, d = 784, three hidden layers",
    )
    cases = [(name, dtype, n) for name in ("relu", "erf", "gelu") for dtype in ("float64", "float32") for n in sizes]
    cases += [("tanh", "float64", 500), ("tanh", "float64", 1000)]
    for name, dtype, n in cases:
        weight, bias = VARIANCES[name]
        case = {
            "activation": name,
            "weights": [weight] * 4,
            "biases": [bias] * 4,
            "n": n,
            "d": 784,
            "dtype": dtype,
            "repeats": 7 if n <= 2000 else 5,
        }
        ours = run(case, peer=False)
        theirs = run(case, peer=True) if (name, n) != ("tanh", 1000) else {"error": "not run: 3.6 GB at n = 500"}
        cells = [name, dtype, str(n)]
        if "error" in theirs:
            cells += [f"{ours['wall']:.3f}", theirs["error"], "", f"{ours['cpu']:.3f}", "", "", f"{ours['first']:.2f}"]
            table.add_row(*cells, "", f"{ours['above']:.0f}", "", "")
            continue
        for key, form in (("wall", ".3f"), ("cpu", ".3f")):
            cells += [f"{ours[key]:{form}}", f"{theirs[key]:{form}}", f"{theirs[key] / ours[key]:.1f}"]
        cells += [f"{ours['first']:.2f}", f"{theirs['first']:.2f}"]
        cells += [f"{ours['above']:.0f}", f"{theirs['above']:.0f}", f"{theirs['above'] / ours['above']:.1f}"]
        table.add_row(*cells)
    console.print(table)


def agreement(console):
    import numpy as np
    from rich.table import Table

    table = Table(
        "activation",
        "depths",
        "largest relative difference, NNGP",
        "NTK",
        title="agreement in float64, n = 60, variances that differ from layer to layer",
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in ("relu", "erf", "gelu"):
            worst = {"nngp": 0.0, "ntk": 0.0}
            for depth in range(1, 9):
                weights = [1.3 + 0.2 * ((3 * layer) % 5) for layer in range(depth + 1)]
                biases = [0.05 * ((2 * layer) % 3) for layer in range(depth + 1)]
                files = [f"{folder}/{who}.npz" for who in ("ours", "peer")]
                for file, peer in zip(files, (False, True), strict=True):
                    case = {
                        "activation": name,
                        "weights": weights,
                        "biases": biases,
                        "n": 60,
                        "d": 20,
                        "dtype": "float64",
                        "repeats": 0,
                        "save": file,
                    }
                    got = run(case, peer=peer)
                    if "error" in got:
                        raise SystemExit(f"{name}, depth {depth}: {got['error']}")
                ours, theirs = (np.load(file) for file in files)
                off = ~np.eye(60, dtype=bool)  # the peer's own error on the diagonal is of order 1e-9
                for key in worst:
                    apart = np.abs(ours[key] - theirs[key])[off].max() / np.abs(ours[key]).max()
                    worst[key] = max(worst[key], float(apart))
            table.add_row(name, "1 to 8", f"{worst['nngp']:.1e}", f"{worst['ntk']:.1e}")
    console.print(table)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.case:
        worker(json.loads(options.case))
        return
    from rich.console import Console

    console = Console(width=170)
    times(console, (1000,) if options.quick else (1000, 2000, 4000))
    agreement(console)


if __name__ == "__main__":
    main()
