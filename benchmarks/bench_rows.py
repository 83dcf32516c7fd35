"""One job of one tool at one size, in a process of its own: seconds, memory and the answer. `benchmarks/bench.py` runs them.

A job is made (data, models), run once to warm up what compiles, and run again. The floor is what no implementation of the
same kind can avoid, measured in the same way.
"""

import argparse
import itertools
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from peer_process import print_result


def kernels_ours(n, activation="relu"):
    from theodolite.theory import Mlp
    from theodolite.theory.kernels import mlp_kernels

    x, spec = _normal(n, 784), Mlp(3, activation, 2.0)
    return lambda: float(mlp_kernels(spec, x).ntk[0, 1])


def kernels_peer(n, activation="relu"):
    import peer_neural_tangents as peer

    peer.put_back_removed_names()
    import jax
    from neural_tangents import stax

    kernel = jax.jit(peer.network(stax, activation, [2.0] * 4, [0.0] * 4), static_argnums=(1, 2))
    x = jax.device_put(_normal(n, 784).numpy())

    def work():
        found = kernel(x, None, ("nngp", "ntk"))
        found.nngp.block_until_ready()
        return float(found.ntk[0, 1])

    return work


def kernels_floor(n):
    """Half of the products of all pairs, and both kernels written once."""
    x = _normal(n, 784)
    return lambda: float((x[: n // 2] @ x.T)[0, 1] + x.new_zeros(2, n, n).fill_(1.0)[0, 0, 0])


def _ball(n):
    """Ball of 5 dimensions in 50 columns, each with noise of 1e-3."""
    import numpy as np

    rng = np.random.default_rng(0)
    inside = rng.normal(size=(n, 5))
    inside *= rng.uniform(size=(n, 1)) ** 0.2 / np.linalg.norm(inside, axis=1, keepdims=True)
    turned = np.linalg.qr(rng.normal(size=(50, 50)))[0][:5]
    return inside @ turned + 1e-3 * rng.normal(size=(n, 50))


def twonn_ours(n):
    from theodolite.measure.dimension import dimension_twonn

    x = _ball(n)
    return lambda: dimension_twonn(x).value


def many_ours(n):
    """Rows of a cube of 5 dimensions in 10 columns: the estimate's error says how well a million of them tell it."""
    import numpy as np

    from theodolite.measure.dimension import dimension_twonn

    rng = np.random.default_rng(0)
    turned = rng.standard_normal((5, 10), dtype=np.float32)
    x = rng.random((n, 5), dtype=np.float32) @ turned
    return lambda: dimension_twonn(x).value


def twonn_scikit(n):
    import skdim

    x = _ball(n)
    return lambda: float(skdim.id.TwoNN().fit(x).dimension_)


def twonn_dadapy(n):
    from dadapy import Data

    x = _ball(n)
    return lambda: float(Data(coordinates=x, verbose=False, n_jobs=1).compute_id_2NN()[0])


def twonn_torchid(n):
    import torch
    from torchid.estimators import TwoNN

    x = torch.from_numpy(_ball(n))

    def work():
        model = TwoNN()
        found = model.fit(x) if hasattr(model, "fit") else model(x)
        return float(getattr(found, "dimension_", found))

    return work


def twonn_floor(n):
    """The single-precision products of all pairs, each pair once: what a search without a tree pays at least."""
    import torch

    x = torch.from_numpy(_ball(n)).float()
    return lambda: sum(float((part @ x[: n // 2].T)[0, 0]) for part in torch.split(x, 2048))


def regions_ours(n, layers=3):
    from regions import SQUARE, network

    from theodolite.measure.regions import regions_in_polygon

    model = network((2, *(n,) * layers))
    return lambda: regions_in_polygon(model, SQUARE).regions


def streamed_ours(n):
    from regions import SQUARE, network

    from theodolite.measure.regions import region_parts_in_polygon

    model = network((2, n, n, n))
    return lambda: sum(part.regions for part in region_parts_in_polygon(model, SQUARE))


def regions_floor(n, layers=3):
    """One pass of the network at one point of each cell; the number of cells is told as the value."""
    import torch
    from regions import network

    cells = regions_ours(n, layers)()
    model, points = network((2, *(n,) * layers)), torch.rand(cells, 2, dtype=torch.float64)

    def work():
        with torch.no_grad():
            for part in torch.split(points, 1024):
                model(part)
        return cells

    return work


def plane_ours(n):
    from regions import SQUARE, network

    from theodolite.measure.regions import regions_in_polygon

    model = network((2, n, n))
    return lambda: regions_in_polygon(model, [(1e6 * u, 1e6 * v) for u, v in SQUARE]).regions


def plane_relucent(n):
    import relucent
    from regions import network

    def work():
        found = relucent.Complex(network((2, n, n)))
        found.bfs(nworkers=1)
        return len(found)

    return work


def _steps(n, kind, **options):
    """Four steps of Adam or SGD of a perceptron of about n million parameters, whole or in a subspace of 750."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    torch.manual_seed(0)
    width = int((n * 1e6 / 2.3) ** 0.5)
    sizes = (width // 2, width, width, int(0.8 * width), 10)
    layers = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    x, y = torch.randn(8, sizes[0]), torch.randint(10, (8,))

    def work():
        net = model
        if kind == "subspace":
            from theodolite.construct.dimension import subspace

            net = subspace(model, 750, **options)
        trained = [p for p in net.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trained, lr=1e-3) if kind == "sgd" else torch.optim.Adam(trained, lr=1e-3)
        for _ in range(4):
            optimizer.zero_grad()
            cross_entropy(net(x), y).backward()
            optimizer.step()
        return sum(p.numel() for p in model.parameters()) * 4 / 2**20

    return work


def ridge_ours(n, share=None):
    """With a share of the whole matrix' memory for tiles that are kept; as users get it where none is given."""
    from kernel_ridge import LEAST_RANK, RIDGE, TOLERANCE, data

    from theodolite.theory import Mlp
    from theodolite.theory.kernels import Kernel, ridge_by_conjugate_gradients

    x, y = data(n)
    matrix = Kernel(Mlp(3, "relu", 2.0), kind="ntk").matrix(x, memory=None if share is None else int(share * 4 * n * n))
    rank = max(LEAST_RANK, n // 25)

    def column(places):
        return matrix.block(slice(None), places)

    def work():
        found = ridge_by_conjugate_gradients(matrix, y, ridge=RIDGE, column=column, rank=rank, tolerance=TOLERANCE)
        return found.iterations

    return work


def ridge_scikit(n):
    from kernel_ridge import RIDGE, data
    from sklearn.kernel_ridge import KernelRidge

    from theodolite.theory import Mlp
    from theodolite.theory.kernels import mlp_kernels

    x, y = data(n)

    def work():
        kernel = mlp_kernels(Mlp(3, "relu", 2.0), x).ntk.numpy()
        KernelRidge(alpha=RIDGE, kernel="precomputed").fit(kernel, y.numpy())
        return 0

    return work


def ridge_floor(n):
    """One product of the kernel with the ten targets."""
    from kernel_ridge import data

    from theodolite.theory import Mlp
    from theodolite.theory.kernels import Kernel

    x, y = data(n)
    matrix = Kernel(Mlp(3, "relu", 2.0), kind="ntk").matrix(x, memory=0)
    return lambda: float((matrix @ y)[0, 0])


def hadamard_ours(n):
    import torch

    from theodolite.theory.dimension import hadamard_transform

    x = torch.ones(2**n)
    return lambda: float(hadamard_transform(x, scale=2 ** (-n / 2))[0])


def hadamard_peer(n):
    import torch
    from hadamard_transform import hadamard_transform

    x = torch.ones(2**n)
    return lambda: float(hadamard_transform(x)[0])


def hadamard_floor(n):
    """One copy."""
    import torch

    x, other = torch.ones(2**n), torch.empty(2**n)
    return lambda: float(other.copy_(x)[0])


def _tail(n):
    import numpy as np

    return 1 + np.random.default_rng(n).pareto(1.5, n)


def fit_ours(n):
    from theodolite.measure.spectra import power_law

    values = _tail(n)
    return lambda: power_law(values, rule="weightwatcher").alpha


def fit_weightwatcher(n):
    import logging

    from weightwatcher.WW_powerlaw import WWFit

    logging.disable(logging.CRITICAL)
    values = _tail(n)
    return lambda: float(WWFit(values).alpha)


def fit_floor(n):
    """A sort, its logarithms and their sums."""
    import numpy as np

    values = _tail(n)
    return lambda: float(np.log(np.sort(values)).cumsum()[-1])


def decay_ours(n):
    from theodolite.measure.spectra import feature_decay

    x = _normal(4 * n, n)
    return lambda: feature_decay(x, rule="reptrix", window=(10, 100)).alpha


def decay_reptrix(n):
    from reptrix.alpha import get_alpha

    x = _normal(4 * n, n)
    return lambda: float(get_alpha(x)[0])


def decay_floor(n):
    """The covariance and its eigenvalues, in double precision."""
    import torch

    x = _normal(4 * n, n).double()
    return lambda: float(torch.linalg.eigvalsh(x.T @ x)[-1])


def _digits(n):
    """A digits MLP after 60 steps, and n samples; those there are, again and again."""
    import torch
    from curvature import make_problem, problem

    with tempfile.TemporaryDirectory() as folder:
        make_problem(Path(folder))
        model, x, y, loss = problem(Path(folder))
    places = torch.arange(n) % len(x)
    return model, loss, [(x[places], y[places])]


def hessian_ours(n):
    import torch

    from theodolite.measure.curvature import hessian

    operator = hessian(*_digits(n))
    vector = torch.randn(operator.size, generator=torch.Generator().manual_seed(0))
    return lambda: float(operator(vector).norm())


def eigenvalues_ours(n):
    from theodolite.measure.curvature import extreme_eigenpairs, hessian

    problem = _digits(n)
    return lambda: float(extreme_eigenpairs(hessian(*problem), count=10).values[0])


def look_ours(n):
    """A later look at a perceptron of about n million parameters."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    import theodolite as th

    torch.manual_seed(0)
    width = int((n * 1e6 / 2) ** 0.5)
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    x, y = torch.randn(32, width), torch.randint(10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), every=1, level="cheap")

    def step():
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()

    step()
    watch.look(0)
    step()
    return lambda: len(watch.look(1).readings)


def structure_ours(n):
    import numpy as np
    import torch

    from theodolite.instruments._common import tails
    from theodolite.measure.spectra import gram_eigenvalues

    tails.REFITS = 0  # the goodness of a power law is no part of the verdict
    matrix = torch.from_numpy(np.random.default_rng(0).normal(size=(n, n)))
    return lambda: tails.tail_of(matrix, gram_eigenvalues(matrix).numpy(), name="m").p_value


def _normal(n, d):
    import torch

    return torch.randn(n, d, generator=torch.Generator().manual_seed(0))


JOBS = {
    "kernels": {"ours": kernels_ours, "neural-tangents": kernels_peer, "floor": kernels_floor},
    "kernels of tanh": {
        "ours": lambda n: kernels_ours(n, "tanh"),
        "neural-tangents": lambda n: kernels_peer(n, "tanh"),
        "floor": kernels_floor,
    },
    "twonn": {
        "ours": twonn_ours,
        "DADApy": twonn_dadapy,
        "torchid": twonn_torchid,
        "scikit-dimension": twonn_scikit,
        "floor": twonn_floor,
    },
    "many rows": {"ours": many_ours},
    "cells": {"ours": regions_ours, "floor": regions_floor},
    "cells of two layers": {"ours": lambda n: regions_ours(n, 2), "floor": lambda n: regions_floor(n, 2)},
    "streamed cells": {"ours": streamed_ours, "all cells held": regions_ours},
    "plane": {"ours": plane_ours, "relucent": plane_relucent},
    "subspace": {
        "ours": lambda n: _steps(n, "subspace", shared=True),
        "Adam on all weights": lambda n: _steps(n, "adam"),
        "floor": lambda n: _steps(n, "sgd"),
    },
    "ridge": {"ours": ridge_ours, "scikit-learn": ridge_scikit, "floor": ridge_floor},
    "kept ridge": {
        "ours": lambda n: ridge_ours(n, 0.4),
        "nothing kept": lambda n: ridge_ours(n, 0.0),
        "floor": ridge_floor,
    },
    "ridge at full size": {"ours": lambda n: ridge_ours(n, 0.4), "floor": ridge_floor},
    "hessian": {"ours": hessian_ours},
    "eigenvalues": {"ours": eigenvalues_ours},
    "look": {"ours": look_ours},
    "structure": {"ours": structure_ours},
    "hadamard": {"ours": hadamard_ours, "hadamard-transform": hadamard_peer, "floor": hadamard_floor},
    "power law": {"ours": fit_ours, "WeightWatcher": fit_weightwatcher, "floor": fit_floor},
    "alpha-ReQ": {"ours": decay_ours, "reptrix": decay_reptrix, "floor": decay_floor},
}
SMALL = {
    "kernels": 64,
    "kernels of tanh": 64,
    "cells of two layers": 16,
    "streamed cells": 16,
    "kept ridge": 400,
    "ridge at full size": 400,
    "hessian": 100,
    "eigenvalues": 100,
    "look": 0.1,
    "structure": 64,
    "twonn": 300,
    "many rows": 300,
    "cells": 16,
    "plane": 4,
    "subspace": 0.1,
    "ridge": 400,
    "hadamard": 10,
    "power law": 200,
    "alpha-ReQ": 128,
}
COMPILED = (
    "kernels",
    "kernels of tanh",
    "hadamard",
    "power law",
    "alpha-ReQ",
    "hessian",
    "structure",
)  # short, or compiled for each size: the best of three


def resident(field):
    """Megabytes of this process: VmRSS now, VmHWM at most since `forget_peak`."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def forget_peak():
    """Begin the peak anew, so that what making the data took is not counted (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", choices=JOBS)
    parser.add_argument("--tool")
    parser.add_argument("--size", type=float)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    job, size = JOBS[options.row][options.tool], int(options.size) if options.size >= 3 else options.size
    job(SMALL[options.row])()
    work, best = job(size), []
    before = resident("VmRSS")
    forget_peak()
    for _ in range(4 if options.row in COMPILED else 1):
        start = time.process_time()
        value = work()
        best.append(time.process_time() - start)
    print_result({"seconds": min(best), "extra": max(0.0, resident("VmHWM") - before), "value": value})


if __name__ == "__main__":
    main()
