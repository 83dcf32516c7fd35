"""Hessian-vector products and the ten largest eigenvalues beside curvlinops, PyHessian and hessian-eigenthings.

Digits MLP 64-128-128-10, all 1,797 images in one batch, single precision, one thread, each tool in a process of its own;
times are processor seconds. Errors are against this package in double precision. `make bench` makes both environments.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from peer_process import print_result, result_of

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".venv-peers"
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COUNT, BLOCK = 10, 8


def problem(folder):
    import torch
    from torch import nn

    saved = torch.load(folder / "problem.pt", weights_only=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    model.load_state_dict(saved["state"])
    return model, saved["x"], saved["y"], nn.CrossEntropyLoss()


def make_problem(folder):
    import torch
    from sklearn.datasets import load_digits
    from torch import nn

    torch.manual_seed(0)
    bunch = load_digits()
    x = torch.as_tensor(bunch.data, dtype=torch.float32)
    x, y = (x - x.mean()) / x.std(), torch.as_tensor(bunch.target)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    torch.save({"state": model.state_dict(), "x": x, "y": y}, folder / "problem.pt")


def product_time(product, vector, repeats=40):
    """The median, in milliseconds: other work on the machine disturbs some."""
    times = []
    for _ in range(repeats + 2):
        started = time.process_time()
        product(vector)
        times.append(time.process_time() - started)
    return 1e3 * statistics.median(times[2:])


def products_of_theodolite(folder):
    """One product, eight vectors at once, and the products of matrices that one cannot do without: two or six a layer."""
    import torch

    from theodolite.measure.curvature import hessian

    model, x, y, loss = problem(folder)
    started = time.process_time()
    operator = hessian(model, loss, [(x, y)])
    setup = time.process_time() - started
    vectors = torch.randn(BLOCK, operator.size, generator=torch.Generator().manual_seed(0))
    found = {"setup": setup, "ms": product_time(operator, vectors[0])}
    found["block ms"] = product_time(operator, vectors, repeats=10) / BLOCK
    shapes = [tuple(layer.weight.shape) for layer in model if hasattr(layer, "weight")]
    matrices = [(torch.randn(len(x), out), torch.randn(out, given)) for out, given in shapes]
    times = [0.0] * len(matrices)
    for place, (left, right) in enumerate(matrices):
        times[place] = product_time(lambda _, a=left, b=right: a @ b, None) * (2 if place == 0 else 6)
    return found | {"floor": sum(times)}


def run_theodolite(folder):
    from theodolite.measure.curvature import extreme_eigenpairs, hessian

    found_before = products_of_theodolite(folder)
    model, x, y, loss = problem(folder)
    operator = hessian(model, loss, [(x, y)])
    started = time.process_time()
    found = extreme_eigenpairs(operator, count=COUNT)
    seconds = time.process_time() - started
    wide = extreme_eigenpairs(hessian(model.double(), loss, [(x.double(), y)]), count=COUNT)
    return {
        **found_before,
        "seconds": seconds,
        "products": found.products,
        "values": found.values,
        "truth": wide.values,
    }


def run_curvlinops(folder):
    import numpy as np
    import torch
    from curvlinops import HessianLinearOperator
    from scipy.sparse.linalg import LinearOperator, eigsh

    model, x, y, loss = problem(folder)
    started = time.process_time()
    operator = HessianLinearOperator(model, loss, list(model.parameters()), [(x, y)])
    setup = time.process_time() - started
    size = sum(p.numel() for p in model.parameters())
    vector = torch.randn(size, generator=torch.Generator().manual_seed(0))
    milliseconds = product_time(lambda v: operator @ v, vector)
    calls = [0]

    def matvec(v):
        calls[0] += 1
        return (operator @ torch.from_numpy(np.asarray(v, dtype=np.float32).ravel())).numpy()

    started = time.process_time()
    wrapped = LinearOperator((size, size), matvec=matvec, dtype=np.float32)
    values = eigsh(wrapped, k=COUNT, which="LA", tol=1e-4, v0=vector.numpy(), return_eigenvectors=False)
    seconds = time.process_time() - started
    return {
        "setup": setup,
        "ms": milliseconds,
        "seconds": seconds,
        "products": calls[0],
        "values": sorted(map(float, values), reverse=True),
    }


def run_pyhessian(folder, *, products_alone=False):
    import torch
    from pyhessian import hessian
    from pyhessian.utils import hessian_vector_product

    model, x, y, loss = problem(folder)
    started = time.process_time()
    own = hessian(model, loss, data=(x, y), cuda=False)
    setup = time.process_time() - started
    vector = [torch.randn_like(p) for p in own.params]
    calls = [0]
    milliseconds = product_time(lambda v: hessian_vector_product(own.gradsH, own.params, v), vector)
    if products_alone:
        return {"setup": setup, "ms": milliseconds}

    def counted(gradient, params, v):
        calls[0] += 1
        return hessian_vector_product(gradient, params, v)

    sys.modules["pyhessian.hessian"].hessian_vector_product = counted  # the class hides the module of its name
    torch.manual_seed(0)
    started = time.process_time()
    values, _ = own.eigenvalues(maxIter=1000, tol=1e-6, top_n=COUNT)
    seconds = time.process_time() - started
    return {
        "setup": setup,
        "ms": milliseconds,
        "seconds": seconds,
        "products": calls[0],
        "values": sorted(map(float, values), reverse=True),
    }


def run_eigenthings(folder):
    import torch
    from hessian_eigenthings import HessianOperator, lanczos

    model, x, y, loss = problem(folder)
    started = time.process_time()
    operator = HessianOperator(model, [(x, y)], lambda net, batch: loss(net(batch[0]), batch[1]))
    setup = time.process_time() - started
    vector = torch.randn(sum(p.numel() for p in model.parameters()), generator=torch.Generator().manual_seed(0))
    milliseconds = product_time(operator.matvec, vector)
    calls, plain = [0], HessianOperator.matvec

    def counted(self, v):
        calls[0] += 1
        return plain(self, v)

    HessianOperator.matvec = counted
    started = time.process_time()
    found = lanczos(operator, k=COUNT, max_iter=32, which="LA", seed=0)  # its own default of 20 errs by 0.3
    seconds = time.process_time() - started
    values = [float(v) for v in found.eigenvalues]
    return {
        "setup": setup,
        "ms": milliseconds,
        "seconds": seconds,
        "products": calls[0],
        "values": sorted(values, reverse=True),
    }


RUNS = {
    "theodolite": run_theodolite,
    "curvlinops": run_curvlinops,
    "PyHessian": run_pyhessian,
    "hessian-eigenthings": run_eigenthings,
    "problem": make_problem,
    "theodolite, products": products_of_theodolite,
    "PyHessian, products": lambda folder: run_pyhessian(folder, products_alone=True),
}
TOOLS = ("theodolite", "curvlinops", "PyHessian", "hessian-eigenthings")


def inner(tool, folder):
    import warnings

    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    found = RUNS[tool](folder) or {}
    found["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print_result(found)


def process(python, tool, folder):
    return result_of(python, __file__, tool, ("--folder", folder), threads=THREADS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--tool", choices=RUNS)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.tool:
        inner(options.tool, options.folder)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "tool",
        "ms a product",
        "setup s",
        "top 10, s",
        "products",
        "largest rel. error",
        "peak MB",
        title="Hessian of a digits MLP 64-128-128-10, 26,122 parameters",
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        process(sys.executable, "problem", folder)  # not in this process: a child's peak memory counts its parent's
        found = {
            tool: process(sys.executable if tool == "theodolite" else options.peers / "bin/python", tool, folder)
            for tool in TOOLS
        }
    truth = found["theodolite"]["truth"]
    for tool, row in found.items():
        if row is not None:
            error = max(abs(a - b) / abs(b) for a, b in zip(row["values"], truth, strict=True))
            table.add_row(
                tool,
                f"{row['ms']:.1f}",
                f"{row['setup']:.2f}",
                f"{row['seconds']:.2f}",
                str(row["products"]),
                f"{error:.1e}",
                f"{row['rss']:.0f}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
