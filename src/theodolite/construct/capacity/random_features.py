"""Random ReLU and smoothed ReLU features as a scikit-learn transformer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from theodolite.core.checks import InputError
from theodolite.theory.capacity import smoothed_relu


class CorrectiveFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""$\sqrt{1/N}\,\mathrm{SReLU}_k(\omega_i\cdot x/\sqrt q-T_i)$, Gaussian $\omega_i$ on q random coordinates or on all.

    T is uniform on ``±bias_range``; ``order`` k is 0 for ReLU, 1, 2, ... for ReLUs smoothed within ``smoothing_width``
    of their kink. ``subset`` q suits functions that are sums of functions of q coordinates each. Standardize the inputs first:
    the kinks lie where $|x|/\sqrt q$ is of order one. Inner products of features estimate a kernel, as RBFSampler's do.

    Source: bresler2020, Theorem 4. Differs from the source: all units may have one order, which is a parameter.

    >>> features = CorrectiveFeatures(n_components=50, order=1, random_state=0).fit_transform([[0.0, 1.0], [1.0, 0.0]])
    >>> features.shape
    (2, 50)
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        order: int = 0,
        smoothing_width: float = 1.0,
        bias_range: float = 2.0,
        subset: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.order = order
        self.smoothing_width = smoothing_width
        self.bias_range = bias_range
        self.subset = subset
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> CorrectiveFeatures:
        """Draw directions and kinks; of the data only the number of columns is used."""
        x = validate_data(self, X, dtype=[np.float64, np.float32])
        random, inputs = check_random_state(self.random_state), x.shape[1]
        _check_whole("n_components", self.n_components)
        if self.subset is not None:
            _check_whole("subset", self.subset)
        if not self.bias_range >= 0:
            raise InputError(f"expected bias_range of at least 0, got {self.bias_range}; pass 2.0, say")
        # refuses a wrong order or width
        smoothed_relu(torch.zeros(0), self.order, smoothing_width=self.smoothing_width)
        kept = inputs if self.subset is None else min(self.subset, inputs)
        directions = random.standard_normal((self.n_components, inputs))
        if kept < inputs:
            ranks = random.random_sample((self.n_components, inputs)).argsort(1).argsort(1)
            directions = np.where(ranks < kept, directions, 0.0)
        self.directions_ = np.ascontiguousarray(directions.T / math.sqrt(kept)).astype(x.dtype)  # (inputs, units)
        self.thresholds_ = (self.bias_range * (2 * random.random_sample(self.n_components) - 1)).astype(x.dtype)
        self._n_features_out = self.n_components
        return self

    def transform(self, X: Any) -> np.ndarray[Any, Any]:
        """One column for each unit, one row for each sample, in the precision of the samples."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        seen = x @ self.directions_.astype(x.dtype, copy=False) - self.thresholds_.astype(x.dtype, copy=False)
        values = smoothed_relu(torch.from_numpy(seen), self.order, smoothing_width=self.smoothing_width)
        return np.asarray(values.numpy() / np.sqrt(x.dtype.type(self._n_features_out)))

    def __sklearn_tags__(self) -> Any:
        """Single precision stays single."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"expected {name} to be a positive whole number, got {value!r}; pass 100, say")
