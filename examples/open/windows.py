"""Open: how large may the step be? Edges of the window in which descent converges, for models that theory does not cover.

For the two-layer linear network on one datum the edge is at step times curvature 4. What of Taylor models of other orders,
of quadratic models with other spectra, of networks themselves, of several data? This measures and claims nothing.
"""

import math

import numpy as np
import torch

import theodolite as th
from theodolite.construct.dynamics import OneHidden
from theodolite.theory.dynamics import OneDatum, run_outcome

SEEDS, STEPS = 6, 80


def edge(fate, *, low=1.0, high=12.0, rounds=9):
    """The least step times curvature at which runs diverge or die, by bisection, and which; None where the largest does not.

    Runs that are only slow count as inside: near the edge they take long.
    """
    if fate(high) not in ("divergent", "dead"):
        return None, f"neither at {high:.0f}"
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fate(middle) in ("divergent", "dead") else (middle, high)
    return 0.5 * (low + high), fate(high)


def summary(name, found):
    edges = [value for value, _ in found if value is not None]
    beyond = sorted({kind for _, kind in found})
    text = f"{np.median(edges):.2f} ({min(edges):.2f} to {max(edges):.2f})" if edges else "none"
    print(f"  {name:34s} {text:24s} beyond: {', '.join(beyond)}")


def by_spectrum(name, draw):
    """Quadratic models of one datum with 400 parameters, by the eigenvalues of their curvature alone."""
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        values, g = draw(rng), rng.normal(size=400) / 20
        values = values / math.sqrt(400 * (values**2).mean())  # one scale for all: c = 1/m for the two-point spectrum
        model = OneDatum(values, g, 1.0)

        def fate(product, model=model):
            path = model.path(target=0.0, lr=product / model.curvature, steps=3000)
            losses = [min(z * z / 2, 1e300) if abs(z) < 1e150 else math.inf for z in path.outputs]
            return run_outcome(losses, path.curvatures, lr=product / model.curvature).name

        found.append(edge(fate))
    summary(name, found)


def by_order(order, activation=torch.relu, samples=1, width=100):
    """Taylor models of one hidden layer; the curvature is the largest eigenvalue of the tangent kernel."""
    found = []
    for seed in range(2):
        net = OneHidden(seed, width=width, inputs=3, activation=activation)
        x = torch.randn(samples, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        taylor = th.quadratic(net, x, order=order)
        top = float(torch.linalg.eigvalsh(taylor.tangent_kernel())[-1])

        def fate(product, taylor=taylor, top=top):
            y = torch.zeros(samples, 1)
            return taylor.descended(y, lr=product / top, steps=STEPS, watch=False).outcome.name

        found.append(edge(fate, low=2.0, high=8.0, rounds=5))  # to 0.1
    kind = "the network" if order == 0 else f"order {order}"
    summary(f"{kind}, {activation.__name__}, {samples} data", found)


def fates(product, target, width=1000, seeds=12, steps=1000):
    """How ReLU networks themselves end on one datum: gates move, and the loss alone cannot tell a catapult from death."""
    counts = dict.fromkeys(("lazy", "catapult", "dead", "slow", "divergent"), 0)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        u, v = rng.normal(size=(2, width))  # one input, x = 1
        losses, curvatures, lr = [], [], None
        for _ in range(steps + 1):
            h, open_ = np.maximum(u, 0.0), u > 0
            r = h @ v / math.sqrt(width) - target
            losses.append(0.5 * r * r)
            curvatures.append(float(h @ h + (v * v) @ open_) / width)
            lr = product / curvatures[0] if lr is None else lr
            if curvatures[-1] == 0 or losses[-1] > 1e30 or (losses[-1] < 1e-16 and len(losses) > 2):
                break
            u, v = u - lr * r * v * open_ / math.sqrt(width), v - lr * r * h / math.sqrt(width)
        counts[run_outcome(losses, curvatures, lr=lr).name] += 1
    shown = ", ".join(f"{kind} {number}" for kind, number in counts.items() if number)
    print(f"  step times curvature {product:4.1f}, target {target:.0f}: {shown}")


if __name__ == "__main__":
    print("Quadratic models of one datum, by the spectrum of F (edge: median, least and largest):")
    by_spectrum("two points (theory: 4)", lambda rng: rng.choice([-1.0, 1.0], size=400))
    by_spectrum("uniform", lambda rng: rng.uniform(-1, 1, size=400))
    by_spectrum("semicircle", lambda rng: 2 * rng.beta(1.5, 1.5, size=400) - 1)
    by_spectrum("Gaussian", lambda rng: rng.normal(size=400))
    by_spectrum("positive", lambda rng: rng.uniform(0, 1, size=400))
    print("Taylor models and the network itself, one hidden layer of 100:")
    for order in (2, 3, 0):
        by_order(order, torch.tanh)
    for order in (2, 0):
        by_order(order)
    by_order(2, torch.tanh, samples=3)
    by_order(2, samples=3)
    print("ReLU networks of width 1000 themselves, 12 starts, one datum:")
    for target in (0.0, 1.0):
        for product in (3.0, 3.9, 5.0, 8.0):
            fates(product, target)
