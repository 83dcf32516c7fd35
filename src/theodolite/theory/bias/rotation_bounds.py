r"""What a learner that treats all directions alike must lose on a sparse target, and what multiplicative ones need not.

d features, k examples seen of d, the target one feature. Losses are averages over all d examples, of which an invariant
learner can at best know the k seen.
"""

import math

from scipy.optimize import brentq

from theodolite.core.checks import at_least, one_of, positive

MARGIN_LOSSES = {
    "square": 1.0,
    "logistic": math.log(2),
    "hinge": 1.0,
    "squared hinge": 1.0,
    "exponential": 1.0,
    "absolute": 1.0,
}
r"""$\min_p\tfrac12(L(1,p)+L(-1,p))$: the loss of the best guess at a label that is a fair coin."""


def hadamard_lower_bound(seen: int, dimension: int, *, loss: str = "square") -> float:
    r"""The least mean loss of any rotation-invariant learner on sign-flipped Hadamard rows: $c\,(1-k/d)$.

    The rows are orthogonal, so turning the unseen ones onto their negatives leaves what was seen as it is: an invariant
    learner is at a loss whether an unseen label is 1 or -1. Source: warmuth2021.

    >>> hadamard_lower_bound(32, 128)
    0.75
    """
    one_of(MARGIN_LOSSES, loss=loss)
    return MARGIN_LOSSES[loss] * unseen_share(seen, dimension)


def unflipped_lower_bound(seen: int, dimension: int) -> float:
    r"""The published bound where labels are not flipped: $1-k/(d-1)$.

    It is a little lower, because the labels of all d rows then sum to zero, and the unseen ones can be guessed by minus the
    sum of the seen ones over their number; which attains it. Source: warmuth2021.

    >>> unflipped_lower_bound(64, 129)
    0.5
    """
    at_least(0, seen=seen, dimension=dimension)
    return unseen_share(seen, dimension - 1)


def gaussian_lower_bound(seen: int, dimension: int, *, fresh: bool = False) -> float:
    r"""The least mean square of any rotation-invariant learner on Gaussian inputs with target $x_1$.

    $(1-k/d)^2$ over d examples of which k are seen, $1-k/d$ on fresh examples. Source: warmuth2021.

    >>> gaussian_lower_bound(64, 128), gaussian_lower_bound(64, 128, fresh=True)
    (0.25, 0.5)
    """
    at_least(0, seen=seen, dimension=dimension)
    share = unseen_share(seen, dimension)
    return share if fresh else share**2


def random_sign_least_squares_loss(seen: int, dimension: int, *, rank: float | None = None) -> float:
    r"""The mean loss of least squares on d random rows of signs, k seen: $(1-k/d)(1-E\,\mathrm{rank}(X_k)/d)$, exact.

    The columns are exchangeable, so the projection off the span of what was seen has the same mean at every place of its
    diagonal, its trace over d.

    >>> random_sign_least_squares_loss(64, 128)
    0.25
    """
    at_least(0, seen=seen, dimension=dimension)
    return unseen_share(seen, dimension) * (1 - (seen if rank is None else rank) / dimension)


def multiplicative_loss(seen: int, dimension: int) -> float:
    r"""The order of the loss of exponentiated gradient on one feature of d: $\log d/k$.

    Source: kivinen1997, whose online bound is a constant times the squared scale times log d, spread over k examples.

    >>> round(multiplicative_loss(16, 128), 4)
    0.3033
    """
    at_least(1, seen=seen, dimension=dimension)
    return math.log(dimension) / seen


def multiplicative_safe_lr(largest_input: float, target_norm: float, dimension: int) -> float:
    r"""A rate at which exponentiated gradient approaches the target at every step, whatever the examples: $1/(X^2UW_d)$.

    For the loss $\tfrac12(x\cdot w-y)^2$, labels $y=x\cdot u$, inputs $|x_i|\le X$ of any sign, $|u|_1=U$ and equal weights
    U/d at the start. One step changes $D(u,w)=\sum_iu_i\log(u_i/w_i)-u_i+w_i$ by at most
    $-\eta r^2+|w|_1(e^z-1-z)$, with $r=x\cdot w-y$ and $z=\eta|r|X$. While D has not risen $|w|_1\le UW_d$ (`largest_norm`);
    then at this rate $z\le1+1/W_d<1.4$, where $e^z-1-z\le z^2$, and D falls again. A batch of averaged gradients is safe
    too, because the exponential is convex. Larger rates, such as $2/(3X^2U)$ without $W_d$, diverge on signs in 128
    dimensions. Source: kivinen1997 (the measure of progress); the rate is derived here.

    >>> round(multiplicative_safe_lr(2.0, 3.0, 128) * 12 * largest_norm(128), 9)
    1.0
    """
    positive(largest_input=largest_input, target_norm=target_norm)
    at_least(0, dimension=dimension)
    return 1 / (largest_input**2 * target_norm * largest_norm(dimension))


def largest_norm(dimension: int) -> float:
    r"""The most that $|w|_1/|u|_1$ can be while the relative entropy to u is below its start, $|u|_1\log d$.

    The larger root of $W-1-\log W=\log d$.

    >>> W = largest_norm(128)
    >>> round(W - 1 - math.log(W) - math.log(128), 9)
    0.0
    """
    at_least(2, dimension=dimension)  # with one feature there is nothing to select
    top = math.log(dimension)
    return float(brentq(lambda W: W - 1 - math.log(W) - top, 1.0, 4.0 + 2 * top))


def unseen_share(seen: int, dimension: int) -> float:
    """The share of the examples that was not seen, at least zero.

    >>> unseen_share(96, 128), unseen_share(200, 128)
    (0.25, 0.0)
    """
    at_least(0, seen=seen)
    at_least(1, dimension=dimension)
    return max(0.0, 1 - seen / dimension)
