r"""Random convolutional networks of many channels have the covariance that the kernel of pixels and patches gives."""

import torch
from torch import Tensor, nn

from theodolite.construct.kernels import kernel_of
from theodolite.core.law import Law

CHANNELS, NETS, C_W, C_B = 48, 150, 1.8, 0.1


def images() -> Tensor:
    x = torch.randn(2, 2, 4, 4, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    return torch.stack([x[0], 0.6 * x[0] + 0.8 * x[1]])


def predict(activation: str, head: str) -> float:
    act = nn.ReLU() if activation == "relu" else nn.Tanh()
    ends: tuple[nn.Module, ...] = (nn.Flatten(), nn.Linear(64, 1))
    if head == "average":
        ends = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1))
    net = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), act, nn.Conv2d(4, 4, 3, padding=1), act, *ends)
    kernel = kernel_of(net, kind="nngp", weight_variance=C_W, bias_variance=C_B)
    return float(kernel(images())[0, 1])


def measure(activation: str, head: str, *, generator: torch.Generator, circular: bool = False) -> Tensor:
    """Given the last layer the output is Gaussian: its covariance is a mean of products of activations."""
    sigma = torch.relu if activation == "relu" else torch.tanh
    h = images().float().repeat(1, NETS, 1, 1)  # networks side by side, as groups of channels
    for _ in range(2):
        inside = h.shape[1] // NETS
        weight = torch.randn(NETS * CHANNELS, inside, 3, 3, generator=generator) * (C_W / (9 * inside)) ** 0.5
        bias = torch.randn(NETS * CHANNELS, generator=generator) * C_B**0.5
        padded = nn.functional.pad(h, (1, 1, 1, 1), mode="circular" if circular else "constant")
        h = sigma(nn.functional.conv2d(padded, weight, bias, groups=NETS))
    h = h.reshape(2, NETS, CHANNELS, -1)
    if head == "average":
        h = h.mean(-1, keepdim=True)
    return (C_B + C_W * (h[0] * h[1]).mean((1, 2))).double()


law = Law(
    claim="Convolutions average covariances over patches, nonlinearities map them pixel by pixel, and what is read out is a mean "
    "over pixels, or over all pairs of them.",
    formula=r"K_{pp'}\to C_b+C_w\,\mathrm{mean}_\delta K_{p+\delta,p'+\delta},\qquad K_{pp'}\to E\,\sigma\sigma'",
    assumes={"zeros around the image": {"circular": True}, "many channels": None},
    source="novak2019, section 3.1; arora2019, section 4",
    predict=predict,
    measure=measure,
    cases=tuple({"activation": a, "head": h} for a in ("relu", "tanh") for h in ("flatten", "average")),
    # 450 networks of 48 channels know a covariance to 1 %, three errors 3 %; finite width adds 1/48 of it
    tolerance=0.08,
    repeats=3,
    quantity="covariance of the outputs for two images",
)
