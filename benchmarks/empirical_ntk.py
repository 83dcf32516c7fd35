"""The empirical tangent kernel of finite networks beside neural-tangents: time, first call, peak memory and agreement.

A 784-512-512-10 perceptron on 200 samples and a small convolutional network on 64 images, the mean over outputs and the
full kernel, float32. Each measurement is a process of its own, here or in the environment of the peers; the same weights
and data go to both. Times are the best of the repeats after the first call. The brute force (every derivative by plain
autograd, then one product) is timed on a tenth of the samples, derivatives scaled by ten, the product by a hundred. The floor
counts the multiplications that cannot be left out (forward, back from every output, inner products of half the pairs) at the
speed of a product of two matrices of 1,000 rows here.
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

from growth import growth_row, growth_table

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".venv-peers"
SIZES = {"mlp": 200, "cnn": 64}
GROWTH = {"mlp": (100, 200, 400), "cnn": (32, 64, 128)}


def operations(name, outputs, n):
    """Multiplications and additions of the cheapest way that is known here."""
    C, pairs = 10, n * n / 2 * (10 if outputs == "trace" else 100)
    if name == "mlp":
        forward, back = n * (784 * 512 + 512 * 512 + 512 * 10), n * C * 512 * 512
        return 2 * (forward + back + pairs * (512 + 512))
    first, second = 16 * 27 * 256, 32 * 144 * 256
    formed = pairs * (16 * 27 + 32 * 144)
    return 2 * (n * (first + second + 10 * 2048) + n * C * (second + first + second) + formed)


def model_of(name, n=None):
    import torch
    from torch import nn

    torch.manual_seed(0)
    if name == "mlp":
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return model, torch.randn(n or SIZES[name], 784)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )
    return model, torch.randn(n or SIZES[name], 3, 16, 16)


def save_for_peer(name, path):
    """Weights and data in the layout of the peer: channels last, matrices (in, out)."""
    import numpy as np

    model, x = model_of(name)
    arrays = {"x": x.numpy() if x.ndim == 2 else x.permute(0, 2, 3, 1).numpy()}
    parameters = [p.detach() for p in model.parameters()]
    for i, p in enumerate(parameters):
        if p.ndim == 4:
            p = p.permute(2, 3, 1, 0)
        elif p.ndim == 2:
            p = p.reshape(10, 32, 8, 8).permute(2, 3, 1, 0).reshape(-1, 10) if name == "cnn" else p.T
        arrays[f"p{i}"] = np.ascontiguousarray(p.numpy())
    np.savez(path, **arrays)


def worker(case):
    import numpy as np
    import torch

    from theodolite.measure.kernels import empirical_ntk

    if case.get("for_peer"):
        save_for_peer(case["model"], case["for_peer"])
        print("{}")
        return
    model, x = model_of(case["model"], case.get("n"))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(case["repeats"] + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = empirical_ntk(model, x, outputs=case["outputs"])
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = {"first": walls[0], "wall": min(walls[1:]), "cpu": min(cpus[1:]), "above": (peak - base) / 1024}
    a, times = torch.randn(1000, 1000), []
    for _ in range(10):
        start = time.perf_counter()
        _ = a @ a
        times.append(time.perf_counter() - start)
    result["floor"] = operations(case["model"], case["outputs"], len(x)) / 2e9 * min(times)
    if case.get("save"):
        np.save(case["save"], found.numpy())
        few = len(x) // 10
        start = time.perf_counter()
        parameters = list(model.parameters())
        entries = (entry for sample in x[:few] for entry in model(sample[None])[0])
        rows = [torch.autograd.grad(entry, parameters, retain_graph=True) for entry in entries]
        J = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
        middle = time.perf_counter()
        _ = J @ J.T
        result["brute"] = 10 * (middle - start) + 100 * (time.perf_counter() - middle)
    print(json.dumps(result))


def run(case, *, peer=None):
    command = [str(peer), str(HERE / "peer_empirical_ntk.py")] if peer else [sys.executable, __file__, "--case"]
    done = subprocess.run(
        [*command, json.dumps(case)], capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"}
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:90]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def beside_the_peer(peer, console):
    """A table of all cases."""
    import numpy as np
    from rich.table import Table

    columns = [
        "model",
        "outputs",
        "ours, s",
        "peer",
        "ratio",
        "CPU s",
        "peer",
        "ratio",
        "floor, s",
        "first call",
        "peer",
    ]
    columns += ["MB above import", "peer", "ratio", "largest relative difference", "brute force, s"]
    table = Table(*columns, title="empirical tangent kernel, float32")
    with tempfile.TemporaryDirectory() as folder:
        for name in SIZES:
            # not in this process: a child's peak memory counts its parent's
            run({"model": name, "for_peer": f"{folder}/{name}.npz"})
            for outputs in ("trace", "full"):
                files = [f"{folder}/{who}.npy" for who in ("ours", "peer")]
                case = {"model": name, "outputs": outputs, "dtype": "float32", "repeats": 7}
                case["weights"] = f"{folder}/{name}.npz"
                ours, theirs = (run({**case, "save": f}, peer=p) for f, p in zip(files, (None, peer), strict=True))
                if "error" in ours or "error" in theirs:
                    console.print(name, outputs, ours, theirs)
                    continue
                kernels = [np.load(file) for file in files]
                apart = np.abs(kernels[0] - kernels[1]).max() / np.abs(kernels[1]).max()
                cells = [name, outputs]
                for key in ("wall", "cpu"):
                    cells += [f"{ours[key]:.3f}", f"{theirs[key]:.3f}", f"{theirs[key] / ours[key]:.1f}"]
                cells += [f"{ours['floor']:.3f}", f"{ours['first']:.2f}", f"{theirs['first']:.2f}"]
                cells += [f"{ours['above']:.0f}", f"{theirs['above']:.0f}"]
                cells += [f"{theirs['above'] / max(ours['above'], 1):.1f}", f"{apart:.1e}", f"{ours['brute']:.1f}"]
                table.add_row(*cells)
    return table


def growth():
    """How time and memory grow: derivatives with n, inner products with its square."""
    rows = []
    for name, counts in GROWTH.items():
        found = [run({"model": name, "outputs": "trace", "repeats": 5, "n": n}) for n in counts]
        work = f"empirical tangent kernel, {name}, trace"
        rows.append(growth_row(work, counts, found, ("1 to 2", "1"), counts="samples"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--case", help="one case as JSON; for this script itself")
    options = parser.parse_args()
    if options.case:
        worker(json.loads(options.case))
        return
    from rich.console import Console

    console = Console(width=180)
    console.print(beside_the_peer(options.peers / "bin" / "python", console))
    console.print(growth_table(growth()))


if __name__ == "__main__":
    main()
