"""NNGP and NTK of convolutional networks of infinitely many channels beside neural-tangents: agreement and time, float64.

Two layers of 3 x 3, ReLU, zeros around the image; then flattened (pairs of equal pixels) or averaged (all pairs of pixels).
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from theodolite.construct.kernels import kernel_of
from theodolite.theory.kernels import ImageKernel
from theodolite.theory.kernels._programs import Dense

HERE = Path(__file__).resolve().parent
PEER = HERE.parent / ".venv-peers" / "bin" / "python"
CASES = (("flatten", 100, 16), ("flatten", 50, 32), ("average", 12, 8), ("average", 8, 12))


def layers(name, size):
    nn = torch.nn
    end = (
        [nn.Flatten(), nn.Linear(size * size, 1)]
        if name == "flatten"
        else [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1, 1)]
    )
    return nn.Sequential(nn.Conv2d(3, 1, 3, padding=1), nn.ReLU(), nn.Conv2d(1, 1, 3, padding=1), nn.ReLU(), *end)


def ours(name, n, size):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(n, 3, size, size)))
    kernel = kernel_of(layers(name, size), weight_variance=2.0, bias_variance=0.01)
    kernel = ImageKernel((*kernel.program[:-1], Dense(1.0, 0.01)))
    times = []
    for _ in range(3):
        start, cpu = time.perf_counter(), time.process_time()
        found = kernel.both(x)
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    return {"nngp": found.nngp.numpy(), "ntk": found.ntk.numpy()}, *min(times)


def main():
    table = Table(
        "network",
        "n",
        "image",
        "ours, s",
        "peer, s",
        "CPU s",
        "peer",
        "peer's first call",
        "difference NNGP",
        "NTK",
        title="both kernels of a convolutional network, float64",
    )
    for name, n, size in CASES:
        found, wall, cpu = ours(name, n, size)
        with tempfile.TemporaryDirectory() as folder:
            case = {"network": name, "n": n, "size": size, "repeats": 2, "save": f"{folder}/peer.npz"}
            command = [PEER, HERE / "peer_conv_kernels.py", json.dumps(case)]
            peer = json.loads(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
            )
            theirs = np.load(case["save"])
            off = ~np.eye(n, dtype=bool)  # the peer's own error on the diagonal is of order 1e-9
            apart = [
                f"{(np.abs(found[k] - theirs[k])[off].max() / np.abs(found[k]).max()):.1e}" for k in ("nngp", "ntk")
            ]
        table.add_row(
            name,
            str(n),
            f"{size} x {size}",
            f"{wall:.2f}",
            f"{peer['wall']:.2f}",
            f"{cpu:.2f}",
            f"{peer['cpu']:.2f}",
            f"{peer['first']:.2f}",
            *apart,
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
