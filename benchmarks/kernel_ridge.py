"""Kernel ridge regression on more points than memory should hold, by blocks: conjugate gradients with a preconditioner.

ReLU NTK, three hidden layers, d = 784, float32, ten outputs. The kernel matrix is never whole; tiles are kept where memory is
free (`--memory 0` keeps none, `--memory 4` four gigabytes): 50,000 points
would take 10 GB in float32 (20 GB with both kernels). `python benchmarks/kernel_ridge.py 50000` for the full size,
`--device cuda` on a GPU.
"""

import argparse
import resource
import time

import torch

from theodolite.theory import Mlp
from theodolite.theory.kernels import Kernel, ridge_by_conjugate_gradients

LEAST_RANK, RIDGE, TOLERANCE = 300, 1.0, 1e-3


def data(n, seed=1):
    """Points in ten clusters of unequal spread, and one-hot targets."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(10, 784, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(10, (n,), generator=generator)
    spread = torch.linspace(3.0, 0.05, 784)
    x = centers[labels] + torch.randn(n, 784, generator=generator) * spread
    return x, torch.nn.functional.one_hot(labels, 10).float() - 0.1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("points", type=int, nargs="?", default=5_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--rank", type=int, help="columns that the preconditioner is made of; one in 25, at least 300, unless told"
    )
    parser.add_argument("--memory", type=float, metavar="GB", help="of tiles that are kept; a quarter of what is free")
    options = parser.parse_args()
    n = options.points
    rank = options.rank or max(LEAST_RANK, n // 25)
    x, y = (part.to(options.device) for part in data(n))
    kernel = Kernel(Mlp(3, "relu", 2.0), kind="ntk")
    matrix = kernel.matrix(x, memory=None if options.memory is None else int(1e9 * options.memory))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = kernel.matrix(x, memory=0)
    whole @ y[:, :1]
    start = time.perf_counter()
    float((whole @ y).sum())  # waits for a device
    product = time.perf_counter() - start
    print(f"n={n}: one product with ten vectors {product:.2f} s", flush=True)

    def column(places):
        return matrix.block(slice(None), places)

    start, cpu = time.perf_counter(), time.process_time()
    solution = ridge_by_conjugate_gradients(matrix, y, ridge=RIDGE, column=column, rank=rank, tolerance=TOLERANCE)
    float(solution.weights.sum())
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    new, labels = (part.to(options.device) for part in data(1000, seed=2))
    right = (kernel.matrix(new, x) @ solution.weights).argmax(1) == labels.argmax(1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"n={n}, rank {rank}: solved in {seconds:.1f} s ({cpu:.0f} s of CPU), {solution.iterations} iterations, "
        f"residual {solution.residual:.1e}, "
        f"peak {peak:.0f} MB ({peak - base:.0f} MB above data and imports; the matrix would take {n * n * 4 / 2**20:.0f} MB), "
        f"right on {100 * right.float().mean():.1f}% of 1,000 points"
    )


if __name__ == "__main__":
    main()
