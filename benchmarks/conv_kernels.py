"""NNGP and NTK of convolutional networks of infinitely many channels beside neural-tangents: agreement, time and growth.

Two layers of 3 x 3, ReLU, zeros around the image; then flattened (pairs of equal pixels) or averaged (all pairs of pixels); a
residual block between them in the last cases. Float64, the best of the repeats after the first call, each tool in a process
of its own with all cores. The floor is the time that torch takes for one arc cosine and one root for each pair of pixels of
each pair of images and each nonlinearity, on these cores, with nothing else done; symmetric pairs once.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from growth import growth_row, growth_table

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".venv-peers"
CASES = (
    ("flatten", 100, 16),
    ("flatten", 50, 32),
    ("average", 12, 8),
    ("average", 8, 12),
    ("residual flatten", 100, 16),
    ("residual average", 12, 8),
)
GROWTH = (("flatten", 16, (50, 100, 200)), ("average", 8, (10, 20, 40)))


def program_of(name):
    """The layers of a case."""
    from theodolite.theory import activation_of
    from theodolite.theory.kernels import Average, Convolution, Flatten
    from theodolite.theory.kernels._map_sequences import Dense, Nonlinear, Sum

    convolution, relu = Convolution(Dense(2.0, 0.01), (3, 3), (1, 1), (1, 1), (1, 1)), Nonlinear(activation_of("relu"))
    block = (Sum((relu, convolution)),) if "residual" in name else ()
    return (
        convolution,
        *block,
        relu,
        convolution,
        relu,
        Flatten() if "flatten" in name else Average(),
        Dense(1.0, 0.01),
    )


def ours(case):
    """Times, peak memory above the import, and the kernels in a file."""
    import numpy as np
    import torch

    from theodolite.theory.kernels import ImageKernel

    name, n, size = case["network"], case["n"], case["size"]
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(n, 3, size, size)))
    kernel = ImageKernel(program_of(name))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(case["repeats"] + 1):
        start, cpu = time.perf_counter(), time.process_time()
        found = kernel.both(x)
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.savez(case["save"], nngp=found.nngp.numpy(), ntk=found.ntk.numpy())
    pairs = n * (n + 1) // 2 * size ** (2 if "flatten" in name else 4) * (3 if "residual" in name else 2)
    r = torch.rand(1 << 17, dtype=torch.float64)
    floor = min(_seconds(lambda: (torch.acos(r, out=r.clone()), r.sqrt())) for _ in range(20)) / len(r) * pairs
    wall, cpu = (min(t[i] for t in times[1:]) for i in (0, 1))
    result = {"wall": wall, "cpu": cpu, "first": times[0][0], "above": (peak - base) / 1024, "floor": floor}
    print(json.dumps(result))


def _seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(python, script, case):
    """One case in a process of its own."""
    command = [str(python), str(HERE / script), *([] if "peer" in script else ["--case"]), json.dumps(case)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def beside_the_peer(peer):
    """A table of all cases."""
    import numpy as np
    from rich.table import Table

    columns = ("network", "n", "image", "ours, s", "peer", "ratio", "CPU s", "peer", "ratio", "floor", "MB", "peer")
    table = Table(
        *columns, "first call", "peer", "off NNGP", "off NTK", title="both kernels of a convolutional network, float64"
    )
    for name, n, size in CASES:
        with tempfile.TemporaryDirectory() as folder:
            case = {"network": name, "n": n, "size": size, "repeats": 6}
            files = [f"{folder}/{who}.npz" for who in ("ours", "peer")]
            own = run(sys.executable, "conv_kernels.py", {**case, "save": files[0]})
            theirs = run(peer, "peer_conv_kernels.py", {**case, "save": files[1]})
            found, other = (np.load(file) for file in files)
            off = ~np.eye(n, dtype=bool)  # the peer's own error on the diagonal is of order 1e-9
            apart = [np.abs(found[k] - other[k])[off].max() / np.abs(found[k]).max() for k in ("nngp", "ntk")]
        cells = [name, str(n), f"{size} x {size}"]
        for key in ("wall", "cpu"):
            cells += [f"{own[key]:.3f}", f"{theirs[key]:.3f}", f"{theirs[key] / own[key]:.1f}"]
        cells += [f"{own['floor']:.3f}", f"{own['above']:.0f}", f"{theirs['above']:.0f}"]
        cells += [f"{own['first']:.2f}", f"{theirs['first']:.2f}", *(f"{a:.0e}" for a in apart)]
        table.add_row(*cells)
    return table


def growth():
    """How time and memory grow with the number of images; both are expected to grow as its square."""
    rows = []
    for name, size, counts in GROWTH:
        with tempfile.TemporaryDirectory() as folder:
            case = {"network": name, "size": size, "repeats": 4, "save": f"{folder}/k.npz"}
            found = [run(sys.executable, "conv_kernels.py", {**case, "n": n}) for n in counts]
        work = f"both kernels of a convolutional network, {name}, {size} x {size}"
        rows.append(growth_row(work, counts, found, ("2", "blocks, then 2"), counts="images"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--case", help="one case as JSON; for this script itself")
    options = parser.parse_args()
    if options.case:
        ours(json.loads(options.case))
        return
    from rich.console import Console

    console = Console(width=165)
    console.print(beside_the_peer(options.peers / "bin" / "python"))
    console.print(growth_table(growth()))


if __name__ == "__main__":
    main()
