"""Wide networks that are trained with weight decay towards their start."""

from __future__ import annotations

import math

from torch import Tensor

from theodolite.core.checks import InputError, not_negative, real_values
from theodolite.theory.kernels._tiling import Kernels
from theodolite.theory.kernels.inference import Posterior, trained_prediction


def ridge_trained_prediction(
    kernels: Kernels, y: Tensor, *, ridge: float, time: float, cross: Kernels, prior: Kernels, lr: float = 1.0
) -> Posterior:
    r"""As `trained_prediction`, on $\frac1{2m}(\sum(f-y)^2+\lambda|\theta-\theta_0|^2)$: mean and covariance at time t.

    In the span of the gradients at the start $\theta-\theta_0=J^Ta$, and gradient flow moves
    $\dot a=-\frac\gamma m((\Theta+\lambda)a-y+f_0)$, so that
    $A=\Theta(x,X)(\Theta+\lambda)^{-1}(I-e^{-\gamma(\Theta+\lambda)t/m})$: the training points' own kernel gets $\lambda$ on
    its diagonal, the others none. At infinite time the mean is kernel ridge regression. Source: lee2019, with weight decay.

    >>> import torch
    >>> one = Kernels(torch.ones(1, 1), torch.ones(1, 1))
    >>> ridge_trained_prediction(one, torch.ones(1), ridge=1.0, time=math.inf, cross=one, prior=one).mean
    tensor([0.5000])
    """
    not_negative(lr=lr)
    real_values(y=y)
    if not (math.isfinite(ridge) and ridge >= 0):
        raise InputError(f"expected a finite ridge of at least 0, got {ridge}")
    damped = kernels.ntk.clone()
    damped.diagonal().add_(ridge)
    return trained_prediction(Kernels(kernels.nngp, damped), y, time=time, cross=cross, prior=prior, lr=lr)
