"""What the kernel instruments ask of a subject: some of its samples, spread over the data, and their targets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.subject import Subject
from theodolite.measure.functional import Inputs, count

ENOUGH = 4096
"""How many samples are read before some of them are chosen."""


@dataclass(frozen=True)
class Samples:
    """Inputs as a model is called with them, and targets (None where there are none)."""

    x: Inputs
    targets: Tensor | None

    def __len__(self) -> int:
        return count(self.x)

    @torch.no_grad()
    def answer(self, model: nn.Module) -> Any:
        """What a model says of them."""
        if isinstance(self.x, Mapping):
            return model(**self.x)
        return model(*(self.x if isinstance(self.x, tuple) else (self.x,)))


def spread_samples(subject: Subject, most: int) -> Samples | None:
    """At most so many samples, evenly spread over the first few thousand; None where batches are not plain tensors."""
    inputs: list[Any] = []
    targets: list[Any] = []
    seen = 0
    for batch in subject.batches():
        if bool(batch.inputs) == bool(batch.keywords):
            return None
        values: dict[Any, Any] = dict(batch.keywords) or dict(enumerate(batch.inputs))
        if not all(isinstance(value, Tensor) and len(value) == len(batch) for value in values.values()):
            return None
        inputs.append(values)
        targets.append(batch.target)
        seen += len(batch)
        if seen >= ENOUGH:
            break
    if seen < 2 or any(batch.keys() != inputs[0].keys() for batch in inputs):
        return None
    number = min(most, seen)
    chosen = torch.tensor([index * seen // number for index in range(number)])
    found = {key: _chosen([batch[key] for batch in inputs], chosen) for key in inputs[0]}
    if any(value is None for value in found.values()):
        return None
    x: Any = found if not isinstance(next(iter(found)), int) else tuple(found.values())
    return Samples(x[0] if isinstance(x, tuple) and len(x) == 1 else x, _chosen(targets, chosen))


def _chosen(parts: list[Any], chosen: Tensor) -> Tensor | None:
    """Those rows of all batches; None where they do not fit together."""
    if not all(isinstance(part, Tensor) and part.ndim > 0 and part.shape[1:] == parts[0].shape[1:] for part in parts):
        return None
    whole = torch.cat(parts)
    return whole[chosen.to(whole.device)] if len(whole) > int(chosen[-1]) else None
