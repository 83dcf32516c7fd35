"""The usual ways to initialize, and the inputs that they are tried on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from theodolite.core.checks import InputError
from theodolite.theory import Mlp
from theodolite.theory.kernels import LearningRates, learning_rates
from theodolite.theory.propagation import Criticality, Phase, phase


@dataclass(frozen=True)
class Option:
    """One way to initialize: its variances and what theory says of signals under it."""

    name: str
    weight_variance: float
    bias_variance: float
    phase: Phase


def options_of(sigma: Any, point: Criticality, width: int) -> Iterator[Option]:
    """The critical point first, then what people use."""
    usual = {"He": (2.0, 0.0), "Xavier (LeCun)": (1.0, 0.0), "PyTorch default": (1 / 3, 1 / (3 * width))}
    if point.weight_variance is not None and point.bias_variance is not None:
        usual = {"critical": (point.weight_variance, point.bias_variance), **usual}
    for name, (weight, bias) in usual.items():
        start = (point.fixed_point if name == "critical" else None) or 1.0
        yield Option(name, weight, bias, phase(sigma, weight_variance=weight, bias_variance=bias, variance=start))


def network_of(sigma: Any, option: Option, depth: int) -> Any:
    """The network of that depth under this initialization, as theory knows it."""
    return Mlp(depth, sigma, option.weight_variance, option.bias_variance)


def columns_of(data: Any) -> tuple[Any, Any]:
    """Inputs and targets as tensors, None where there are none."""
    if data is None:
        return None, None
    x, y = data if isinstance(data, tuple) else (data, None)
    return torch.as_tensor(x), None if y is None else torch.as_tensor(y)


def signal_of(x: Any) -> tuple[float, float]:
    """The mean power of an input entry and the mean cosine between inputs."""
    if x is None:
        return 1.0, 0.5
    x = x[:512].flatten(1).double()
    if len(x) < 2:
        raise InputError(f"expected at least two inputs, got {len(x)}; pass more data")
    unit = torch.nn.functional.normalize(x, dim=1)
    cosines = (unit @ unit.T)[~torch.eye(len(x), dtype=torch.bool)]
    return x.square().mean().item(), cosines.mean().item()


def rates_of(
    spec: Any, inputs: Any, width: int, signal: tuple[float, float] = (1.0, 0.5), samples: int | None = None
) -> LearningRates:
    """The step sizes that theory allows on these inputs; where only their number is known, of this power and cosine."""
    return learning_rates(spec, inputs=inputs, width=width, mean_square=signal[0], cosine=signal[1], samples=samples)
