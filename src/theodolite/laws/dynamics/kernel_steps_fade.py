r"""In the kernel parametrization a step of SGD changes hidden layers by $n^{-1/2}$: wide networks learn no features."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import first_step
from theodolite.theory.dynamics import layer_scaling

NETS = 64
KERNEL = {"multiplier": (0, -0.5, -0.5), "initial": (0, 0, 0), "lr": (0, 0, 0)}


def measure(layer: str, width: int, *, generator: torch.Generator, lr: tuple[float, ...] = (0, 0, 0)) -> Tensor:
    return first_step(width, rule="sgd", scales={**KERNEL, "lr": lr}, nets=NETS, generator=generator)[layer][0]


law = Law(
    claim="With weights of variance 1, products over sqrt n and one step size, a step of SGD changes the output by order one and "
    "every hidden layer by 1/sqrt n: the features of a wide network stay those that it began with.",
    formula=r"\Delta f\sim1,\quad\Delta h_{in},\Delta h_{hid}\sim n^{-1/2}",
    assumes={"a step size that does not grow with the width": {"lr": (0.5, 0.5, 0)}},
    source="jacot2018; yang2021, section 3",
    predict=lambda layer: Band.around(layer_scaling(layer, rule="sgd", parametrization="kernel").change, abs=0.15),
    measure=measure,
    cases=tuple({"layer": k, "width": n} for k in ("input", "hidden", "output") for n in (24, 40, 68, 114, 192)),
    quantity="a layer's own change",
    exponent="width",
    repeats=1,
    resolution=1.4,  # half an exponent of 1/2 is seen; the band of 0.15 is a third of it
)
