r"""At one input the gates of a random ReLU network are independent fair coins: any k are on with chance $2^{-k}$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, drawn_gradients

NETS = 4000


def measure(widths: tuple[int, ...], *, generator: torch.Generator, mean: float = 0.0, second: bool = False) -> Tensor:
    ensemble = Ensemble(torch.relu, widths, weight_variance=2.0, mean=mean)
    x = torch.tensor([[1.0, 0.5, -1.0], [1.0, 0.4, -0.7]])
    _, hidden = drawn_gradients(ensemble, x, nets=NETS, generator=generator)
    on = torch.stack(
        [z[:, 0, 0] > 0 for z in hidden[:-1]] + [z[:, int(second), int(not second)] > 0 for z in hidden[:-1]]
    )
    alive = torch.stack([(z[:, 0] > 0).any(1) for z in hidden[:-1]]).all(0)  # a dead layer switches all behind it off
    return on.all(0)[alive].double()


law = Law(
    claim="With symmetric weights every unit of a ReLU network is on with chance one half at a given input, independently of "
    "all others in its own and in other layers. Of two inputs this is false: their gates go together.",
    formula=r"P(\xi_1=\dots=\xi_k=1)=2^{-k}",
    assumes={"weights symmetric about zero": {"mean": 0.079}, "one input": {"second": True}},
    source="hanin2018",
    predict=lambda widths: 2.0 ** -(2 * len(widths)),
    measure=measure,
    cases=({"widths": (12,)}, {"widths": (12, 12)}, {"widths": (12, 16, 12)}),
    # 8 x 4000 networks know a share of 1/16 to 2.2 %, with some ten standard errors; leaving out networks with a dead layer of
    # 12 units shifts it by 2^-12 at most
    tolerance=0.22,
    resolution=1.3,
    quantity="share of networks with two chosen units of every layer on",
)
