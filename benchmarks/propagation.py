"""Gaussian moments and finite-width sampling: accuracy and time beside the usual ways of doing the same.

Moments: the mean square of an activation under N(0, K), against scipy's adaptive quadrature told where the kinks are,
Gauss-Hermite with 100 nodes, and 30-digit integration by mpmath as the truth.
Sampling: the kernel of a random network of width n behind L layers, by drawing weights and by the weight-free chain.
"""

from __future__ import annotations

import math
import time

import mpmath
import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy import integrate

from theodolite.measure.experiments import Ensemble, conditional_chain, preactivations
from theodolite.theory import Activation

torch.set_num_threads(1)
FUNCTIONS = {
    "tanh": (torch.tanh, math.tanh, mpmath.tanh, ()),
    "silu": (
        torch.nn.functional.silu,
        lambda z: z / (1 + math.exp(-z)) if z > -700 else 0.0,
        lambda z: z / (1 + mpmath.exp(-z)),
        (),
    ),
    "hardtanh": (torch.nn.functional.hardtanh, lambda z: max(-1.0, min(1.0, z)), lambda z: max(-1, min(1, z)), (-1, 1)),
}


def timed(function, repeats):
    function()
    start = time.perf_counter()
    for _ in range(repeats):
        value = function()
    return value, (time.perf_counter() - start) / repeats


def moments(console):
    table = Table(
        "activation",
        "K",
        "Theodolite err",
        "µs",
        "scipy.quad err",
        "µs",
        "Hermite-100 err",
        "µs",
        title="mean square under N(0, K): relative error and microseconds",
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    for name, (torch_function, plain, exact, kinks) in FUNCTIONS.items():
        sigma = Activation(torch_function)
        for variance in (0.1, 1.0, 50.0):
            scale = math.sqrt(variance)
            edges = sorted([-40, *(k / scale for k in kinks), 40])
            with mpmath.workdps(30):
                panels = sorted({*np.linspace(-15, 15, 61).tolist(), *edges[1:-1]})
                truth = float(mpmath.quad(lambda g, s=scale, f=exact: f(s * g) ** 2 * mpmath.npdf(g), panels))

            def ours(v=variance, s=sigma):
                s._lines.clear()  # no reuse: the work is done anew each time
                return s.moment(v)

            def quad(s=scale, f=plain, k=kinks):
                integrand = lambda g: f(s * g) ** 2 * math.exp(-g * g / 2) / math.sqrt(2 * math.pi)  # noqa: E731
                return integrate.quad(
                    integrand, -15, 15, points=[0, *(p / s for p in k)], epsabs=0, epsrel=1e-13, limit=500
                )[0]

            def hermite(s=scale, f=torch_function):
                return float(f(torch.from_numpy(s * nodes)).square().numpy() @ weights) / math.sqrt(2 * math.pi)

            cells = [name, f"{variance:g}"]
            for function, repeats in ((ours, 50), (quad, 5), (hermite, 50)):
                value, seconds = timed(function, repeats)
                cells += [f"{abs(value / truth - 1):.1e}", f"{1e6 * seconds:.0f}"]
            table.add_row(*cells)
    console.print(table)


def sampling(console):
    table = Table(
        "width",
        "layers",
        "by weights, ms a net",
        "by chain, ms a net",
        "ratio",
        "means differ by",
        title="squared norm of a random tanh network for two inputs",
    )
    x = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.5, -1.0, 1.5, 1.0]], dtype=torch.float64)
    first = 0.05 + 1.5 * x @ x.T / 4
    for width, hidden, nets in ((64, 4, 512), (256, 4, 128), (1024, 4, 16)):
        ensemble = Ensemble(activation=torch.tanh, widths=(width,) * hidden, weight_variance=1.5, bias_variance=0.05)

        def by_weights(e=ensemble, n=nets):
            out = preactivations(e, x, nets=n, outputs=64, generator=torch.Generator().manual_seed(0))[-1]
            return out[:, 0].square().mean(-1)

        def by_chain(e=ensemble, n=nets):
            return conditional_chain(e, first, nets=n, generator=torch.Generator().manual_seed(1))[:, -1, 0, 0]

        results = [timed(function, 2) for function in (by_weights, by_chain)]
        means = [(values.mean().item(), values.std().item() / nets**0.5) for values, _ in results]
        times = [1e3 * seconds / nets for _, seconds in results]
        gap = abs(means[0][0] - means[1][0]) / math.hypot(means[0][1], means[1][1])
        table.add_row(
            str(width), str(hidden), *(f"{t:.3f}" for t in times), f"{times[0] / times[1]:.1f}", f"{gap:.1f} σ"
        )
    console.print(table)


if __name__ == "__main__":
    console = Console(width=130)
    moments(console)
    sampling(console)
