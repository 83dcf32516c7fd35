r"""How large the parts of a loss Hessian can be: ranks of the Gauss-Newton matrix and of its class structure."""

from typing import Literal

from theodolite.core.checks import at_least


def gauss_newton_rank(
    *, samples: int, outputs: int, parameter_count: int, loss: Literal["mse", "cross-entropy"]
) -> int:
    r"""At most $\min(P,mC)$ for squares and $\min(P,m(C-1))$ for softmax cross-entropy, reached by generic networks.

    The softmax does not see a constant added to all logits, which takes one dimension off each sample.

    >>> gauss_newton_rank(samples=3, outputs=4, parameter_count=64, loss="cross-entropy")
    9
    """
    at_least(1, samples=samples, parameter_count=parameter_count)
    at_least(0, outputs=outputs)
    each = outputs if loss == "mse" else outputs - 1
    return min(parameter_count, samples * each)


def cross_class_rank(classes: int) -> int:
    r"""$C(C-1)$: the most directions that class, cross-class and equal-class parts of the Gauss-Newton matrix span.

    Of the $C^2$ means $g_{cc'}$ those with c' = c depend on the others: $\sum_{c'}w_{cc'}g_{cc'}=0$.
    Source: papyan2020traces.

    >>> cross_class_rank(10)
    90
    """
    at_least(1, classes=classes)
    return classes * (classes - 1)
