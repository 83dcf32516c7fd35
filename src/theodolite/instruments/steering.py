"""How much does a direction added after each layer (a steering vector) change the output?

Random directions are added after each layer, on the first batch, and the change of the output is divided by the size of what
was added. If only linear layers and 1-Lipschitz activations follow, the product of their spectral norms bounds it. For a
direction of your own use `theodolite.measure.propagation.layer_features.steering_gains`.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Estimate, Reading
from theodolite.core.statistics import mean_estimate
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import features_of, pace_of
from theodolite.io.batches import Batch
from theodolite.measure.propagation import matrix_layers
from theodolite.measure.propagation.layer_features import steering_changes
from theodolite.measure.spectra import feature_decay

DIRECTIONS, FEWEST, SEED = 8, 3, 0
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
    layers, covariances = matrix_layers(subject.model), features_of(subject).first
    generator = torch.Generator().manual_seed(SEED)
    names = list(covariances)[:-1]
    batch, count, chosen = _plan(subject, names)
    for name in names:
        width = len(covariances[name].mean)
        directions = torch.randn(DIRECTIONS, width, generator=generator)[:count]
        if name not in chosen or (name != names[0] and subject.allowance.over()):
            continue
        gains = steering_changes(lambda: subject.output(batch), layers[name], directions).cpu()
        found, bound = _mean(gains, thinned=len(batch) < len(subject.data.first())), _bound(subject.model, name)
        quality = feature_decay(covariances[name], window=(2, max(3, width // 2))).participation_ratio
        yield Reading(
            quantity="gain of a random direction",
            where=name,
            measured=found.value,
            stderr=found.stderr,
            expected=None if bound is None else Band(0.0, bound),
            meaning=f"Mean over {count} directions, {width} features of participation ratio {quality:.3g}. "
            + (
                "A direction added here is amplified on its way to the output."
                if found.value > 1
                else "A direction added here fades on its way to the output."
            )
            + ("" if bound is not None else " What follows is not a plain chain of layers, so no bound is known."),
        )


def _plan(subject: Subject, names: list[str]) -> tuple[Batch, int, list[str]]:
    """Samples, directions and layers that fit the time: first fewer samples, then fewer directions, then fewer layers."""
    whole = next(subject.batches())
    room = math.inf
    if subject.allowance.seconds < math.inf:
        pace = pace_of(subject, "forward")  # a pass of few samples takes its start all the same
        room = subject.allowance.seconds / max(1e-9, pace.pass_seconds("forward", len(whole)) / len(whole))
    rows = len(whole) if subject.allowance.samples is None else min(len(whole), subject.allowance.samples)
    each = 2 * max(1, len(names))
    if each * DIRECTIONS * rows <= room:
        return whole.picked(slice(rows)), DIRECTIONS, names
    rows = min(rows, max(FEWEST, int(room / (each * DIRECTIONS))))
    count = max(FEWEST, min(DIRECTIONS, int(room / (each * rows))))
    layers = max(1, min(len(names), int(room / (2 * count * rows))))
    spread = [names[place * len(names) // layers] for place in range(layers)]
    return whole.spread(rows), count, spread


def _mean(gains: Tensor, *, thinned: bool) -> Estimate:
    """Over directions and samples, with the error of the one and, where samples were left out, of the other."""
    found = mean_estimate(gains.mean(1))
    if not thinned or gains.shape[1] < 2:
        return found
    return Estimate(found.value, math.hypot(found.stderr, mean_estimate(gains.mean(0)).stderr))


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
    question="Where does an added direction reach the output?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"features": 0, "forward": 72},
    laws=("steering-gain",),
)
