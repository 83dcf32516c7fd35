"""Networks written down: largest error over all points, CPU and wall seconds, peak memory, beside training for as long.

Gaussian points, uniform targets, the widths of the theorem. `python benchmarks/memorize.py` for up to 100,000 points;
`--million` adds 1,000,000 (a minute or two), `--draws 5` repeats each with other data. Training is Adam on the same widths for
as many seconds as the construction took, and at least ten.
"""

import argparse
import resource
import time

import torch
from torch import nn

import theodolite as th

CASES = (
    ("hardtanh", 10_000, 20, (100, 100)),
    ("relu", 10_000, 20, None),
    ("hardtanh", 100_000, 64, (316, 318)),
    ("relu", 100_000, 64, None),
)
MILLION = (("hardtanh", 1_000_000, 16, (1140, 1142)),)


def data(n, d, seed, classes=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if classes:
        return x, torch.randint(classes, (n,), generator=generator)
    return x, 2 * torch.rand(n, 1, generator=generator, dtype=torch.float64) - 1


def row(kind, n, d, widths, seed, classes=0):
    x, y = data(n, d, seed, classes)
    wall, cpu = time.perf_counter(), time.process_time()
    report = th.memorize(x, y, activation=kind, widths=widths).report
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    what = (
        f"{classes} classes, {100 * report.labels_right:.5g}% right" if classes else f"largest error {report.error:.1e}"
    )
    print(
        f"{kind:8} N={n:<8} d={d:<3} widths {report.widths} (of {report.capacity}): {what}, "
        f"{wall:.1f} s, CPU {cpu:.1f} s, peak {peak:.0f} MB, draw {seed}",
        flush=True,
    )
    return report, wall


def trained(kind, n, d, widths, seconds):
    """The largest error that Adam leaves on the same data and widths in so many seconds."""
    x, y = (part.float() for part in data(n, d, 0))
    torch.manual_seed(0)
    act = nn.ReLU if kind == "relu" else nn.Hardtanh
    net = nn.Sequential(nn.Linear(d, widths[0]), act(), nn.Linear(widths[0], widths[1]), act(), nn.Linear(widths[1], 1))
    optimizer, start, steps = torch.optim.Adam(net.parameters(), 1e-3), time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        some = torch.randint(n, (256,))
        optimizer.zero_grad()
        (net(x[some]) - y[some]).square().mean().backward()
        optimizer.step()
        steps += 1
    with torch.no_grad():
        error = torch.cat([(net(a) - b).abs() for a, b in zip(x.split(8192), y.split(8192), strict=True)])
    print(
        f"   trained: Adam, {steps} steps in {seconds:.0f} s: largest error {error.max():.2f}, mean {error.mean():.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--only", choices=("relu", "hardtanh"))
    options = parser.parse_args()
    for kind, n, d, widths in CASES + (MILLION if options.million else ()):
        if options.only not in (None, kind):
            continue
        for seed in range(options.draws):
            report, wall = row(kind, n, d, widths, seed)
        if n <= 100_000:
            trained(kind, n, d, report.widths, max(10.0, wall))
    for n in (100_000, *((1_000_000,) if options.million else ())):
        if options.only != "hardtanh":
            row("relu", n, 20, None, 0, classes=10)


if __name__ == "__main__":
    main()
