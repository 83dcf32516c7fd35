r"""Steps $\propto n_{out}/n_{in}$ of SGD, $1/n_{in}$ of Adam, $\sqrt{n_{out}/n_{in}}$ of Muon change layers alike."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import first_step
from theodolite.theory.dynamics import layer_scaling

NETS = {"sgd": 160, "adam": 48, "orthogonal": 8}
INITIAL = (0, -0.5, -1)
LR = {"sgd": (1, 0, -1), "adam": (0, -1, -1), "orthogonal": (0.5, 0, -0.5)}
CASES = tuple((rule, layer) for rule in LR for layer in ("input", "hidden", "output"))


def predict(rule: str, layer: str) -> Band:
    # 160 networks a width leave 0.02 to a slope; corrections of relative order 1/sqrt n bend it by up to 0.05
    return Band.around(layer_scaling(layer, rule=rule, parametrization="transferred").change, abs=0.15)


def measure(rule: str, layer: str, width: int, *, generator: torch.Generator, way: str = "transferred") -> Tensor:
    scales = {"multiplier": (0, 0, 0), "initial": INITIAL, "lr": LR[rule]}
    if way == "one size for all":
        scales = {"multiplier": (0, 0, 0), "initial": (0, -0.5, -0.5), "lr": (0, 0, 0)}
    return first_step(width, rule=rule, scales=scales, nets=NETS[rule], generator=generator)[layer][0]


law = Law(
    claim="Output weights of spread 1/n and step sizes of n_out/n_in (SGD), 1/n_in (Adam, sign steps) or sqrt(n_out/n_in) "
    "(orthogonal steps): then a step changes what each layer says by the same amount at every width, and the best step size "
    "of a narrow network is that of a wide one.",
    formula=r"\eta\propto\frac{n_{out}}{n_{in}},\;\frac1{n_{in}},\;\sqrt{\frac{n_{out}}{n_{in}}}\;\Rightarrow\;\Delta h\sim1",
    assumes={"step sizes that follow the width": {"way": "one size for all"}},
    source="yang2022, table 8; yang2023spectral",
    predict=predict,
    measure=measure,
    cases=tuple({"rule": r, "layer": k, "width": n} for r, k in CASES for n in (24, 40, 68, 114, 192)),
    full=tuple({"rule": r, "layer": k, "width": 512} for r, k in CASES),
    quantity="a layer's own change",
    exponent="width",
    repeats=1,
)
