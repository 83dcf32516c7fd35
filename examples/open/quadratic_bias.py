"""Open: which solution does gradient flow find on a quadratic model, and does it find one at all?

Where curvatures commute it is the projection in Kullback-Leibler divergence; with a small quadratic term first-order theory
has a closed form. In between nothing is known. This measures and claims nothing.
"""

import numpy as np

from theodolite.construct.dynamics import quadratic_problem, quadratic_slope
from theodolite.measure.experiments import flow_limit, flowed
from theodolite.theory.bias import least_divergence
from theodolite.theory.dynamics import linear_flow_limit, parallel_correction, perpendicular_correction

SIZE, SAMPLES = 6, 3


def rotation(rng, angle):
    """A random rotation by an angle in each of three planes."""
    basis = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    turn = np.eye(SIZE)
    for k in range(0, SIZE, 2):
        turn[k : k + 2, k : k + 2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return basis @ turn @ basis.T


def commutators():
    print(
        "Curvatures that commute less and less: distance of the flow's end to the divergence projection (median of 8)"
    )
    print(f"  {'angle':>6s} {'|[F1,F2]|/|F1||F2|':>20s} {'distance':>10s} {'converged':>10s}")
    for angle in (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        sizes, gaps = [], []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            readouts = rng.normal(size=(SAMPLES, SIZE))
            start, y = rng.uniform(0.5, 1.0, size=SIZE), 0.5 * readouts @ rng.uniform(0.3, 2.0, size=SIZE)
            turns = [rotation(np.random.default_rng(100 + a), angle * a) for a in range(SAMPLES)]
            F = np.array([t @ np.diag(mu) @ t.T for t, mu in zip(turns, readouts, strict=True)])
            sizes.append(np.linalg.norm(F[0] @ F[1] - F[1] @ F[0]) / np.linalg.norm(F[0]) / np.linalg.norm(F[1]))
            try:
                end = flow_limit(lambda s, F=F, y=y: (0.5 * (F @ s) @ s - y) @ (F @ s), start, still=1e-8, doublings=10)
            except ValueError:
                continue
            if np.abs(0.5 * (F @ end) @ end - y).max() < 1e-4:
                gaps.append(np.linalg.norm(end**2 - least_divergence(readouts, y, start=start**2)))
        print(f"  {angle:6.2f} {np.median(sizes):20.3f} {np.median(gaps) if gaps else np.nan:10.2g} {len(gaps):8d}/8")


def first_order():
    print("Quadratic terms that grow: error of first-order theory over its size (median of 6)")
    for epsilon in (0.001, 0.01, 0.03, 0.1, 0.3):
        errors = []
        for seed in range(6):
            problem, start = quadratic_problem(seed, parameter_count=7, samples=3)
            linear = linear_flow_limit(problem.features, problem.targets, start)
            step = parallel_correction(problem, start) + perpendicular_correction(problem, start)
            try:
                end = flow_limit(quadratic_slope(problem, epsilon), start, still=1e-8, doublings=8)
            except ValueError:
                continue
            errors.append(np.linalg.norm((end - linear) / epsilon - step) / np.linalg.norm(step))
        print(f"  epsilon {epsilon:5.3f}: {np.median(errors):8.2g}")


def convergence():
    print(
        "Flows on purely quadratic models z = theta F theta / 2, 8 parameters: share that reaches loss below 1e-6 of its start"
    )
    print("  start \\ data" + "".join(f"{m:8d}" for m in (1, 2, 4, 6)))
    for scale in (0.01, 0.1, 1.0, 3.0):
        shares = []
        for samples in (1, 2, 4, 6):
            done = 0
            for seed in range(12):
                rng = np.random.default_rng(seed)
                raw = rng.normal(size=(samples, 8, 8)) / 4
                F, y, start = raw + raw.transpose(0, 2, 1), rng.normal(size=samples), scale * rng.normal(size=8)
                end = flowed(lambda s, F=F, y=y: (0.5 * (F @ s) @ s - y) @ (F @ s), start, time=400.0, precision=1e4)
                first, last = (((0.5 * (F @ s) @ s - y) ** 2).sum() for s in (start, end))
                done += last < 1e-6 * first
            shares.append(done / 12)
        print(f"  {scale:12.2f}" + "".join(f"{share:8.2f}" for share in shares))


if __name__ == "__main__":
    commutators()
    first_order()
    convergence()
