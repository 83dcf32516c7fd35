"""While it trains: descent finds the edge of stability, and a step too large is told from one that only looks so.

Writes edge.html, the page of the first run, into the folder named on the command line (the present one unless told).
"""

import math
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import theodolite as th
from theodolite.construct.propagation import network

SHARPNESS = "largest Hessian eigenvalue"
torch.set_num_threads(1)


def half_square(z: Tensor, t: Tensor) -> Tensor:
    return (z - t).square().mean() / 2


def trained(model: nn.Module, x: Tensor, y: Tensor, *, lr: float, steps: int, every: int) -> th.Watch:
    """Full-batch gradient descent, watched."""
    watch = th.Watch(model, probe=(x, y), loss=half_square, every=every, budget=math.inf)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for step in range(steps):
        watch(step, lr=lr)
        if watch.phase.name in ("divergent", "dead"):
            return watch
        optimizer.zero_grad()
        half_square(model(x), y).backward()
        optimizer.step()
    watch.look(steps, lr=lr)
    return watch


def at_the_edge(folder: Path) -> None:
    """A small tanh network learns a Chebyshev polynomial: its sharpness climbs to 2/lr and stays there."""
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None]
    y = 8 * x**4 - 8 * x**2 + 1
    spec = th.Mlp(widths=(16, 16, 16), activation="tanh", weight_variance=1.5, bias_variance=0.1)
    print("lr     2/lr    sharpness, late   sharpness lr/2   phase")
    for lr in (0.12, 0.15):
        model = network(spec, 1, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        watch = trained(model, x, y, lr=lr, steps=1600, every=20)
        late = [record.value(SHARPNESS) for record in watch.records if record.step >= 1200]
        mean = sum(value for value in late if value is not None) / len(late)
        print(f"{lr:<6} {2 / lr:<7.2f} {mean:<17.3f} {mean * lr / 2:<16.3f} {watch.phase.name}")
    print("written:", folder / "edge.html", f"({len(watch.html(folder / 'edge.html')) // 1024} KB)\n")


class FrozenGates(nn.Module):
    """A ReLU layer whose gates stay as one datum set them: the quadratic model of the catapult."""

    def __init__(self, width: int, x: Tensor, generator: torch.Generator) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.randn(width, x.shape[1], generator=generator, dtype=x.dtype))
        self.v = nn.Parameter(torch.randn(width, generator=generator, dtype=x.dtype))
        self.register_buffer("gates", (x @ self.u.detach().T >= 0).to(x.dtype)[0])

    def forward(self, x: Tensor) -> Tensor:
        return ((x @ self.u.T) * self.gates @ self.v / self.u.numel() ** 0.5)[:, None]


def frozen_gates(seed: int) -> tuple[nn.Module, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, 10, generator=generator, dtype=torch.float64)
    return FrozenGates(1000, x, generator), x, torch.zeros(1, 1, dtype=torch.float64)


def real_network(seed: int) -> tuple[nn.Module, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(8, n, generator=generator, dtype=torch.float64) for n in (10, 1))
    spec = th.Mlp(1, "tanh", 1.0)
    return network(spec, 10, 1, width=512, generator=generator, dtype=torch.float64), x, y


def relu_datum(seed: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A real ReLU network on one datum whose target is 0: here death looks like success."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, 10, generator=generator, dtype=torch.float64)
    net = network(th.Mlp(1, "relu", 2.0), 10, 1, width=1000, generator=generator, dtype=torch.float64)
    return net, x, torch.zeros(1, 1, dtype=torch.float64)


def phases() -> None:
    """Steps of 1, 3 and 6 over the initial curvature: lazy, catapult, divergent or dead."""
    print("model               lr x curvature   loss, start   peak       end        phase")
    for name, make in (("frozen gates", frozen_gates), ("tanh network", real_network), ("ReLU, one datum", relu_datum)):
        for product in (1, 3, 6):
            model, x, y = make(0)
            start = th.read("sharpness", model, data=(x, y), loss=half_square, lr=1.0)[0].measured
            watch = trained(model, x, y, lr=product / start, steps=120, every=4)
            losses = [record.facts["loss"] for record in watch.records]
            print(
                f"{name:<19} {product:<16} {losses[0]:<13.3g} {max(losses):<10.3g} {losses[-1]:<10.3g} {watch.phase.name}"
            )
    print(f"\nthe last one: {watch.phase.reason}")


if __name__ == "__main__":
    at_the_edge(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    phases()
