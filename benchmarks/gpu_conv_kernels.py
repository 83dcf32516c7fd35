"""NNGP and NTK of convolutional networks on a GPU: time, what the memory's speed allows, and agreement with the CPU.

The networks of conv_kernels.py in float64 (single precision is computed so too). The floor counts 16 bytes read and written
once for each pair of pixels and nonlinearity (both kernels, in and out), symmetric pairs once, at the speed of a copy.
neural-tangents is run beside it, in a process of its own, in float64 too, where it and a jax for the device are installed.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from conv_kernels import program_of
from rich.console import Console
from rich.table import Table

from theodolite.theory.kernels import ImageKernel

CASES = (
    ("flatten", 1000, 16),
    ("flatten", 2000, 16),
    ("flatten", 4000, 16),
    ("average", 50, 16),
    ("average", 100, 16),
    ("average", 200, 16),
    ("residual flatten", 1000, 16),
    ("residual average", 100, 16),
)


def seconds(work, repeats=3):
    """First call, and the best of the others."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times[0], min(times[1:])


def bytes_a_second():
    """Of a copy, read and written."""
    block = torch.rand(1 << 26, device="cuda", dtype=torch.float64)
    target = torch.empty_like(block)
    return 16 * len(block) / seconds(lambda: target.copy_(block))[1]


def peer(name, n, size, x, kernel):
    """neural-tangents' seconds, and how far its tangent kernel is from ours; the reason where there are none."""
    if importlib.util.find_spec("neural_tangents") is None:
        return "not here", ""
    script = Path(__file__).with_name("peer_conv_kernels.py")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "kernels.npz"
        case = {"network": name, "n": n, "size": size, "repeats": 3, "save": str(saved)}
        environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        torch.cuda.empty_cache()
        done = subprocess.run(
            [sys.executable, script, json.dumps(case)], capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode:
            return ("no memory" if "RESOURCE_EXHAUSTED" in done.stderr else done.stderr.splitlines()[-1][:40]), ""
        wall = json.loads(done.stdout.splitlines()[-1])["wall"]
        theirs = torch.from_numpy(np.load(saved)["ntk"])
        inputs = torch.from_numpy(np.random.default_rng(0).normal(size=(n, 3, size, size))).to(x)
        ours = kernel(inputs).cpu()
        return wall, f"{((ours - theirs).abs().max() / theirs.abs().max()).item():.0e}"


def main():
    speed = bytes_a_second()
    table = Table(
        "network",
        "n",
        "image",
        "first, s",
        "ours, s",
        "peer, s",
        "ratio",
        "floor, s",
        "peak GB",
        "off CPU",
        "off peer",
        title="float64; peer: neural-tangents",
    )
    for name, n, size in CASES:
        x = torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        kernel, there = ImageKernel(program_of(name)), x.cuda()
        torch.cuda.reset_peak_memory_stats()
        first, best = seconds(lambda k=kernel, v=there: k.both(v))
        few = 12 if "flatten" in name else 3
        apart = (kernel(there[:few]).cpu() - kernel(x[:few])).abs().max() / kernel(x[:few]).abs().max()
        pairs = n * (n + 1) // 2 * size ** (2 if "flatten" in name else 4) * (3 if "residual" in name else 2)
        floor, peak = 32 * pairs / speed, torch.cuda.max_memory_allocated() / 2**30
        theirs, off = peer(name, n, size, there, kernel)
        known = not isinstance(theirs, str)
        table.add_row(
            *(name, str(n), f"{size} x {size}", f"{first:.3f}", f"{best:.3f}"),
            *((f"{theirs:.3f}", f"{theirs / best:.1f}") if known else (theirs, "")),
            *(f"{floor:.3f}", f"{peak:.2f}", f"{apart:.0e}", off),
        )
        del there
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
