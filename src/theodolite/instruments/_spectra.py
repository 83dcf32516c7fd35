"""The spectrum of every weight matrix of a subject: computed once, shared by instruments, kept on disk for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from theodolite.core.subject import Subject
from theodolite.io.weights import Weight, owners_of, readable
from theodolite.measure.spectra import Spectrum, WeightMatrix, gram_eigenvalues, weight_matrices

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LayerSpectrum:
    """One matrix: its name, its spectrum or the reason why there is none, and how it was cut out of the parameter."""

    name: str
    spectrum: Spectrum | None
    how: str = ""
    reason: str = ""


def layer_spectra(subject: Subject) -> list[LayerSpectrum]:
    """Every matrix of every parameter of two or more axes, in the order of the parameters."""
    owners, shapes = owners_of(subject.model), {name: weight.shape for name, weight in subject.weights.items()}

    def matrices(weight: Weight, tensor: Tensor) -> dict[str, WeightMatrix]:
        found = weight_matrices(weight.name, tensor, module=owners.get(weight.name), shapes=shapes)
        return {matrix.name: matrix for matrix in found}

    known = {n: w for n, w in subject.weights.items() if w.source and subject.notebook.knows(_key(w, "parts"))}
    waiting = {name: w for name, w in subject.weights.items() if name not in known and len(w.shape) != 1}
    spectra = {name: list(_recalled(subject, weight, matrices)) for name, weight in known.items()}
    for done, (weight, tensor) in enumerate(readable(waiting, subject.faults)):
        subject.notebook.progress("spectra of weights", done, len(waiting))
        spectra[weight.name] = list(_computed(subject, weight, matrices(weight, tensor)))
    subject.notebook.progress("spectra of weights", len(waiting), len(waiting))
    return [layer for name in subject.weights for layer in spectra.get(name, ())]


def _computed(subject: Subject, weight: Weight, matrices: dict[str, WeightMatrix]) -> Iterator[LayerSpectrum]:
    parts: list[list[object]] = []
    for name, part in matrices.items():
        if part.matrix is None:
            parts.append([name, None, part.how, part.reason])
            yield LayerSpectrum(name, None, part.how, part.reason)
            continue
        parts.append([name, [*part.matrix.shape, str(part.matrix.dtype)], part.how, ""])
        values = subject.notebook.array(_key(weight, name), _eigenvalues(part), durable=bool(weight.source))
        yield _layer(name, values, part.matrix.shape, part.matrix.dtype, part.how)
    # written last: a run that is killed before this line finds the parameter unfinished
    subject.notebook.record(_key(weight, "parts"), lambda: parts, durable=bool(weight.source))


def _recalled(
    subject: Subject, weight: Weight, matrices: Callable[[Weight, Tensor], dict[str, WeightMatrix]]
) -> Iterator[LayerSpectrum]:
    """From the notebook, without reading the tensor (unless an array has gone from the folder)."""
    for name, shape, how, reason in subject.notebook.record(_key(weight, "parts"), list, durable=True):
        if shape is None:
            yield LayerSpectrum(name, None, how, reason)
            continue
        again = lambda name=name: _eigenvalues(matrices(weight, weight.read())[name])()  # noqa: E731
        values = subject.notebook.array(_key(weight, name), again, durable=True)
        yield _layer(name, values, shape[:2], getattr(torch, shape[2].removeprefix("torch.")), how)


def _layer(name: str, values: Floats, shape: Sequence[int], dtype: torch.dtype, how: str) -> LayerSpectrum:
    spectrum = Spectrum(values, shape[0], shape[1], dtype)
    return LayerSpectrum(name, spectrum, how, spectrum.reason)


def _eigenvalues(part: WeightMatrix) -> Callable[[], Floats]:
    matrix = part.matrix
    assert matrix is not None, "only matrices have eigenvalues"
    return lambda: gram_eigenvalues(matrix).cpu().numpy()


def _key(weight: Weight, what: str) -> str:
    version = "" if weight.source else weight.read()._version  # a model's tensor that is changed in place counts anew
    return f"spectrum 1|{weight.source}|{version}|{weight.name}|{what}"
