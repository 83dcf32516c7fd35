"""What several instruments ask: whether the targets are classes, which ones, and the layer that reads the features."""

import torch
from torch import Tensor, nn

from theodolite.core.subject import Subject


def classes_of(subject: Subject) -> int | None:
    """The number of logits, where the model answers one row of logits a sample and targets are whole numbers among them."""
    most = None
    for batch in subject.batches():
        target = batch.target
        if not isinstance(target, Tensor) or target.is_floating_point() or target.is_complex() or target.ndim != 1:
            return None
        if most is None:
            seen = subject.seen.get("features")
            with torch.no_grad():
                if seen is not None and seen.alone and seen.answers is not None and seen.samples >= len(target):
                    answer = seen.answers[: len(target)]
                else:
                    answer = subject.output(batch)
            answer = answer["logits"] if isinstance(answer, dict) and "logits" in answer else answer
            if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != len(target):
                return None
            most = answer.shape[1]
        if len(target) and (int(target.min()) < 0 or int(target.max()) >= most):
            return None
    return most if most is not None and most > 1 else None


def classifier_of(subject: Subject, classes: int) -> tuple[str, nn.Linear] | None:
    """The last linear layer with one row a class."""
    found = [
        (name, layer)
        for name, layer in subject.model.named_modules()
        if isinstance(layer, nn.Linear) and layer.out_features == classes
    ]
    return found[-1] if found else None
