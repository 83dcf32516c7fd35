"""Exact regions: against linear programming on small networks, beside relucent, and the time of large counts.

Runs on one thread; times are processor seconds. relucent lives in the environment of the peers (`make bench` makes it).
"""

import argparse
import gzip
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
SQUARE = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
# processor seconds of relu_edge_subdivision (a public repository, not on PyPI), on the machine where it was tried
SUBDIVISION = {(32, 4): "0.25-0.28", (64, 4): "1.8-2.6", (128, 2): "1.9", (256, 3): "140", (256, 4): "over 300"}


def network(widths, seed=0, bias=0.3, outputs=1):
    import torch
    from torch import nn

    generator, layers = torch.Generator().manual_seed(seed), []
    for fan_in, width in zip(widths, (*widths[1:], outputs), strict=True):
        layer = nn.Linear(fan_in, width, dtype=torch.float64)
        layer.weight.data.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
        layer.bias.data.normal_(0, bias, generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def by_programs(model, inputs):
    """The number of activation patterns with an inside, in the cube of side two: a tree of linear programs."""
    import numpy as np
    from scipy.optimize import linprog
    from torch import nn

    layers = [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in model if isinstance(m, nn.Linear)][:-1]
    bounds = [(-1.0, 1.0)] * inputs + [(None, None)]

    def roomy(rows, limits):
        """Whether a ball of radius 1e-7 fits: below, nothing is decided by double precision."""
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        cost = np.append(np.zeros(inputs), -1.0)
        answer = linprog(cost, A_ub=np.hstack([rows, size]), b_ub=limits, bounds=bounds)
        return answer.status == 0 and answer.x[-1] > 1e-7

    box = np.vstack([np.eye(inputs), -np.eye(inputs)])

    def walk(layer, unit, rows, limits, maps, signs):
        if unit < len(layers[layer][0]):
            return count_unit(layer, unit, rows, limits, maps, signs)
        gates = np.array(signs, dtype=float)
        inner = (gates[:, None] * maps[0], gates * maps[1])
        if layer + 1 == len(layers):
            return 1
        weight, bias = layers[layer + 1]
        return count_unit(layer + 1, 0, rows, limits, (weight @ inner[0], weight @ inner[1] + bias), ())

    def count_unit(layer, unit, rows, limits, maps, signs):
        slope, constant = maps
        total = 0
        for sign in (1, -1):
            if np.linalg.norm(slope[unit]) < 1e-14:
                if (constant[unit] > 0) == (sign > 0):
                    total += walk(layer, unit + 1, rows, limits, maps, (*signs, sign > 0))
                continue
            more, ends = np.vstack([rows, -sign * slope[unit]]), np.append(limits, sign * constant[unit])
            if roomy(more, ends):
                total += walk(layer, unit + 1, more, ends, maps, (*signs, sign > 0))
        return total

    weight, bias = layers[0]
    return count_unit(0, 0, box, np.ones(2 * inputs), (weight, bias), ())


def against_programs(nets):
    from theodolite.measure.regions import regions_in_polygon, regions_on_line

    wrong, cells, theirs, ours = [], 0, 0.0, 0.0
    for seed in range(nets):
        inputs = 1 + seed % 2
        model = network((inputs, *((6,), (4, 4), (3, 3, 3), (2, 6, 2))[seed // 2 % 4]), seed, bias=0.5)
        start = time.process_time()
        told = by_programs(model, inputs)
        theirs, start = theirs + time.process_time() - start, time.process_time()
        found = regions_on_line(model, [-1.0], [1.0]) if inputs == 1 else regions_in_polygon(model, SQUARE)
        ours += time.process_time() - start
        cells += told
        if told != found.regions:
            wrong.append((seed, told, found.regions))
    print(
        f"{nets} small networks of one and two inputs, {cells} cells: {nets - len(wrong)} counts equal those by linear"
    )
    print(f"  programming ({theirs:.1f} s against {ours:.2f} s){'; apart: ' + str(wrong) if wrong else ''}")


def large(sizes):
    from theodolite.measure.regions import regions_in_polygon

    print(
        "\nexact cells in a square, processor seconds (relu_edge_subdivision: as seen on other networks of this size)"
    )
    print("  width depth    cells  seconds  cells/s  us a cell  subdivision")
    for width, depth in sizes:
        model = network((2, *(width,) * depth))
        start = time.process_time()
        found = regions_in_polygon(model, SQUARE)
        spent = time.process_time() - start
        assert math.isclose(found.areas.sum(), 4, rel_tol=1e-9)
        rate = found.regions / spent
        other = SUBDIVISION.get((width, depth), "")
        print(f"  {width:5d}{depth:6d}{found.regions:9,d}{spent:9.2f}{rate:9,.0f}{1e6 / rate:11.1f}{other:>13s}")


def convolution():
    """Triangles of three images: MNIST's where the files lie beside the repository, else random ones."""
    import torch
    from torch import nn

    from theodolite.measure.regions import regions_in_polygon, slice_through

    torch.manual_seed(0)
    networks = {
        "two strided convolutions": nn.Sequential(
            nn.Conv2d(1, 4, 5, stride=2),
            nn.ReLU(),
            nn.Conv2d(4, 8, 3, stride=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(200, 10),
        ),
        "one convolution, max-pooling": nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 10)
        ),
        "a dense convolution, max-pooling": nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 10)
        ),
    }
    images = ROOT.parent / "shared" / "data" / "mnist" / "t10k-images-idx3-ubyte.gz"
    if images.exists():
        raw = gzip.decompress(images.read_bytes())[16 : 16 + 3 * 784]
        x, what = torch.tensor(list(raw), dtype=torch.float64).reshape(3, 1, 28, 28) / 255, "MNIST images"
    else:
        x, what = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(1)).double(), "random images"
    print(f"\ntriangle of three {what}, 28 x 28")
    for name, model in networks.items():
        plane, corners = slice_through(*x)
        start = time.process_time()
        found = regions_in_polygon(model.double(), corners, plane=plane)
        spent = time.process_time() - start
        print(f"  {name:34} {found.regions:9,d} cells {spent:8.2f} s {1e6 * spent / found.regions:8.1f} us a cell")


def peer(width, depth, peers, seconds):
    import numpy as np
    from torch import nn

    from theodolite.measure.regions import regions_in_polygon

    model = network((2, *(width,) * depth))
    start = time.process_time()
    found = regions_in_polygon(model, 1e6 * np.asarray(SQUARE))  # relucent counts in the whole plane
    ours = time.process_time() - start
    print(f"\n{width} wide, {depth} deep, whole plane\n  Theodolite {found.regions:7,d} regions {ours:9.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.npz"
        linear = [m for m in model if isinstance(m, nn.Linear)]
        np.savez(path, *[t.detach().numpy() for m in linear for t in (m.weight, m.bias)])
        command = [str(peers / "bin/python"), __file__, "--inner", str(path)]
        try:
            done = subprocess.run(
                command, env={**os.environ, **THREADS}, capture_output=True, text=True, check=False, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            print(f"  relucent   not done in {seconds} s of wall time")
            return
        if done.returncode:
            print(f"  relucent   failed: {done.stderr.strip().splitlines()[-1]}")
            return
        count, theirs = json.loads(done.stdout.strip().splitlines()[-1])
        print(f"  relucent   {count:7,d} regions {theirs:9.3f} s, ratio {theirs / ours:.0f}")


def inner(path):
    import numpy as np
    import relucent
    import torch
    from torch import nn

    arrays, layers = list(np.load(path).values()), []
    for weight, bias in zip(arrays[::2], arrays[1::2], strict=True):
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        layer.weight.data, layer.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
        layers += [layer, nn.ReLU()]
    found = relucent.Complex(nn.Sequential(*layers[:-1]))
    start = spent()
    found.bfs(nworkers=1)
    print("\n" + json.dumps([len(found), spent() - start]))


def spent():
    """Processor seconds of this process and of those it started and saw end."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--nets", type=int, default=200)
    parser.add_argument("--peer-width", type=int, default=32)
    parser.add_argument("--peer-seconds", type=int, default=300)
    parser.add_argument("--deep", action="store_true", help="also 256 wide, 4 deep")
    parser.add_argument("--only", choices=("programs", "large", "convolution", "peer"))
    parser.add_argument("--inner", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        inner(options.inner)
        return
    import torch

    torch.set_num_threads(1)
    parts = {
        "programs": lambda: against_programs(options.nets),
        "large": lambda: large([(32, 4), (64, 4), (128, 2), (256, 3), *([(256, 4)] if options.deep else [])]),
        "convolution": convolution,
        "peer": lambda: peer(options.peer_width, 2, options.peers, options.peer_seconds),
    }
    for name, part in parts.items():
        if options.only in (None, name):
            part()
            sys.stdout.flush()


if __name__ == "__main__":
    main()
