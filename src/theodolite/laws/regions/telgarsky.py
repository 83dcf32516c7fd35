r"""Depth folds: the tent map applied L times has $2^L$ linear pieces on [0, 1], with some 3L units."""

from torch import nn

from theodolite.construct.regions import sawtooth
from theodolite.core.law import Law
from theodolite.measure.regions import regions_on_line
from theodolite.theory.regions import sawtooth_pieces


def measure(folds: int, whole: bool, *, height: float = 1.0) -> int:
    model = sawtooth(folds)
    for layer in model:
        if isinstance(layer, nn.Linear) and layer.out_features == 1:
            layer.weight.data *= height
    return regions_on_line(nn.Sequential(*model, nn.ReLU()), [0.0], [1.0], whole=whole).pieces


law = Law(
    claim="A ReLU network of constant width and growing depth can have exponentially many pieces: the tent map folded L "
    "times has 2^(L-1) teeth, 2^L pieces on [0, 1] and 2^L + 2 on the line.",
    formula=r"f(x)=\sigma(2\sigma(x)-4\sigma(x-\tfrac12)),\quad\#\text{pieces of }f^{\circ L}=2^L",
    assumes={"tents that reach from 0 to 1": {"height": 0.9901}},
    source="telgarsky2016",
    predict=lambda folds, whole: sawtooth_pieces(folds, whole=whole),
    measure=measure,
    cases=(*({"folds": folds, "whole": False} for folds in (1, 2, 4, 8)), {"folds": 3, "whole": True}),
    full=({"folds": 12, "whole": False},),
    tolerance=1e-9,  # an identity of integers
    quantity="linear pieces",
    erratum="Lecture notes print L spikes and 2 x 2^L pieces. The teeth double with each fold: 2^(L-1) of them, of two "
    "pieces each.",
    refuted=lambda folds, whole: 2 * 2.0**folds,
)
