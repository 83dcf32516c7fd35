r"""How initial sizes and step sizes must change with width and depth so that every layer goes on learning at the same pace.

A matrix from $n_{in}$ to $n_{out}$ units keeps entries of order one, and changes them by order one in a step, if its own size and
that of its update are $\sqrt{n_{out}/n_{in}}$ in spectral norm. A gradient is a sum of few products $\delta x^T$ with $|x|^2\sim
n_{in}$ and $|\delta|^2\sim1/n_{out}$, and so of spectral norm $\sqrt{n_{in}/n_{out}}$: a step of descent must be $\propto
n_{out}/n_{in}$. A step of fixed size in each entry (Adam, sign) has $\Delta Wx\sim n_{in}$ in each coordinate: $\propto1/n_{in}$.
An orthogonal step (Muon) has spectral norm one: $\propto\sqrt{n_{out}/n_{in}}$. Derived step by step in docs/transfer.md.
"""

import math
from dataclasses import dataclass
from typing import Literal

from theodolite.core.checks import InputError, positive

StepRule = Literal["sgd", "adam", "orthogonal"]
"""How an optimizer makes a step of a gradient: in proportion to it, of a size of its own in each entry, or orthogonal."""
TensorKind = Literal["input", "hidden", "output", "vector", "embedding", "fixed"]
Parametrization = Literal["standard", "kernel", "transferred"]


def tensor_kind(output_growth: float, input_growth: float) -> TensorKind:
    """What a matrix is by which of its sizes grow with the width.

    >>> tensor_kind(4, 1), tensor_kind(4, 4), tensor_kind(1, 4), tensor_kind(1, 1)
    ('input', 'hidden', 'output', 'fixed')
    """
    if input_growth == 1:
        return "fixed" if output_growth == 1 else "input"
    return "output" if output_growth == 1 else "hidden"


def initial_factor(output_growth: float, input_growth: float) -> float:
    r"""By how much the initial standard deviation changes when sizes grow: $g_{in}^{-1/2}\min(1,\sqrt{g_{out}/g_{in}})$.

    Source: yang2023spectral, section 3; yang2022, table 8.

    >>> initial_factor(4, 1), initial_factor(4, 4), initial_factor(1, 4)
    (1.0, 0.5, 0.25)
    """
    positive(output_growth=output_growth, input_growth=input_growth)
    return min(1.0, math.sqrt(output_growth / input_growth)) / math.sqrt(input_growth)


def step_factor(output_growth: float, input_growth: float, *, rule: StepRule) -> float:
    r"""By how much the step size of a matrix changes: SGD $g_{out}/g_{in}$, Adam $1/g_{in}$, orthogonal $\sqrt{g_{out}/g_{in}}$.

    A vector has one input that does not grow. Source: yang2023spectral; yang2022, table 8.

    >>> [step_factor(4, 1, rule="sgd"), step_factor(4, 4, rule="adam"), step_factor(1, 4, rule="orthogonal")]
    [4.0, 0.25, 0.5]
    """
    positive(output_growth=output_growth, input_growth=input_growth)
    if rule == "sgd":
        return output_growth / input_growth
    if rule == "adam":
        return 1 / input_growth
    if rule == "orthogonal":
        return math.sqrt(output_growth / input_growth)
    raise InputError(f"expected rule to be sgd, adam (also for sign steps) or orthogonal, got {rule!r}")


def attention_factor(head_growth: float) -> float:
    r"""What queries are multiplied with beside $1/\sqrt d$ so that scores are $q\cdot k/d$: once trained, $q\cdot k\sim d$.

    >>> attention_factor(4)
    0.5
    """
    positive(head_growth=head_growth)
    return 1 / math.sqrt(head_growth)


def branch_factor(depth_growth: float, *, power: float = 1.0) -> float:
    r"""What residual branches are multiplied with when their number grows: $g^{-\alpha}$.

    $\alpha=1$ leaves each branch, and so each layer, as nonlinear as it is (the limit is a differential equation);
    $\alpha=1/2$ keeps the random part of the start (a stochastic one), and single branches become linear in their change.
    Source: bordelon2024; yang2024; dey2025.
    """
    positive(depth_growth=depth_growth)
    return float(depth_growth**-power)


def branch_step_factor(depth_growth: float, *, rule: StepRule, power: float = 1.0) -> float:
    r"""By how much step sizes inside residual branches change: $L$ changes of $g^{-\alpha}\Delta Wx$ must add up to order one.

    So $\Delta Wx\sim g^{\alpha-1}$, Adam's factor; a gradient has a $g^{-\alpha}$ of its own, and SGD's is $g^{2\alpha-1}$.

    >>> branch_step_factor(4, rule="adam"), branch_step_factor(4, rule="sgd"), branch_step_factor(4, rule="adam", power=0.5)
    (1.0, 4.0, 0.5)
    """
    positive(depth_growth=depth_growth)
    return float(depth_growth ** (2 * power - 1 if rule == "sgd" else power - 1))


@dataclass(frozen=True)
class LayerScaling:
    r"""Exponents in the width n: of the size of a layer's outputs at the start over that of its inputs, and of its own change.

    The own change is what its new weights make of its inputs less what its old ones do, $(W_t-W_0)x_t$, in each coordinate.
    """

    gain: float
    change: float


def layer_scaling(kind: str, *, rule: str = "sgd", parametrization: Parametrization = "standard") -> LayerScaling:
    r"""How a layer's outputs and its own change grow with the width at fixed step size.

    With $h=n^{-a}Wx$, $W_{ij}\sim n^{-b}$, a step $\propto n^{-c}$ and derivatives $\partial L/\partial h\sim n^{-g}$ the
    gain is $\frac{[in]}2-a-b$, and the change of SGD $[in]-2a-c-g$, of Adam $[in]-a-c$, of an orthogonal step
    $\frac{[in]-[out]}2-a-c$; [in] is 1 where the inputs grow. The output layer's g is 0, all others have its a + b: hidden
    layers hand on a derivative as large as they get it. Standard: $a=0$, $b=[in]/2$, $c=0$. Kernel: $a=[in]/2$, $b=c=0$.
    Transferred: $a=0$ and factors as in `initial_factor` and `step_factor`. Source: yang2021, section 3.

    >>> layer_scaling("hidden", rule="adam").change, layer_scaling("input", rule="sgd").change
    (1.0, -0.5)
    >>> layer_scaling("output", rule="sgd", parametrization="transferred")
    LayerScaling(gain=-0.5, change=0.0)
    """
    grows_in = float(kind in ("hidden", "output"))
    grows_out = float(kind in ("input", "hidden", "vector", "embedding"))
    if parametrization == "standard":
        a, b, c, outer = 0.0, grows_in / 2, 0.0, 0.5
    elif parametrization == "kernel":
        a, b, c, outer = grows_in / 2, 0.0, 0.0, 0.5
    else:
        a, b, outer = 0.0, grows_in / 2 + (0.5 if kind == "output" else 0.0), 1.0
        c = {"sgd": grows_in - grows_out, "adam": grows_in, "orthogonal": (grows_in - grows_out) / 2}[rule]
    g = 0.0 if kind in ("output", "fixed") else outer
    change = {"sgd": grows_in - 2 * a - g, "adam": grows_in - a, "orthogonal": (grows_in - grows_out) / 2 - a}[rule]
    return LayerScaling(gain=grows_in / 2 - a - b, change=change - c)
