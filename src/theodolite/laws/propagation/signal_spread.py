r"""One random layer's mean square scatters by $\sqrt{V(1+2/m)+2F(K)^2/m}$, a sample of a sample of variance V."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import elementwise
from theodolite.theory.propagation import signal_spread

C_W, C_B, DRAWS = 1.6, 0.1, 6000


def predict(activation: str, variance: float, width: int, units: int) -> float:
    return signal_spread(activation, variance, weight_variance=C_W, bias_variance=C_B, width=width, units=units)


def measure(
    activation: str, variance: float, width: int, units: int, *, generator: torch.Generator, shared: bool = False
) -> float:
    """The standard deviation over layers of |z|^2 / units; given the layer in front the units are independent Gaussians."""
    front = torch.randn(DRAWS, width, generator=generator, dtype=torch.float64) * variance**0.5
    seen = C_B + C_W * elementwise(activation)(front).square().mean(1)
    if shared:  # the layer in front is the same in all networks
        seen = seen[:1].expand(DRAWS)
    z = seen.sqrt()[:, None] * torch.randn(DRAWS, units, generator=generator, dtype=torch.float64)
    return float(z.square().mean(1).std())


law = Law(
    claim="The mean square after a layer of finite width errs by a sample of the units in front and a sample of the units "
    "behind; their variances add.",
    formula=r"\mathrm{std}\,\frac{|z|^2}m=\sqrt{V\Big(1+\frac2m\Big)+\frac{2F(K)^2}m},\quad "
    r"V=\frac{C_w^2(\langle\sigma^4\rangle-\langle\sigma^2\rangle^2)}n",
    assumes={"a previous layer that is drawn again": {"shared": True}, "signals in front Gaussian": None},
    source="roberts2022, section 4.3",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "relu", "variance": 1.0, "width": 60, "units": 200},
        {"activation": "tanh", "variance": 2.0, "width": 40, "units": 60},
        {"activation": "relu", "variance": 0.5, "width": 100, "units": 80},
        {"activation": "relu", "variance": 1.0, "width": 10, "units": 4},  # few units: 2V/m is a fifth of the whole
    ),
    # the prediction is exact; 8 x 6000 layers know a deviation of kurtosis k to sqrt((k - 1)/4 48000), 0.4 %: an interval of
    # three errors that may lie three off
    tolerance=0.03,
    quantity="standard deviation of the mean square",
)
