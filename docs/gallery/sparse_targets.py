"""Multiplicative updates compared with Adam on a sparse target.

The target is a sum of five of a thousand features, and there are 25 to 200 examples. Adam learns nothing from so few: it needs
about as many examples as features. Multiplicative updates learn the target from a hundred.
"""

import torch
from torch import nn

import theodolite as th

generator = torch.Generator().manual_seed(0)
features, relevant, new = 1000, 5, 500
x = torch.randn(1000, features, generator=generator)
weight = torch.zeros(features)
weight[torch.randperm(features, generator=generator)[:relevant]] = 1.0
y = x @ weight


def error(examples, make):
    """The share of the variance of new examples that is left after training on so many."""
    layer = nn.Linear(features, 1, bias=False)
    nn.init.zeros_(layer.weight)
    optimizer = make(layer.parameters())
    for _ in range(600):
        optimizer.zero_grad()
        (layer(x[:examples])[:, 0] - y[:examples]).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        return ((layer(x[-new:])[:, 0] - y[-new:]).square().mean() / y[-new:].square().mean()).item()


sizes = (25, 50, 75, 100, 150, 200)
adam = [error(size, lambda parameters: torch.optim.Adam(parameters, lr=0.01)) for size in sizes]
multiplicative = [error(size, lambda parameters: th.optim.EGUpm(parameters, lr=0.05, beta=1e-3)) for size in sizes]
print("examples   Adam    EGU+-")
for row in zip(sizes, adam, multiplicative, strict=True):
    print("{:8d}  {:6.3f}  {:6.3f}".format(*row))

pictures = [
    (
        "What is left of the variance of new examples: EGU+- as points, Adam as a line",
        th.Series(
            x=sizes,
            measured=tuple(multiplicative),
            line=tuple(adam),
            line_label="Adam",
            x_label="training examples",
            y_label="share left, EGU+-",
        ),
    )
]
