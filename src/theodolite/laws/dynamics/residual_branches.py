r"""Residual branches over $L^\alpha$ take steps $\propto L^{\alpha-1}$ of Adam and $L^{2\alpha-1}$ of SGD, at every depth $L$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import residual_step

NETS = 128
LR_POWERS = {("adam", 1.0): 0.0, ("adam", 0.5): -0.5, ("sgd", 1.0): 1.0, ("sgd", 0.5): 0.0}


def predict(what: str, power: float) -> Band:
    # at the start L random branches add up as their root; a step's L changes add up whole, and are to stay
    exponent = 0.5 - power if what == "start" else 0.0
    return Band.around(exponent, abs=0.15)


def measure(what: str, power: float, depth: int, *, generator: torch.Generator, scaled: bool = True) -> Tensor:
    rule = "sgd" if what == "change by sgd" else "adam"
    lr_power = LR_POWERS[rule, power]
    own = power if scaled else 0.0
    gone, moved = residual_step(depth, rule=rule, power=own, lr_power=lr_power, nets=NETS, generator=generator)
    return gone if what == "start" else moved


law = Law(
    claim="With residual branches multiplied by L^-a a network of L of them begins L^(1/2-a) away from its input, and "
    "steps of L^(a-1) (Adam) or L^(2a-1) (SGD) change what it says alike at every depth: a = 1 needs no other step for Adam.",
    formula=r"|x_L-x_0|\sim L^{1/2-\alpha},\quad\eta_{Adam}\propto L^{\alpha-1},\quad\eta_{SGD}\propto L^{2\alpha-1}",
    assumes={"branches multiplied by L^-a": {"scaled": False}},
    source="bordelon2024; yang2024; dey2025",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"what": what, "power": power, "depth": depth}
        for what in ("start", "change by adam", "change by sgd")
        for power in (1.0, 0.5)
        for depth in (4, 6, 8, 12, 16, 24)
    ),
    full=tuple(
        {"what": what, "power": power, "depth": 64}
        for what in ("start", "change by adam", "change by sgd")
        for power in (1.0, 0.5)
    ),
    quantity="distance",
    exponent="depth",
    repeats=1,
    resolution=1.4,  # of exponents of 1/2 the band of 0.15 is a third: depths from 4 on are far from infinite
)
