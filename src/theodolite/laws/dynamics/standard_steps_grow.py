r"""In the standard parametrization a step changes wide hidden layers more: as $\sqrt n$ of SGD, as $n$ of Adam."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import first_step
from theodolite.theory.dynamics import layer_scaling

NETS = {"sgd": 160, "adam": 48}
STANDARD = {"multiplier": (0, 0, 0), "initial": (0, -0.5, -0.5), "lr": (0, 0, 0)}
TRANSFERRED = {"sgd": (1, 0, -1), "adam": (0, -1, -1)}
CASES = tuple((rule, layer) for rule in NETS for layer in ("input", "hidden", "output"))


def measure(rule: str, layer: str, width: int, *, generator: torch.Generator, way: str = "standard") -> Tensor:
    scales = dict(STANDARD)
    if way == "transferred":
        scales = {**STANDARD, "initial": (0, -0.5, -1), "lr": TRANSFERRED[rule]}
    return first_step(width, rule=rule, scales=scales, nets=NETS[rule], generator=generator)[layer][0]


law = Law(
    claim="With weights of variance 1/fan-in and one step size for all layers, a step of SGD changes what an input layer says by "
    "1/sqrt n, a hidden one by sqrt n and the output by n; a step of Adam by 1, n and n. So the best step size falls with the "
    "width.",
    formula=r"\Delta h_{in},\Delta h_{hid},\Delta f\sim n^{-1/2},n^{1/2},n\;(SGD);\quad 1,n,n\;(Adam)",
    assumes={"the standard parametrization": {"way": "transferred"}},
    source="yang2021, section 3; yang2022",
    # 160 networks a width leave 0.03 to a slope over a factor 8; corrections of relative order 1/sqrt n bend it by up to 0.05
    predict=lambda rule, layer: Band.around(layer_scaling(layer, rule=rule).change, abs=0.15),
    measure=measure,
    cases=tuple({"rule": r, "layer": k, "width": n} for r, k in CASES for n in (24, 40, 68, 114, 192)),
    full=tuple({"rule": r, "layer": k, "width": 1024} for r, k in CASES),
    quantity="a layer's own change",
    exponent="width",
    repeats=1,
    resolution=1.4,  # half an exponent of 1/2 is seen; the band of 0.15 is a third of it
)
