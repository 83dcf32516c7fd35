"""Training in a subspace: milliseconds a step for each projection (MNIST-sized MLP, d = 750), and memory at 10 million.

Each row is a process of its own on one thread; memory is the peak of the process less what it held with only the model, once
as it comes and once without what the C library keeps of freed blocks. "shared" is Fastfood on the model's own memory. The
floor in models: projected weights 1, projection 1, gradient of the largest layer 0.4; a copy of the start 1 unless shared.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time

KINDS = ("full", "tied", "fastfood", "shared", "sparse", "dense")
LIVE = {"MALLOC_MMAP_THRESHOLD_": "4000000"}  # every large block is given back when it is freed


def network(widths, nn):
    layers = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(kind, widths, batch, steps):
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    from theodolite.construct.dimension import subspace

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = network(widths, nn)
    x, y = torch.randn(batch, widths[0]), torch.randint(widths[-1], (batch,))
    tiny = nn.Linear(2, 2)  # autograd and the optimizer bring tens of MB of their own
    optimizer = torch.optim.Adam(tiny.parameters())
    cross_entropy(tiny(torch.ones(1, 2)), torch.zeros(1, dtype=torch.long)).backward()
    optimizer.step()
    with torch.no_grad():
        model(x)
    before = peak()
    made = time.process_time()
    shared = kind == "shared"
    projection = "fastfood" if shared else kind
    trained = model if kind == "full" else subspace(model, 750, projection=projection, shared=shared)
    made = time.process_time() - made
    optimizer = torch.optim.Adam([p for p in trained.parameters() if p.requires_grad], lr=1e-3)
    walls, cpus = [], []
    for _ in range(steps):
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        cross_entropy(trained(x), y).backward()
        optimizer.step()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    size = sum(p.numel() * p.element_size() for p in model.parameters()) / 2**20
    return {"ms": 1e3 * min(walls), "cpu": 1e3 * min(cpus), "made": made, "extra": peak() - before, "model": size}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--as", dest="kind", help=argparse.SUPPRESS)
    parser.add_argument("--large", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.kind:
        widths, batch, steps = ((1024, 2048, 2048, 1792, 10), 8, 4) if given.large else ((784, 200, 200, 10), 128, 30)
        print(json.dumps(measured(given.kind, widths, batch, steps)))
        return
    for large in (False, True):
        print("10 million parameters" if large else "784-200-200-10, 199,210 parameters, batch 128")
        print(
            f"{'projection':>10} {'ms a step':>10} {'cpu ms':>9} {'made, s':>8} {'MB beyond the model':>20} "
            f"{'in models':>10} {'live':>6}"
        )
        for kind in KINDS[: -1 if large else None]:
            command = [sys.executable, __file__, "--as", kind] + ["--large"] * large
            seen, live = (
                json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout)
                for env in (os.environ, {**os.environ, **LIVE})
            )
            print(
                f"{kind:>10} {seen['ms']:10.2f} {seen['cpu']:9.2f} {seen['made']:8.2f} {seen['extra']:20.0f} "
                f"{seen['extra'] / seen['model']:10.1f} {live['extra'] / live['model']:6.1f}"
            )


if __name__ == "__main__":
    main()
