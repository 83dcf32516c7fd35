"""Infinitely wide networks as scikit-learn estimators, so that depth and activation can be cross-validated."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from theodolite.core.checks import InputError
from theodolite.theory import Mlp
from theodolite.theory.kernels import Kernel, cholesky_factor, kernel_ridge, one_hot_targets


class _NetworkKernel(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the kernel of their parameters, and its ridge solution."""

    def __init__(
        self,
        *,
        hidden_layers: int = 1,
        activation: Any = "relu",
        weight_variance: float = 2.0,
        bias_variance: float = 0.1,
        kind: str = "ntk",
        ridge: float = 1e-3,
    ) -> None:
        self.hidden_layers = hidden_layers
        self.activation = activation
        self.weight_variance = weight_variance
        self.bias_variance = bias_variance
        self.kind = kind
        self.ridge = ridge

    def _solve(self, x: np.ndarray[Any, Any], targets: torch.Tensor) -> None:
        self.parameters_ = self.hidden_layers, self.activation, float(self.weight_variance), float(self.bias_variance)
        self.kind_ = self.kind
        self.X_fit_ = np.require(x, requirements=["C", "W"])
        solution = kernel_ridge(self._kernel()(torch.from_numpy(self.X_fit_)), targets, ridge=float(self.ridge))
        self.dual_coef_ = solution.weights.numpy()
        self.jitter_ = solution.jitter
        self.ridge_ = float(self.ridge)

    def _kernel(self) -> Kernel:
        """Of the parameters at the time of fitting; made anew, for a kernel of closures cannot be pickled."""
        return Kernel(Mlp(*self.parameters_), kind=self.kind_)  # type: ignore[arg-type]

    def _outputs(self, X: Any) -> np.ndarray[Any, Any]:
        check_is_fitted(self)
        x = validate_data(self, X, dtype=[np.float64, np.float32], reset=False).astype(self.X_fit_.dtype, copy=False)
        x = np.require(x, requirements=["C", "W"])
        cross = self._kernel()(torch.from_numpy(x), torch.from_numpy(np.require(self.X_fit_, requirements=["W"])))
        return np.asarray(cross.numpy() @ self.dual_coef_)

    def _error(self) -> float:
        """The root mean square of the errors at training points that are left out one at a time."""
        own = self._kernel()(torch.from_numpy(np.require(self.X_fit_, requirements=["W"])))
        factor = cholesky_factor(own, ridge=self.ridge_ + self.jitter_)
        inverse = torch.cholesky_inverse(factor.lower).diagonal().double().numpy()
        return float(np.sqrt(np.mean((self.dual_coef_ / inverse[:, None]) ** 2)))


class NetworkKernelRegressor(MultiOutputMixin, RegressorMixin, _NetworkKernel):  # type: ignore[misc]
    """Kernel ridge regression with the NTK or the NNGP kernel of an infinitely wide network.

    The mean of the targets is taken off before and added after. ``ridge`` is added to the kernel's diagonal;
    ``jitter_`` says by how much it was raised to make the kernel positive. ``kind="nngp"`` gives the posterior mean of a
    Bayesian network of infinite width with noise variance ``ridge``.

    >>> model = NetworkKernelRegressor(ridge=1e-6).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.predict([[1.0]]).round(3)
    array([1.])
    """

    def fit(self, X: Any, y: Any) -> NetworkKernelRegressor:
        """Solve for the dual weights."""
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        targets = np.asarray(y, dtype=x.dtype)
        self.mean_ = targets.mean(0)
        self._solve(x, torch.from_numpy(np.ascontiguousarray(targets - self.mean_)))
        return self

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The predictions at new points."""
        outputs = self._outputs(X)
        return np.asarray(outputs + self.mean_)


class NetworkKernelClassifier(ClassifierMixin, _NetworkKernel):  # type: ignore[misc]
    """Classification by kernel regression on one-hot targets; the largest output wins.

    >>> model = NetworkKernelClassifier().fit([[-2.0], [-1.0], [1.0], [2.0]], ["cold", "cold", "warm", "warm"])
    >>> model.predict([[1.5]]).tolist()
    ['warm']
    """

    def fit(self, X: Any, y: Any) -> NetworkKernelClassifier:
        """Solve for the dual weights, one column for each class."""
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"expected at least two classes, got 1 class: {self.classes_[0]!r}")
        targets = one_hot_targets(torch.from_numpy(labels.reshape(-1)), classes=len(self.classes_))
        self._solve(x, targets)
        return self

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:
        """One score for each class; for two classes the difference of the second and the first."""
        outputs = self._outputs(X)
        return np.asarray(outputs[:, 1] - outputs[:, 0]) if len(self.classes_) == 2 else outputs

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The class of each new point."""
        outputs = self._outputs(X)
        return np.asarray(self.classes_[outputs.argmax(1)])

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        r"""The probability of each class: that its output with its error is the largest.

        Errors are taken as normal, independent and of one variance $s^2$, that of the outputs at training points left out
        one at a time (in closed form, from the kernel factored anew at each call), so that
        $P_i=E\prod_{j\ne i}\Phi(z+(m_i-m_j)/s)$, z normal. The likeliest class is that of `predict`.
        """
        means = self._outputs(X).astype(np.float64)
        return _largest_probabilities(means / max(self._error(), np.finfo(np.float64).tiny ** 0.5))


def _largest_probabilities(means: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How probably each of independent normal numbers of variance one and these means, (n, C), is the largest."""
    from scipy.special import log_ndtr

    nodes = np.linspace(-9.0, 9.0, 361)  # equal steps: the integrand is smooth and dies out at both ends
    weights = np.exp(-(nodes**2) / 2)
    found = np.empty_like(means)
    for start in range(0, len(means), 256):
        own = means[start : start + 256]
        for c in range(own.shape[1]):
            logs = log_ndtr(nodes + (own[:, [c]] - np.delete(own, c, axis=1))[:, :, None]).sum(1)
            found[start : start + 256, c] = np.exp(logs) @ weights
    return np.asarray(found / found.sum(1, keepdims=True))
