r"""Stationary SGD has $\langle\theta\cdot\nabla L\rangle=\frac\gamma2\langle|\nabla L^B|^2\rangle$ for steps of any size."""

import numpy as np

from theodolite.core.law import Law
from theodolite.measure.experiments import enumerated_batches

SAMPLES, BATCH, DIMENSION = 6, 2, 3


def measure(instance: int, lr: float, *, steps: int = 100_000, momentum: float = 0.0) -> float:
    """The ratio of both sides after so many steps, moments carried exactly over every batch that can be drawn."""
    rng = np.random.default_rng(instance)
    x, y = rng.normal(size=(SAMPLES, DIMENSION)), rng.normal(size=SAMPLES)
    weights, chances = enumerated_batches(SAMPLES, BATCH, "independent")
    H = np.einsum("bk,ki,kj->bij", weights, x, x)
    b = np.einsum("bk,ki,k->bi", weights, x, y)
    # moments of the state (theta, velocity, 1): each batch is one linear map of it
    eye, size = np.eye(DIMENSION), 2 * DIMENSION + 1
    maps = np.zeros((len(weights), size, size))
    d = DIMENSION
    maps[:, d : 2 * d, :d], maps[:, d : 2 * d, d : 2 * d], maps[:, d : 2 * d, -1] = H, momentum * eye, -b
    maps[:, :d] = -lr * maps[:, d : 2 * d]
    maps[:, :d, :d] += eye
    maps[:, -1, -1] = 1.0
    moments = np.zeros((size, size))
    moments[-1, -1] = 1.0
    step = np.einsum("b,bij,bkl->ikjl", chances, maps, maps).reshape(size**2, size**2)
    vector = np.linalg.matrix_power(step, steps) @ moments.ravel()
    moments = vector.reshape(size, size)
    mean_H, mean_b = chances @ H.reshape(len(H), -1), chances @ b
    pull = float((mean_H.reshape(d, d) * moments[:d, :d]).sum() - mean_b @ moments[:d, -1])
    rows = np.concatenate([H, np.zeros_like(H), -b[:, :, None]], 2)  # the batch gradient, linear in the state
    noise = float(np.einsum("b,bip,biq,pq->", chances, rows, rows, moments))
    return pull / (0.5 * lr * noise)


law = Law(
    claim="In a stationary state the pull of the loss balances the noise of its batches exactly, whatever the step: the mean "
    "square of the parameters stands still.",
    formula=r"\langle\theta\cdot\nabla L\rangle=\tfrac\gamma2\langle\mathrm{tr}\,\nabla L^B\nabla L^{B\top}\rangle",
    assumes={"a stationary state": {"steps": 1000}, "no momentum": {"momentum": 3.5e-09}},
    source="yaida2019",
    predict=lambda **case: 1.0,
    measure=measure,
    cases=({"instance": 0, "lr": 0.05}, {"instance": 0, "lr": 0.2}, {"instance": 1, "lr": 0.3}),
    full=({"instance": 2, "lr": 0.2},),
    tolerance=1e-9,  # what is left of the start after 100,000 steps (by powers of one matrix), and rounding
    quantity="pull over noise",
)
