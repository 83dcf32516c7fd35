"""The spectrum of every weight matrix of a subject: computed once, shared by instruments, kept on disk for checkpoints."""

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from theodolite.core.lazy_torch import array_of, is_tensor, kind_of, torch
from theodolite.core.subject import Subject
from theodolite.instruments._common.weights import weighed
from theodolite.io.weight_parts import InHand, WeightPart
from theodolite.measure.spectra.eigenvalues import gram_eigenvalues
from theodolite.measure.spectra.matrices import WeightMatrix, weight_matrices
from theodolite.measure.spectra.weight_spectra import Spectrum

FAR = 1e-120
"""Entries all below this, or any above its inverse, are brought nearer to one before they are squared."""


@dataclass(frozen=True)
class LayerSpectrum:
    """One matrix: its name, its spectrum or the reason why there is none, and how it was cut out of the parameter."""

    name: str
    spectrum: Spectrum | None
    how: str = ""
    reason: str = ""


def layer_spectra(subject: Subject) -> list[LayerSpectrum]:
    """Every matrix of every parameter of two or more axes, in the order of the parameters."""
    layers = []
    for found in weighed(subject, "spectra")["spectra"].values():
        for name, shape, how, reason in found.value:
            spectrum = None
            if shape is not None:
                spectrum = Spectrum(found.arrays[name], shape[0], shape[1], shape[2].removeprefix("torch."))
            layers.append(LayerSpectrum(name, spectrum, how, reason if spectrum is None else spectrum.reason))
    return layers


def matrices_of(held: InHand) -> tuple[WeightMatrix, ...]:
    """The matrices of the tensor in hand, cut out once; one whose squares would overflow is brought to a size near one."""
    if "matrices" not in held.found:
        found: tuple[WeightMatrix, ...] = ()
        if held.values is not None and held.values.ndim != 1:
            found = weight_matrices(held.name, held.values, module=held.owner, shapes=held.shapes)
        noted = (replace(part, how="; ".join(filter(None, (part.how, held.note)))) for part in found)
        held.found["matrices"] = tuple(_in_range(part) for part in noted)
    return cast("tuple[WeightMatrix, ...]", held.found["matrices"])


def _in_range(part: WeightMatrix) -> WeightMatrix:
    if part.matrix is None or kind_of(part.matrix.dtype) != "float64":
        return part
    entries: Any = part.matrix
    size = float(abs(entries).max())
    if size == 0 or FAR < size < 1 / FAR:
        return part
    exponent = math.frexp(size)[1]
    how = f"divided by 2^{exponent}: the squares of its entries overflow float64"
    matrix = part.matrix
    scaled = torch.ldexp(matrix, torch.tensor(-exponent)) if is_tensor(matrix) else np.ldexp(matrix, -exponent)
    return replace(part, matrix=scaled, how="; ".join(filter(None, (part.how, how))))


def eigenvalues_of(held: InHand, part: WeightMatrix) -> np.ndarray:
    """Those of W^T W, found once for all that ask."""
    key = f"eigenvalues {part.name}"
    if key not in held.found:
        assert part.matrix is not None
        held.found[key] = array_of(gram_eigenvalues(part.matrix))
    return cast("np.ndarray", held.found[key])


def _find(held: InHand) -> tuple[Any, dict[str, Any]]:
    """For every matrix of the tensor its name, shape and dtype, how it was cut out or why it was not; and its eigenvalues."""
    facts: list[list[Any]] = []
    eigenvalues: dict[str, Any] = {}
    for part in matrices_of(held):
        if part.matrix is None:
            facts.append([part.name, None, part.how, part.reason])
            continue
        facts.append([part.name, [*part.matrix.shape, f"torch.{kind_of(part.matrix.dtype)}"], part.how, ""])
        eigenvalues[part.name] = eigenvalues_of(held, part)
    return facts, eigenvalues


of_weight = WeightPart(_find, version=2)
