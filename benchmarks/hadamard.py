"""The Hadamard transform on one CPU core, float32: ours beside a copy, butterflies, Kronecker products and PyPI's package.

The peer is used where it imports: `pip install hadamard-transform` in this environment, or in that of the peers (give its
python to --peer). Times are the least of several runs, in copies of the same run, so that a loaded machine changes little.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def best(function, repeats=5):
    function()
    found = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        function()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(found)


def peer(levels):
    import torch
    from hadamard_transform import hadamard_transform

    torch.set_num_threads(1)
    x = torch.randn(1, 1 << levels)
    y = torch.empty_like(x)
    return {"copy": best(lambda: y.copy_(x)), "peer": best(lambda: hadamard_transform(x), repeats=2)}


def kronecker(x, torch, hadamard_matrix):
    """Digits of 64 as products over the whole vector, without blocks."""
    h = hadamard_matrix(64, dtype=x.dtype)
    y = x
    for _ in range((x.numel().bit_length() - 1) // 6):
        y = (h @ y.view(-1, 64).T).reshape(-1)
    return y


def ours(levels):
    import torch

    from theodolite.theory.dimension import hadamard_matrix, hadamard_transform, hadamard_transform_
    from theodolite.theory.dimension.hadamard import _butterflies

    torch.set_num_threads(1)
    x = torch.randn(1 << levels)
    y, scale = torch.empty_like(x), 2 ** (-levels / 2)
    found = {
        "copy": best(lambda: y.copy_(x), repeats=9),
        "in place": best(lambda: hadamard_transform_(x, scale=scale), repeats=9),
        "new tensor": best(lambda: hadamard_transform(x, scale=scale)),
        "butterflies": best(lambda: _butterflies(x, scale), repeats=2),
    }
    if levels % 6 == 0:
        found["Kronecker"] = best(lambda: kronecker(x, torch, hadamard_matrix), repeats=2)
    truth = _butterflies(x.double(), scale)
    error = ((hadamard_transform(x, scale=scale) - truth).norm() / truth.norm()).item()
    return found, error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--levels", type=int, nargs="+", default=[12, 18, 24])
    parser.add_argument("--peer", default=str(ROOT / ".venv-peers" / "bin" / "python"))
    parser.add_argument("--as-peer", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_peer:
        print(json.dumps(peer(given.as_peer)))
        return
    print(f"{'levels':>6} {'what':>12} {'wall ms':>9} {'cpu ms':>9} {'copies':>7}")
    for levels in given.levels:
        found, error = ours(levels)
        for name, (wall, cpu) in found.items():
            print(f"{levels:6d} {name:>12} {1e3 * wall:9.3f} {1e3 * cpu:9.3f} {wall / found['copy'][0]:7.1f}")
        print(f"{levels:6d} relative error of float32: {error:.1e}")
        command = [given.peer if Path(given.peer).exists() else sys.executable, __file__, "--as-peer", str(levels)]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode:
            print(f"{levels:6d} hadamard-transform: not run ({answer.stderr.strip().splitlines()[-1]})")
            continue
        seen = json.loads(answer.stdout)
        wall, cpu = seen["peer"]
        print(f"{levels:6d} {'PyPI':>12} {1e3 * wall:9.3f} {1e3 * cpu:9.3f} {wall / seen['copy'][0]:7.1f}")


if __name__ == "__main__":
    main()
