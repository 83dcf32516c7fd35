r"""At a zero fixed point the squared norm dies as $c/l$ when the activation is smooth at 0, as $c/l^2$ when it is not."""

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, conditional_chains, elementwise
from theodolite.theory.propagation import critical_decay

WIDTH, NETS, LAYERS = 8192, 4, 8
START = 200.0
r"""$K^{-1/p}$ at the input. The next terms of the variance map change its growth a layer by 0.8 K for tanh, by
$0.5\sqrt K$ for ELU and by $3\sqrt K$ for softsign, whose c is sixteen times smaller: 1.5 % of it."""


def predict(activation: str, power: int) -> float:
    decay = critical_decay(activation)
    return decay.coefficient ** (-1 / decay.exponent) if decay.exponent == power else 0.0


def measure(activation: str, power: int, *, generator: torch.Generator, instead: str | None = None) -> float:
    """Held against a linear network of the same noise, which keeps the norm in the mean."""
    networks = [
        Ensemble(elementwise(name), (WIDTH,) * LAYERS, weight_variance=1.0)
        for name in (instead or activation, "identity")
    ]
    first = torch.full((1, 1), START**-power, dtype=torch.float64)
    bent, straight = conditional_chains(networks, [first, first], nets=NETS, generator=generator)
    kept = float(bent[:, -1].mean() / straight[:, -1].mean())
    return START * (kept ** (-1 / power) - 1) / LAYERS


law = Law(
    claim="The critical variance map bends as K - a K^2 for tanh, which gives decay as 1/(a l), and as K - b K^(3/2) for "
    "ELU, whose second derivative jumps at 0, which gives 4/(b l)^2.",
    formula=r"\left(K^{(l)}\right)^{-1/p}=\left(K^{(1)}\right)^{-1/p}+c^{-1/p}(l-1)+\dots,\qquad "
    r"K^{(l)}\to\frac{1}{al}\;(\tanh,\sin),\qquad\frac{4}{(bl)^2}\;(\mathrm{ELU},\mathrm{softsign})",
    assumes={"a second derivative that jumps at 0, for 1/l^2": {"instead": "tanh"}},
    source="roberts2022, section 5.3.3",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "tanh", "power": 1},
        {"activation": "sin", "power": 1},
        {"activation": "elu", "power": 2},
        {"activation": "softsign", "power": 2},
    ),
    tolerance=0.04,  # 1.5 % of the next terms above, and what noise leaves of 8 readings: 0.5 %
    quantity="what a layer adds to the norm's inverse, or to the root of it",
)
