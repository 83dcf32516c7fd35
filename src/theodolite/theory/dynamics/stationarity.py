r"""What stationary SGD must balance: the pull of the loss against the noise of its batches, for steps of any size.

Where a stationary law with second moments exists, $\langle\nabla L\rangle=0$ and
$\langle\theta\cdot\nabla L\rangle=\frac{\eta}{2}\langle|\nabla L^B|^2\rangle$: the mean square of $\theta$ neither grows nor
shrinks. No small step is assumed.
"""

from typing import Literal

from theodolite.core.checks import InputError, at_least, not_negative, within

Sampler = Literal["without replacement", "with replacement", "independent"]


def batch_scatter(
    scatter: float,
    squared_mean: float = 0.0,
    *,
    batch_size: int,
    samples: int | None = None,
    sampler: Sampler = "without replacement",
) -> float:
    r"""$\mathrm{tr}\,\mathrm{Cov}\,\nabla L^B$ of a batch of B of m samples, from those of single samples.

    ``scatter`` is $\mathrm{tr}\,\Sigma=\frac{1}{m-1}\sum|g_i-\bar g|^2$, ``squared_mean`` is $|\bar g|^2$. Without replacement
    $\frac{1}{B}(1-\frac{B}{m})\mathrm{tr}\,\Sigma$; with replacement $\frac{1}{B}\frac{m-1}{m}\mathrm{tr}\,\Sigma$; each sample
    *independent* with probability B/m, divided by B: $\frac{1}{B}(1-\frac{B}{m})\frac{1}{m}\sum|g_i|^2$, which is not centered.
    Without ``samples`` m is infinite.

    >>> batch_scatter(2.0, batch_size=2, samples=4), batch_scatter(2.0, batch_size=2, samples=4, sampler="with replacement")
    (0.5, 0.75)
    """
    not_negative(scatter=scatter)
    at_least(1, batch_size=batch_size, samples=samples)
    if samples is not None and batch_size > samples:
        raise InputError(f"expected a batch of 1 to {samples} samples, got {batch_size}")
    rest = 1.0 if samples is None else 1 - batch_size / samples
    part = 1.0 if samples is None else (samples - 1) / samples
    if sampler == "without replacement":
        return rest * scatter / batch_size
    if sampler == "with replacement":
        return part * scatter / batch_size
    if sampler == "independent":
        return rest * (part * scatter + squared_mean) / batch_size
    raise InputError(f"expected a sampler without replacement, with replacement or independent, got {sampler!r}")


def dissipation(mean_square: float, *, lr: float, momentum: float = 0.0) -> float:
    r"""$\frac{\eta(1+\beta)}{2}\langle|b|^2\rangle$, which $\langle\theta\cdot\nabla L\rangle$ equals where SGD is stationary.

    b is the update over $-\eta$: the batch gradient, or with momentum $b'=\beta b+\nabla L^B$. From $\langle|\theta'|^2\rangle=
    \langle|\theta|^2\rangle$ and $\langle\theta'\cdot b'\rangle=\langle\theta\cdot b\rangle$. Source: yaida2019.

    >>> dissipation(4.0, lr=0.5), dissipation(4.0, lr=0.5, momentum=0.5)
    (1.0, 1.5)
    """
    not_negative(mean_square=mean_square, lr=lr)
    within(0, 1, momentum=momentum)
    return 0.5 * lr * (1 + momentum) * mean_square
