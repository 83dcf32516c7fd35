r"""Given one layer, the next layer's preactivations are exactly Gaussian, however narrow the network."""

import torch
from torch import Tensor

from theodolite.core.law import Law

C_W, C_B = 1.5, 0.1
DRAWS = 12_000


def predict(width: int, inputs: str) -> float:
    return 1.0


def measure(
    width: int, inputs: str, *, generator: torch.Generator, entries: str = "gauss", given: bool = True
) -> Tensor:
    """Fourth moments over the Gaussian value that the covariance of the layer in front gives them."""
    size = (1 if given else DRAWS, 2, width)
    fixed = torch.randn(
        size, generator=torch.Generator().manual_seed(width) if given else generator, dtype=torch.float64
    )
    fixed[:, 1] = 0.6 * fixed[:, 0] + 0.8 * fixed[:, 1]
    signal = torch.tanh(2 * fixed)  # (1 or draws, 2, width): two inputs, seen by the layer in front
    weights = torch.randn(DRAWS, width, 1, generator=generator, dtype=torch.float64)
    if entries == "sign":
        weights = weights.sign()
    bias = torch.randn(DRAWS, 1, 1, generator=generator, dtype=torch.float64)
    z: Tensor = (signal @ weights * (C_W / width) ** 0.5 + bias * C_B**0.5).squeeze(-1)  # (draws, 2)
    K = C_B + C_W * (signal @ signal.mT).mean(0) / width
    if inputs == "one":
        return z[:, 0] ** 4 / (3 * K[0, 0] ** 2)
    return (z[:, 0] * z[:, 1]).square() / (K[0, 0] * K[1, 1] + 2 * K[0, 1] ** 2)


law = Law(
    claim="Over the random weights, and with the layer in front held fixed, the preactivations of a batch are jointly "
    "Gaussian with the covariance of that layer's signals: their fourth moments are Gaussian ones even at width 2.",
    formula=r"z_i\,|\,z^{(l)}\sim N(0,\hat K),\quad "
    r"\hat K_{\alpha\beta}=C_b+\frac{C_w}{n}\sum_j\sigma(z_{j\alpha})\sigma(z_{j\beta})",
    assumes={"Gaussian weights": {"entries": "sign"}, "the layer in front is given": {"given": False}},
    source="hanin2021; lee2018",
    predict=predict,
    measure=measure,
    cases=({"width": 2, "inputs": "one"}, {"width": 3, "inputs": "one"}, {"width": 2, "inputs": "two"}),
    full=({"width": 32, "inputs": "one"}, {"width": 32, "inputs": "two"}),
    tolerance=0.09,  # exact law: eight standard errors sqrt(96 / 9 / 96000) of a Gaussian fourth moment
    quantity="fourth moment over its Gaussian value",
)
