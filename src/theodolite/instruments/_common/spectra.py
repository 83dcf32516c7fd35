"""The spectrum of every weight matrix of a subject: computed once, shared by instruments, kept on disk for checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from theodolite.core.subject import Subject
from theodolite.instruments._common.weights import InHand, WeightPart, weighed
from theodolite.measure.spectra import Spectrum, gram_eigenvalues, weight_matrices


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
                dtype = getattr(torch, shape[2].removeprefix("torch."))
                spectrum = Spectrum(found.arrays[name], shape[0], shape[1], dtype)
            layers.append(LayerSpectrum(name, spectrum, how, reason if spectrum is None else spectrum.reason))
    return layers


def _find(held: InHand) -> tuple[Any, dict[str, Any]]:
    """For every matrix of the tensor its name, shape and dtype, how it was cut out or why it was not; and its eigenvalues."""
    facts: list[list[Any]] = []
    eigenvalues: dict[str, Any] = {}
    if held.tensor is not None and held.tensor.ndim != 1:
        for part in weight_matrices(held.name, held.tensor, module=held.owner, shapes=held.shapes):
            if part.matrix is None:
                facts.append([part.name, None, part.how, part.reason])
                continue
            facts.append([part.name, [*part.matrix.shape, str(part.matrix.dtype)], part.how, ""])
            eigenvalues[part.name] = gram_eigenvalues(part.matrix).cpu().numpy()
    return facts, eigenvalues


of_weight = WeightPart(_find, version=1)
