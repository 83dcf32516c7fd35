r"""The edge of stability of every optimizer: where its linearized update stops shrinking an error, and what a last update says.

Near a minimum an optimizer with a slowly moving diagonal preconditioner P makes $x_{t+1}=(1-\eta\omega)x_t-\eta P^{-1}(Fg)_t$,
with gradients $g=Hx$, a linear filter F of them (momentum) and decoupled weight decay $\omega$. Along an eigenvector of
$P^{-1}H$ with curvature $\lambda$ the root that first leaves the unit circle is -1, so that the edge is
$\lambda=(2-\eta\omega)/(\eta F(-1))$.
"""

import math
from dataclasses import dataclass
from typing import Literal

from theodolite.core.checks import InputError, not_negative

MomentumKind = Literal["heavy-ball", "nesterov", "averaged", "sign"]
"""Momentum as SGD sums it, as Nesterov looks ahead, averaged as in Adam, or a step of fixed size in each coordinate."""


def update_edge(lr: float, *, momentum: float = 0.0, kind: MomentumKind = "heavy-ball", decay: float = 0.0) -> float:
    r"""The preconditioned curvature $\lambda_{\max}(P^{-1}H)$ at which an optimizer's updates stop being stable.

    Heavy ball: $F(-1)=1/(1+\beta)$ and the edge is $(2+2\beta)/\eta$. Nesterov: $F(-1)=(1+2\beta)/(1+\beta)$ and
    $(2+2\beta)/\eta(1+2\beta)$. Averaged, as in Adam: $F(-1)=(1-\beta)/(1+\beta)$ and $(2+2\beta)/\eta(1-\beta)$. Decoupled
    weight ``decay`` $\omega$ takes $2-\eta\omega$ for 2. A sign step has the same length whatever the curvature: no finite edge.
    P is the identity for descent, $\sqrt v+\epsilon$ for RMSprop, Adagrad and Adam, and $1/w$ for multiplicative updates.
    Source: cohen2021; cohen2022adaptive. Differs from the source: weight decay, and multiplicative and sign updates.

    >>> update_edge(0.5, momentum=0.5, kind="averaged"), update_edge(0.5, momentum=0.5, kind="nesterov")
    (12.0, 3.0)
    >>> update_edge(0.1, kind="sign")
    inf
    """
    if not lr > 0 or not 0 <= momentum < 1:
        raise InputError(f"expected a positive step and a momentum in [0, 1), got {lr} and {momentum}")
    if not 0 <= lr * decay < 2:
        raise InputError(f"expected lr x weight decay below 2, got {lr * decay}")
    if kind == "sign":
        return math.inf
    filtered = {
        "heavy-ball": 1 / (1 + momentum),
        "nesterov": (1 + 2 * momentum) / (1 + momentum),
        "averaged": (1 - momentum) / (1 + momentum),
    }[kind]
    return (2 - lr * decay) / (lr * filtered)


def sign_floor(curvatures: tuple[float, ...], *, lr: float) -> float:
    r"""The mean loss $\eta^2\sum\lambda_i/6$ where sign descent ends on a quadratic along its axes, whatever its step.

    Each coordinate ends in a cycle between $a$ and $a-\eta$; from starts that are spread evenly $a$ is uniform in $(0,\eta)$, and
    $E\lambda x^2/2=\lambda\eta^2/6$. No step is unstable; the floor grows as its square.

    >>> sign_floor((3.0,), lr=2.0)
    2.0
    """
    not_negative(lr=lr)
    return lr**2 * sum(curvatures) / 6


@dataclass(frozen=True)
class StepQuality:
    r"""What a last update did to the loss: ``ratio`` of the measured to the predicted change, and the curvature along it.

    On a quadratic the ratio is $1+\frac12u^THu/(g\cdot u)$: 1 for small steps, 1/2 for the best step along u, 0 where the loss
    is as before, and below 0 overshooting. ``best`` is the factor by which the best step along u is longer, $1/2(1-r)$;
    ``longest`` the one that leaves the loss as it was, $1/(1-r)$; infinite where nothing bends upwards. ``second_order`` is
    $u^THu$.
    """

    ratio: float
    second_order: float

    @property
    def best(self) -> float:
        """The factor of the best step along the same direction."""
        return self.longest / 2

    @property
    def longest(self) -> float:
        """The factor of the longest step along the same direction that does not raise the loss."""
        return 1 / (1 - self.ratio) if self.ratio < 1 else math.inf


def step_quality(predicted: float, measured: float) -> StepQuality:
    r"""What the change of the loss that the gradient predicts, $g\cdot u$, and the measured change say; exact for quadratics.

    Source: conn2000, section 6.1.

    >>> quality = step_quality(-2.0, -1.0)
    >>> quality.ratio, quality.second_order, quality.best
    (0.5, 2.0, 1.0)
    """
    ratio = measured / predicted if predicted else math.nan
    return StepQuality(ratio, 2 * (measured - predicted))
