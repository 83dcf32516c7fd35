"""Where would an added direction survive: what does a steering vector behind each layer do to the answer?

Random directions are added behind each layer, on the first batch, and the change of the answer is measured over the size of
what was added. Where only linear layers and 1-Lipschitz activations follow, the product of their spectral norms bounds it.
For a direction of your own use `theodolite.measure.propagation.layer_features.steering_gains`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.statistics import mean_estimate
from theodolite.core.subject import Subject
from theodolite.measure.propagation import feature_covariances, matrix_layers, steering_gains
from theodolite.measure.spectra import feature_decay

DIRECTIONS, SEED = 8, 0
CONTRACTIONS = (
    nn.ReLU,
    nn.LeakyReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.ELU,
    nn.Softplus,
    nn.Hardtanh,
    nn.ReLU6,
    nn.Identity,
    nn.Dropout,
    nn.Flatten,
)


def read(subject: Subject) -> Iterator[Reading]:
    """The mean gain of random directions behind every layer but the last."""
    assert subject.model is not None
    batch, layers = next(subject.batches()), matrix_layers(subject.model)
    covariances = feature_covariances(subject.output, [batch], layers)
    generator = torch.Generator().manual_seed(SEED)
    for name in list(covariances)[:-1]:
        width = len(covariances[name].mean)
        directions = torch.randn(DIRECTIONS, width, generator=generator)
        gains = steering_gains(lambda: subject.output(batch), layers[name], directions)
        found, bound = mean_estimate(gains.cpu()), _bound(subject.model, name)
        quality = feature_decay(covariances[name], window=(2, max(3, width // 2))).participation_ratio
        yield Reading(
            quantity="gain of a random direction",
            where=name,
            measured=found.value,
            stderr=found.stderr,
            expected=None if bound is None else Band(0.0, bound),
            meaning=f"Mean over {DIRECTIONS} directions, {width} features of participation ratio {quality:.3g}. "
            + (
                "A direction added here is amplified on its way to the answer."
                if found.value > 1
                else "A direction added here fades on its way to the answer."
            )
            + ("" if bound is not None else " What follows is not a plain chain of layers, so no bound is known."),
        )


def _bound(model: nn.Module, name: str) -> float | None:
    """The product of the spectral norms behind the layer, where the model is a plain sequence of contractions and layers."""
    if not isinstance(model, nn.Sequential) or not name.isdigit():
        return None
    bound = 1.0
    for module in list(model)[int(name) + 1 :]:
        if isinstance(module, nn.Linear):
            bound *= torch.linalg.matrix_norm(module.weight.detach().double(), 2).item()
        elif not isinstance(module, CONTRACTIONS):
            return None
    return bound


instrument = Instrument(
    question="Where would an added direction survive?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    laws=("steering-gain",),
)
