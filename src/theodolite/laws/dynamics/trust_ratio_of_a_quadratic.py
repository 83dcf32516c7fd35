r"""On a quadratic the loss changes by $r=1+\frac{1}{2}u^THu/g\cdot u$ of what the gradient predicts, whatever made the update."""

import torch
from torch import nn

from theodolite.core.law import Law
from theodolite.io.batches import Batch
from theodolite.measure.dynamics import update_effect
from theodolite.theory.dynamics import step_quality


def measure(optimizer: str, factor: float, *, generator: torch.Generator, power: float = 2.0) -> float:
    """One update of a real optimizer, made as many times longer than the best one as the case says."""
    x, y = (torch.randn(32, n, generator=generator, dtype=torch.float64) for n in (6, 1))
    model = nn.Linear(6, 1, bias=False).double()
    nn.init.zeros_(model.weight)

    def loss(z: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return ((z - t).abs() ** power).mean()

    made: dict[str, torch.optim.Optimizer] = {
        "sgd": torch.optim.SGD(model.parameters(), lr=0.1),
        "adam": torch.optim.Adam(model.parameters(), lr=0.1),
        "rmsprop": torch.optim.RMSprop(model.parameters(), lr=0.1),
    }
    before = model.weight.detach().clone()
    (slope,) = torch.autograd.grad(loss(model(x), y), [model.weight])
    model.weight.grad = slope
    made[optimizer].step()
    u = model.weight.detach() - before
    H = 2 * x.T @ x / len(x)
    best = -float((slope * u).sum()) / float((u @ H * u).sum())
    with torch.no_grad():
        model.weight.copy_(before + factor * best * u)
    effect = update_effect(model, loss, [Batch((x,), {}, y)], before={"weight": before})
    return effect.change / effect.forecast


law = Law(
    claim="The change of the loss over the change that the gradient predicts is 1 for small updates, 1/2 at the best length "
    "along the update and 0 at twice that, whichever optimizer made it: two losses and a slope tell where a step stands.",
    formula=r"\frac{L(\theta+u)-L(\theta)}{g\cdot u}=1+\frac{u^THu}{2\,g\cdot u}=1-\frac{s}{2s_{best}}",
    assumes={"a quadratic loss": {"power": 4.0}},
    source="conn2000, section 6.1",
    # in units of the best step along the update: 1/2 at factor 1
    predict=lambda optimizer, factor: step_quality(-1.0, -1.0 + factor / 2).ratio,
    measure=measure,
    cases=tuple({"optimizer": o, "factor": f} for o, f in (("sgd", 0.2), ("adam", 1.0), ("rmsprop", 3.0))),
    tolerance=1e-9,
    repeats=8,
    quantity="measured over predicted change of the loss",
)
