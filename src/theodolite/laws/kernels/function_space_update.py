r"""A step of size $\gamma$ on $\frac{1}{2m}\sum(z-y)^2$ moves the outputs by $-\frac{\gamma}{m}\Theta(z-y)$ to first order."""

import torch
from torch import nn

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.measure.kernels import empirical_ntk
from theodolite.theory import Mlp


def measure(samples: int, *, lr: float = 1e-3, momentum: float = 0.0) -> float:
    """By how much the outputs move along the kernel times the residual, per unit of step."""
    generator = torch.Generator().manual_seed(samples)
    net = network(Mlp(2, "tanh", 1.5, 0.1), 3, 1, width=24, generator=generator, dtype=torch.float64)
    x = torch.randn(samples, 3, generator=generator, dtype=torch.float64)
    y = torch.randn(samples, 1, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        z = net(x)
    direction = empirical_ntk(net, x) @ (y - z)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum)
    for _ in range(1 if not momentum else 5):
        optimizer.zero_grad()
        (0.5 * nn.functional.mse_loss(net(x), y)).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        change = net(x) - z
    return float((change * direction).sum() / direction.square().sum() / lr)


law = Law(
    claim="A gradient step on the mean squared error acts on the outputs through the tangent kernel, divided by the number "
    "of samples.",
    formula=r"z'=z-\frac{\gamma}{m}\Theta(z-y)+O(\gamma^2)",
    assumes={"a small step": {"lr": 0.08}, "one plain gradient step": {"momentum": 0.009}},
    source="jacot2018; lee2019",
    predict=lambda samples: 1 / samples,
    measure=measure,
    cases=({"samples": 2}, {"samples": 3}, {"samples": 6}),
    tolerance=0.02,  # the next order is relative gamma |Theta| / m, about 0.5 %
    quantity="movement along the kernel, per unit of step",
    erratum="Lecture notes drop the factor 1/m after defining the loss as a mean.",
    refuted=lambda **case: 1.0,
)
