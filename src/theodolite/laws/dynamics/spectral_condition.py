r"""Steps that change features alike at any width have spectral norm $\sqrt{n_{out}/n_{in}}$, whatever optimizer makes them."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.experiments import first_step

NETS = {"sgd": 160, "adam": 24, "orthogonal": 6}
LR = {"sgd": (1, 0, -1), "adam": (0, -1, -1), "orthogonal": (0.5, 0, -0.5)}
CASES = tuple((rule, layer) for rule in LR for layer in ("input", "hidden", "output"))


def by_frobenius(rule: str, layer: str) -> Band:
    """Frobenius norms of order one in each unit, as if an update were as random as the first weights."""
    return Band.around({"input": 0.5, "hidden": 0.5, "output": 0.0}[layer], abs=0.12)


def measure(rule: str, layer: str, width: int, *, generator: torch.Generator, norm: str = "spectral") -> Tensor:
    scales = {"multiplier": (0, 0, 0), "initial": (0, -0.5, -1), "lr": LR[rule]}
    if norm == "one step for all":
        scales["lr"] = (0, 0, 0)
    step = first_step(width, rule=rule, scales=scales, nets=NETS[rule], generator=generator)[layer][1]
    return torch.linalg.matrix_norm(step, ord=2).double()


law = Law(
    claim="A step whose spectral norm is sqrt(n_out/n_in) changes what a layer says by order one at any width: gradients are "
    "aligned with the layer's inputs, so that the spectral norm, not the size of the entries, says what a step does.",
    formula=r"\|\Delta W\|_*\propto\sqrt{n_{out}/n_{in}}",
    assumes={"step sizes that transfer": {"norm": "one step for all"}},
    source="yang2023spectral, section 2",
    # the exponent of sqrt(n_out / n_in), by which of them is the width
    predict=lambda rule, layer: Band.around({"input": 0.5, "hidden": 0.0, "output": -0.5}[layer], abs=0.12),
    measure=measure,
    cases=tuple({"rule": r, "layer": k, "width": n} for r, k in CASES for n in (24, 40, 68, 114, 192)),
    quantity="spectral norm of a step",
    exponent="width",
    repeats=1,
    resolution=1.4,  # a fifth of an exponent of 1/2 is less than the band of 0.12 allows for narrow networks
    erratum="Often the entries of an update are asked to be as large as those of the weights; for hidden layers of width n that "
    "allows steps sqrt n times too large.",
    refuted=by_frobenius,
)
