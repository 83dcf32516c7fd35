"""NNGP and NTK of convolutional networks on a GPU: time, what the memory's speed allows, and agreement with the CPU.

The networks of conv_kernels.py in float64 (single precision is computed so too). The floor counts 16 bytes read and written
once for each pair of pixels and nonlinearity (both kernels, in and out), symmetric pairs once, at the speed of a copy.
"""

import time

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


def main():
    speed = bytes_a_second()
    table = Table(
        "network", "n", "image", "first, s", "ours, s", "floor, s", "peak GB", "off CPU", title="H200, float64"
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
        numbers = [f"{v:.3f}" for v in (first, best, floor)]
        table.add_row(name, str(n), f"{size} x {size}", *numbers, f"{peak:.2f}", f"{apart:.0e}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
