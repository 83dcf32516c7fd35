r"""Do the features collapse into far fewer directions than the task needs?

The effective rank is $(\sum\lambda)^2/\sum\lambda^2$ of the differences between samples at the input of the last layer.
Separating C classes linearly takes C - 1 directions, predicting k numbers takes k, and never more than the inputs have.
Attention without skip connections loses rank in another sense: the positions of a sample become the same, doubly exponentially
in depth (Dong et al. 2021), measured as the share by which positions differ. Neither counts alone, because features also
collapse when training succeeds: a trial on a copy with critical initialization or skip connections decides.
"""

import torch

from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches
from theodolite.evidence.depth_remedies import depth_ailment
from theodolite.evidence.layer_signals import merged_places
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import CRITICAL
from theodolite.measure.propagation.one_pass import VitalSigns

FEW = 2.5
"""Directions that are few, whatever the task needs."""


def _told(subject: Subject, signs: VitalSigns) -> tuple[str, str]:
    if len(signs.layers) <= 2:
        return "", ""
    merged = merged_places(signs)
    if merged is not None:
        first, least, where = merged
        return (
            f"The features lose rank: before layer {where} the positions of a sample differ by only {least:.1g} of the "
            f"signal ({first:.1g} in the first layer).",
            where,
        )
    ranks = [layer.rank for layer in signs.layers[:-1]]
    place = min(range(len(ranks)), key=lambda i: ranks[i])
    rank, need = min(ranks[place], signs.layers[-1].input_rank), _needed(subject, signs)
    if not rank < min(FEW, CRITICAL * need) or signs.layers[place].units < need:
        return "", ""
    layer = signs.layers[place]
    return (
        f"The features lose rank: after layer {layer.name} they vary in {rank:.1f} of {layer.units} directions, but the task "
        f"needs {need:.1f}.",
        layer.name,
    )


def _needed(subject: Subject, signs: VitalSigns) -> float:
    """Directions that the task takes: one less than the classes, or as many as the outputs, and no more than the inputs have."""
    outputs = signs.output.shape[-1] if signs.output.ndim > 1 else 1
    meant = task(subject)
    found = [meant.classes_of(b.target) for b in batches(subject)[:32]] if meant.kind == "classes" else []
    known = [part.flatten() for part in found if part is not None]
    classes = len(torch.unique(torch.cat(known))) if known else 0
    return min(float(classes - 1 if classes else outputs), signs.layers[0].input_rank)


ailment = depth_ailment(_told, question="Do the features collapse into a few directions?", rank=24, paths=True)
