r"""The Gauss-Newton matrix has rank $mC$ for squares and $m(C-1)$ for cross-entropy, not the number of samples m."""

from typing import Literal

import torch
from torch.nn.functional import cross_entropy, mse_loss

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.measure.curvature import gauss_newton, hessian
from theodolite.theory import Mlp
from theodolite.theory.curvature import gauss_newton_rank

OUTPUTS, INPUTS, WIDTH = 4, 5, 7
PARAMETERS = (INPUTS + 1) * WIDTH + (WIDTH + 1) * OUTPUTS


def predict(samples: int, loss: Literal["mse", "cross-entropy"]) -> float:
    return gauss_newton_rank(samples=samples, outputs=OUTPUTS, parameter_count=PARAMETERS, loss=loss)


def measure(
    samples: int, loss: str, *, generator: torch.Generator, repeated: bool = False, whole: bool = False
) -> float:
    spec = Mlp(widths=(WIDTH,), activation="tanh", weight_variance=1.5, bias_variance=0.1)
    model = network(spec, INPUTS, OUTPUTS, generator=generator, dtype=torch.float64)
    x = torch.randn(1 if repeated else samples, INPUTS, generator=generator, dtype=torch.float64).expand(samples, -1)
    y = torch.randint(0, OUTPUTS, (samples,), generator=generator) if loss == "cross-entropy" else x[:, :OUTPUTS]
    function = cross_entropy if loss == "cross-entropy" else mse_loss
    matrix = (hessian if whole else gauss_newton)(model, function, (x, y)).dense()
    values = torch.linalg.eigvalsh(matrix).abs()
    return float((values > 1e-11 * values.max()).sum())


law = Law(
    claim="Each sample adds as many directions to the Gauss-Newton matrix as it has free outputs: C with squares, C-1 with "
    "softmax, which does not see a constant added to all logits. The whole Hessian has more still.",
    formula=r"\mathrm{rank}\,G=\min(P,mC)\;(\mathrm{squares}),\quad\min(P,m(C-1))\;(\mathrm{softmax})",
    assumes={"different inputs": {"repeated": True}, "the Gauss-Newton part, not the whole Hessian": {"whole": True}},
    source="sagun2017",
    predict=predict,
    measure=measure,
    cases=tuple({"samples": m, "loss": loss} for loss in ("mse", "cross-entropy") for m in (1, 3, 5)),
    full=({"samples": 40, "loss": "mse"},),
    repeats=3,
    quantity="rank of the Gauss-Newton matrix",
    along="samples",
    erratum="The rank of the Hessian is sometimes said to be at most the number of samples or of parameters; with C outputs "
    "already its Gauss-Newton part has up to C times as many directions as there are samples.",
    refuted=lambda samples, loss: min(samples, PARAMETERS),
)
