r"""The minimizer of a loss plus a norm penalty lies in the span of the kernel at the samples, for any loss."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band

FEATURES, SAMPLES, RIDGE = 12, 4, 0.5


def measure(loss: str, *, generator: torch.Generator, penalty: str = "norm") -> float:
    """The share of the minimizer's squared norm outside the span of the samples' features."""
    phi = torch.randn(FEATURES, SAMPLES, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 2, (SAMPLES,), generator=generator) * 2.0 - 1.0

    def objective(theta: torch.Tensor) -> torch.Tensor:
        z = theta @ phi
        fit = {
            "logistic": torch.nn.functional.softplus(-y * z),
            "log cosh": torch.log(torch.cosh(z - y)),
            "fourth power": (z - y).pow(4),
        }[loss]
        size = theta.square().sum() if penalty == "norm" else (theta.square() * torch.arange(1.0, FEATURES + 1)).sum()
        return fit.sum() + 0.5 * RIDGE * size

    theta = torch.randn(FEATURES, generator=generator, dtype=torch.float64) * 0.1
    for _ in range(12):
        gradient = torch.autograd.functional.jacobian(objective, theta)  # type: ignore[no-untyped-call]
        theta = theta - torch.linalg.solve(torch.autograd.functional.hessian(objective, theta), gradient)  # type: ignore[no-untyped-call]
    inside = phi @ torch.linalg.lstsq(phi, theta[:, None]).solution[:, 0]
    return float((theta - inside).square().sum() / theta.square().sum())


law = Law(
    claim="However many features there are, the regularized solution is a combination of the kernel functions at the samples: "
    "what lies outside their span changes no prediction there and costs norm.",
    formula=r"f^*=\sum_ia_iK(x_i,\cdot)",
    assumes={"a penalty on the norm of the kernel's space": {"penalty": "weighted"}},
    source="scholkopf2001",
    predict=lambda **case: Band.around(0.0, abs=1e-10),  # zero: Newton's method leaves rounding
    measure=measure,
    cases=({"loss": "logistic"}, {"loss": "log cosh"}, {"loss": "fourth power"}),
    quantity="share outside the span of the samples",
)
