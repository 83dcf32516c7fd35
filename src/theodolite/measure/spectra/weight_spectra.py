"""Spectra of weights and features: eigenvalues, ranks and norms; the fits live in the files this one names."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.lazy_torch import spacing
from theodolite.measure.spectra.eigenvalues import gram_eigenvalues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of W^T W, ascending, of a matrix of this shape and storage, and what they say at once.

    ``dtype`` is torch's or numpy's, or its name.
    ``reason`` is empty, or names what makes the spectrum say little: a vector, all zeros, rank one.
    """

    eigenvalues: NDArray[np.float64] = field(repr=False)
    rows: int
    columns: int
    dtype: Any = "float64"

    @property
    def largest(self) -> float:
        """The square of the spectral norm."""
        return float(self.eigenvalues[-1])

    @property
    def trace(self) -> float:
        """The square of the Frobenius norm."""
        return float(self.eigenvalues.sum())

    @property
    def rounding(self) -> float:
        r"""The eigenvalue below which storage rounding may have written what is there.

        Rounding to spacing $\epsilon$ adds noise of variance at most $\epsilon^2\overline{w^2}/12$ to each entry, whose
        largest eigenvalue is that times $(\sqrt{rows}+\sqrt{columns})^2$; float64 arithmetic sets the other floor.
        """
        noise = spacing(self.dtype) ** 2 / 12 * self.trace / (self.rows * self.columns)
        arithmetic = len(self.eigenvalues) * np.finfo(np.float64).eps * self.largest
        return max(noise * (math.sqrt(self.rows) + math.sqrt(self.columns)) ** 2, arithmetic)

    @property
    def numerical_rank(self) -> int:
        """How many eigenvalues lie above rounding."""
        return int((self.eigenvalues > self.rounding).sum())

    @property
    def stable_rank(self) -> float:
        """Squared Frobenius over squared spectral norm."""
        return self.trace / self.largest if self.largest else 0.0

    @cached_property
    def effective_rank(self) -> float:
        """The exponential of the entropy of the singular values, summing to one. Source: roy2007."""
        singular = np.sqrt(self.eigenvalues[self.eigenvalues > 0])
        share = singular / singular.sum()
        return float(np.exp(-(share * np.log(share)).sum())) if share.size else 0.0

    @property
    def reason(self) -> str:
        """What makes this spectrum say little, or nothing."""
        if self.largest == 0:
            return "all zeros"
        if min(self.rows, self.columns) == 1:
            return f"a vector ({self.rows} x {self.columns}): one eigenvalue"
        return "rank one" if self.numerical_rank == 1 else ""


def spectrum_of(matrix: Tensor) -> Spectrum:
    """The spectrum of a matrix, with its shape and storage type.

    >>> import torch
    >>> spectrum = spectrum_of(torch.eye(4))
    >>> spectrum.stable_rank, spectrum.numerical_rank, round(spectrum.effective_rank, 6), spectrum_of(torch.ones(5, 3)).reason
    (4.0, 4, 4.0, 'rank one')
    """
    values = gram_eigenvalues(matrix).cpu().numpy()
    values.flags.writeable = False
    return Spectrum(values, matrix.shape[0], matrix.shape[1], matrix.dtype)
