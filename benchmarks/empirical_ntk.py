"""The empirical tangent kernel of finite networks beside neural-tangents: time, first call, peak memory and agreement.

A 784-512-512-10 perceptron on 200 samples and a small convolutional network on 64 images, the mean over outputs and the
full kernel, float32. Each measurement is a process of its own, here or in the environment of the peers; the same weights
and data go to both. Times are the best of the repeats after the first call. The brute force (every derivative by plain
autograd, then one product) is timed on a tenth of the samples, derivatives scaled by ten, the product by a hundred.
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

HERE = Path(__file__).resolve().parent
PEER = HERE.parent / ".venv-peers" / "bin" / "python"
SIZES = {"mlp": 200, "cnn": 64}


def model_of(name):
    import torch
    from torch import nn

    torch.manual_seed(0)
    if name == "mlp":
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return model, torch.randn(SIZES[name], 784)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )
    return model, torch.randn(SIZES[name], 3, 16, 16)


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

    model, x = model_of(case["model"])
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(case["repeats"] + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        found = empirical_ntk(model, x, outputs=case["outputs"])
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = {"first": walls[0], "wall": min(walls[1:]), "cpu": min(cpus[1:]), "above": (peak - base) / 1024}
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


def run(case, *, peer):
    command = [str(PEER), str(HERE / "peer_empirical_ntk.py")] if peer else [sys.executable, __file__, "--case"]
    done = subprocess.run(
        [*command, json.dumps(case)],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(HERE)},
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:90]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case")
    options = parser.parse_args()
    if options.case:
        worker(json.loads(options.case))
        return
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    console = Console(width=170)
    table = Table(
        "model",
        "outputs",
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
        "largest relative difference",
        "brute force, s",
        title="empirical tangent kernel, float32",
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in SIZES:
            save_for_peer(name, f"{folder}/{name}.npz")
            for outputs in ("trace", "full"):
                files = [f"{folder}/{who}.npy" for who in ("ours", "peer")]
                case = {
                    "model": name,
                    "outputs": outputs,
                    "dtype": "float32",
                    "repeats": 7,
                    "weights": f"{folder}/{name}.npz",
                }
                ours, theirs = (run({**case, "save": file}, peer=bool(i)) for i, file in enumerate(files))
                if "error" in ours or "error" in theirs:
                    console.print(name, outputs, ours, theirs)
                    continue
                kernels = [np.load(file) for file in files]
                apart = np.abs(kernels[0] - kernels[1]).max() / np.abs(kernels[1]).max()
                cells = [name, outputs]
                for key in ("wall", "cpu"):
                    cells += [f"{ours[key]:.3f}", f"{theirs[key]:.3f}", f"{theirs[key] / ours[key]:.1f}"]
                cells += [
                    f"{ours['first']:.2f}",
                    f"{theirs['first']:.2f}",
                    f"{ours['above']:.0f}",
                    f"{theirs['above']:.0f}",
                ]
                cells += [f"{theirs['above'] / max(ours['above'], 1):.1f}", f"{apart:.1e}", f"{ours['brute']:.1f}"]
                table.add_row(*cells)
    console.print(table)


if __name__ == "__main__":
    main()
