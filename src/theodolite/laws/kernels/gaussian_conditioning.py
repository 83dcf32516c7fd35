r"""A Gaussian process given data: its variance, its evidence and what it says of a point left out, from the joint law alone."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.theory.kernels import gp_posterior, leave_one_out_residuals, log_marginal_likelihood

NOISE, SAMPLES = 0.3, 5


def data() -> tuple[Tensor, Tensor]:
    """The kernel of five points and a sixth, new one, and values."""
    x = torch.tensor([-1.0, -0.6, 0.0, 0.5, 1.2, 0.8], dtype=torch.float64)
    return torch.exp(-0.5 * (x[:, None] - x) ** 2 / 0.6**2), torch.tensor(
        [0.4, -0.3, 1.0, 0.2, -0.9], dtype=torch.float64
    )


def predict(what: str) -> float:
    K, y = data()
    inner, cross, prior = K[:SAMPLES, :SAMPLES], K[SAMPLES:, :SAMPLES], K[SAMPLES:, SAMPLES:]
    if what == "log evidence":
        return float(log_marginal_likelihood(inner, y, noise_variance=NOISE))
    if what == "residual of a point left out":
        return float(leave_one_out_residuals(inner, y, ridge=NOISE)[2])
    found = gp_posterior(inner, y, cross=cross, prior=prior, noise_variance=NOISE)
    return float(found.mean[0] if what == "posterior mean" else found.variance[0])


def measure(what: str, *, noise: float = NOISE) -> float:
    """One value after the other, each given those before: a Gaussian of two numbers is all that is conditioned."""
    K, y = data()
    total = K + noise * torch.eye(SAMPLES + 1, dtype=torch.float64)
    order = [i for i in range(SAMPLES) if i != 2] if what == "residual of a point left out" else list(range(SAMPLES))
    total[SAMPLES, SAMPLES] -= noise
    mean, cov, log_density = torch.zeros(SAMPLES + 1, dtype=torch.float64), total.clone(), 0.0
    for i in order:
        gap, variance = y[i] - mean[i], cov[i, i].clone()
        log_density -= 0.5 * float(gap * gap / variance + torch.log(2 * torch.pi * variance))
        mean = mean + cov[:, i] * gap / variance
        cov = cov - cov[:, i : i + 1] * cov[i] / variance
    if what == "log evidence":
        return log_density
    if what == "residual of a point left out":
        return float(y[2] - mean[2])
    return float(mean[SAMPLES] if what == "posterior mean" else cov[SAMPLES, SAMPLES])


law = Law(
    claim="Conditioning a Gaussian on one value after the other gives the posterior, the density of all values and the error at "
    "a point left out that closed forms give at once.",
    formula=r"K_{xx}-K_{xX}(K+\lambda)^{-1}K_{Xx},\qquad\ln p(y)=\sum_i\ln p(y_i\mid y_{<i}),\qquad "
    r"y_i-f_{-i}(x_i)=\frac{[(K+\lambda)^{-1}y]_i}{[(K+\lambda)^{-1}]_{ii}}",
    assumes={"noise of the variance supposed": {"noise": 0.3 + 1.4e-09}},
    source="rasmussen2006, sections 2.2 and 5.4",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"what": w} for w in ("posterior mean", "posterior variance", "log evidence", "residual of a point left out")
    ),
    tolerance=1e-9,
    quantity="what a Gaussian process says",
)
