"""What a kernel predicts: ridge regression, Gaussian processes, and wide networks that are trained for a while."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.core.checks import InputError, as_tensor, at_least, has_values, not_negative, real_values, symmetric
from theodolite.theory.kernels._tiled_pairs import Kernels


@dataclass(frozen=True)
class Factor:
    r"""The Cholesky factor of $K+(\lambda+\mathrm{jitter})I$, and the jitter it took (0 where none was needed)."""

    lower: Tensor
    jitter: float

    def solve(self, y: Tensor) -> Tensor:
        """The solution for one or several right sides."""
        columns = y.reshape(len(y), -1)
        return torch.cholesky_solve(columns, self.lower).reshape(y.shape)

    @property
    def log_determinant(self) -> float:
        """The logarithm of the determinant."""
        return 2 * float(self.lower.diagonal().log().sum())


def cholesky_factor(kernel: Tensor, *, ridge: float = 0.0) -> Factor:
    r"""The factor of $K+\lambda I$ with as little jitter as it takes: 0, then machine precision times 10, 100, ...

    >>> cholesky_factor(torch.ones(2, 2, dtype=torch.float64)).jitter > 0
    True
    """
    not_negative(ridge=ridge)
    kernel = as_tensor(kernel)
    if not bool(torch.isfinite(kernel).all()):
        raise InputError("expected a finite kernel, got inf or nan in it; does the activation jump?")
    symmetric(kernel=kernel)
    if ridge == 0.0 and not bool(kernel.any()):
        raise InputError("expected a kernel that is not 0, or a ridge, got zeros and none; no function fits anything")
    size = float(kernel.diagonal().mean())
    matrix = kernel.clone()
    added = ridge
    matrix.diagonal().add_(ridge)
    step = 10 * torch.finfo(kernel.dtype).eps * max(size, 1e-300)
    jitter = 0.0
    for _ in range(12):
        lower, info = torch.linalg.cholesky_ex(matrix)
        if int(info) == 0:
            return Factor(lower, jitter)
        jitter = step if jitter == 0.0 else 10 * jitter
        matrix.diagonal().add_(ridge + jitter - added)
        added = ridge + jitter
    raise InputError(
        "expected a positive semidefinite kernel, got one with a large negative eigenvalue; is it symmetric?"
    )


@dataclass(frozen=True)
class Ridge:
    r"""The dual weights $a=(K+\lambda I)^{-1}y$ of $f(x)=k(x,X)a$, with the jitter that the solution took."""

    weights: Tensor
    jitter: float

    def predict(self, cross: Tensor) -> Tensor:
        r"""$f=k(x,X)a$, for the kernel of new points (rows) with the training points."""
        return cross @ self.weights


def kernel_ridge(kernel: Tensor, y: Tensor, *, ridge: float) -> Ridge:
    r"""Kernel ridge regression: the minimizer of $\frac12\sum_i(f(x_i)-y_i)^2+\frac\lambda2|f|_H^2$.

    ``y`` is (n,) or (n, outputs). With a mean in place of the sum use $n\lambda$. Source: rasmussen2006, section 6.2.

    >>> kernel_ridge(torch.eye(2), torch.tensor([2.0, 4.0]), ridge=1.0).weights
    tensor([1., 2.])
    """
    real_values(y=y)
    factor = cholesky_factor(kernel, ridge=ridge)
    return Ridge(factor.solve(as_tensor(y).to(factor.lower)), factor.jitter)


@dataclass(frozen=True)
class Posterior:
    """A Gaussian over predictions: mean (n,) or (n, outputs), and one covariance (n, n) that every output has."""

    mean: Tensor
    covariance: Tensor
    jitter: float = 0.0

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance, at least 0."""
        return self.covariance.diagonal().clamp(min=0.0)


def gp_posterior(kernel: Tensor, y: Tensor, *, cross: Tensor, prior: Tensor, noise_variance: float = 0.0) -> Posterior:
    r"""The posterior of a Gaussian process: $k(K+\lambda I)^{-1}y$ and $k_{**}-k(K+\lambda I)^{-1}k^T$.

    ``kernel`` is that of the training points, ``cross`` of new points (rows) with them, ``prior`` of the new points: the
    NNGP kernel gives the posterior of an infinitely wide Bayesian network. The mean is kernel ridge with
    $\lambda$ = ``noise_variance``. Source: rasmussen2006, algorithm 2.1.

    >>> one = torch.ones(1, 1)
    >>> gp_posterior(one, torch.ones(1), cross=one, prior=one, noise_variance=1.0).variance
    tensor([0.5000])
    """
    real_values(y=y, cross=cross, prior=prior)
    factor = cholesky_factor(kernel, ridge=noise_variance)
    cross, prior = as_tensor(cross).to(factor.lower), as_tensor(prior).to(factor.lower)
    half = torch.linalg.solve_triangular(factor.lower, cross.T, upper=False)  # (n, new)
    return Posterior(cross @ factor.solve(as_tensor(y).to(factor.lower)), prior - half.T @ half, factor.jitter)


def log_marginal_likelihood(kernel: Tensor, y: Tensor, *, noise_variance: float) -> float:
    r"""$-\frac12y^T(K+\lambda I)^{-1}y-\frac12\log\det(K+\lambda I)-\frac n2\log2\pi$, summed over outputs.

    To choose a depth, an activation or a noise variance without a validation set: the largest fits best.

    >>> round(log_marginal_likelihood(torch.eye(1), torch.zeros(1), noise_variance=0.0), 6)
    -0.918939
    """
    real_values(y=y)
    factor = cholesky_factor(kernel, ridge=noise_variance)
    has_values(y=y)
    targets = as_tensor(y).to(factor.lower).reshape(len(kernel), -1)
    fit = float((targets * factor.solve(targets)).sum())
    return -0.5 * (fit + targets.shape[1] * (factor.log_determinant + len(kernel) * math.log(2 * math.pi)))


def leave_one_out_residuals(kernel: Tensor, y: Tensor, *, ridge: float) -> Tensor:
    r"""$y_i-f_{-i}(x_i)=a_i/[(K+\lambda I)^{-1}]_{ii}$: every point's error when it alone is left out.

    Source: rasmussen2006, equation 5.12.

    >>> leave_one_out_residuals(torch.eye(2), torch.tensor([1.0, 2.0]), ridge=0.5)
    tensor([1., 2.])
    """
    real_values(y=y)
    factor = cholesky_factor(kernel, ridge=ridge)
    inverse = torch.cholesky_inverse(factor.lower).diagonal()
    weights = factor.solve(as_tensor(y).to(factor.lower))
    return weights / inverse.reshape(-1, *[1] * (weights.ndim - 1))


def rkhs_norm(kernel: Tensor, weights: Tensor) -> Tensor:
    r"""$|f|_H=\sqrt{a^TKa}$ of $f=\sum_ia_ik(x_i,\cdot)$; one number for each output.

    How rough a fit is: bounds on its error at new points grow with this norm.

    >>> rkhs_norm(torch.eye(2), torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    kernel, weights = as_tensor(kernel), as_tensor(weights)
    symmetric(kernel=kernel)
    return (weights * (kernel @ weights)).sum(0).clamp(min=0.0).sqrt()


def trained_prediction(
    kernels: Kernels, y: Tensor, *, time: float, cross: Kernels, prior: Kernels, lr: float = 1.0, discrete: bool = False
) -> Posterior:
    r"""What infinitely wide networks predict at time t of gradient flow on $\frac1{2m}\sum(f-y)^2$: mean and covariance.

    With $A=\Theta(x,X)\Theta^{-1}(I-e^{-\gamma\Theta t/m})$ the mean over random starts is $Ay$, the covariance
    $K(x,x)+AKA^T-AK(X,x)-K(x,X)A^T$. ``discrete`` takes $(I-\gamma\Theta/m)^t$, t steps of gradient descent; ``time``
    may be infinite. ``kernels``, ``cross`` (new points by training points) and ``prior`` hold both kernels.
    Source: lee2019, equations 15 and 16, with the factor 1/m of a mean loss.

    >>> one = Kernels(torch.ones(1, 1), torch.ones(1, 1))
    >>> trained_prediction(one, torch.ones(1), time=math.inf, cross=one, prior=one).mean
    tensor([1.])
    """
    not_negative(lr=lr)
    real_values(y=y)
    if not time >= 0:
        raise InputError(f"expected a time of at least 0, got {time}")
    if discrete and math.isfinite(time) and time != math.floor(time):
        raise InputError(f"expected a whole number of steps, got a time of {time}; without discrete any time will do")
    kind = kernels.ntk.dtype  # of repeated points float32 leaves eigenvalues of either sign, and t tells them apart
    kernels, cross, prior = (Kernels(k.nngp.double(), k.ntk.double()) for k in (kernels, cross, prior))
    values, vectors = torch.linalg.eigh(0.5 * (kernels.ntk + kernels.ntk.T))
    speed = lr * values / max(len(values), 1)
    tiny = torch.finfo(kind).eps * len(values) * values.abs().max()
    if discrete:
        if float(speed.max()) >= 2.0:
            raise InputError(
                f"expected a step size below 2 m / largest eigenvalue = {2 * lr / float(speed.max()):.4g}, got {lr}: "
                "gradient descent diverges"
            )
        learned = 1 - (1 - speed) ** time if math.isfinite(time) else (values > tiny).to(values)
    else:
        learned = -torch.expm1(-speed.clamp(min=0) * time) if math.isfinite(time) else (values > tiny).to(values)
    # what is zero up to the kernels' own rounding is not learned; for short times the share of it is t itself
    small = values <= tiny
    limit = lr * time / max(len(values), 1) if math.isfinite(time) and float(tiny) * lr * time < len(values) else 0.0
    shares = torch.where(small, torch.full_like(values, limit), learned / torch.where(small, 1.0, values))
    operator = cross.ntk @ (vectors * shares) @ vectors.T  # (new, n)
    mixed = operator @ cross.nngp.T
    covariance = prior.nngp + operator @ kernels.nngp @ operator.T - mixed - mixed.T
    return Posterior((operator @ as_tensor(y).to(operator)).to(kind), covariance.to(kind))


def one_hot_targets(labels: Tensor, *, classes: int | None = None) -> Tensor:
    """Targets for classification by regression: 1 - 1/C in the column of the class and -1/C elsewhere; float64.

    >>> one_hot_targets(torch.tensor([1]), classes=2)
    tensor([[-0.5000,  0.5000]], dtype=torch.float64)
    """
    at_least(1, classes=classes)
    labels = as_tensor(labels, floats=False)
    has_values(labels=labels)
    count = int(labels.max()) + 1 if classes is None else classes
    if not 0 <= int(labels.min()) <= int(labels.max()) < count:
        raise InputError(f"expected labels from 0 to {count - 1}, got {int(labels.min())} to {int(labels.max())}")
    return torch.nn.functional.one_hot(labels.long(), count).to(torch.float64) - 1 / count
