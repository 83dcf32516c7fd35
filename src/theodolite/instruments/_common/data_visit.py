"""What a survey sees of the data: the price of each kind of pass here, samples thinned to a budget, and the one visit."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.budget import Pace
from theodolite.core.checks import check_inputs
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.work import OperationCounter
from theodolite.io.batches import Batch, Batches
from theodolite.measure import first_tensor, plain_attention
from theodolite.measure.propagation._data_visit import Features, visited_features

SLICE, DENSE = 4, 4.0
"""Samples of the smaller pass whose price is counted, and how much faster products of matrices are than a core's unit of work."""


@dataclass(frozen=True)
class Kept(Batches):
    """Batches that are in memory, ``source`` a list of `Batch`: read again and again, never cut anew."""

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.source)


def sample_count(subject: Subject) -> int:
    """How many samples the data hold, counted once; a batch with numbers that are none is named."""
    if "count" not in subject.seen:
        count = 0
        for number, batch in enumerate(subject.data, 1):
            check_inputs(batch, number)
            count += len(batch)
        subject.seen["count"] = count
    return int(subject.seen["count"])


def pace_of(subject: Subject, *kinds: str) -> Pace:
    """What a pass costs in each kind asked for, to start and for each sample, counted once on a slice of the first batch."""
    known: dict[str, tuple[float, float]] = subject.seen.setdefault("pace", {})
    for kind in kinds:
        if kind not in known:
            with untouched(subject.model), plain_attention():
                known[kind] = _price(_PASSES[kind], subject)
    seconds = {kind: each for kind, (_, each) in known.items()}
    starts = {kind: start for kind, (start, _) in known.items()}
    on_cpu = counter_for(subject).device == "cpu"
    return Pace({**seconds, "features": 0.0}, sample_count(subject), starts, len(subject.data.first()), not on_cpu)


def _price(run: Callable[[Subject, Batch], Any], subject: Subject) -> tuple[float, float]:
    """Nominal seconds to start a pass, numbers for each parameter included, and for each sample: a line through two counts."""
    batch = next(subject.batches())
    found = []
    for samples in (min(SLICE, len(batch)), min(4 * SLICE, len(batch))):
        counter = counter_for(subject)
        try:
            with counter:
                run(subject, batch.picked(slice(samples)))
        except (RuntimeError, TypeError, ValueError):  # what cannot be run costs nothing; the instrument says why
            return 0.0, 0.0
        found.append((samples, counter.starts, counter.computes))
    (few, starts, less), (many, _, more) = found
    each = max(0.0, more - less) / (many - few) if many > few else less / few
    return starts + max(0.0, less - few * each), each


def counter_for(subject: Subject) -> OperationCounter:
    """A context that counts the work done in it, where the model is."""
    return OperationCounter(next((p.device.type for p in subject.model.parameters()), "cpu"), dense=DENSE)


def passes_afforded(subject: Subject, kind: str, samples: int, *, share: float = 1.0) -> float:
    """How many passes of so many samples the instrument can make within a share of its allowance."""
    if subject.allowance.is_endless:
        return math.inf
    return share * subject.allowance.seconds / max(1e-9, pace_of(subject, kind).pass_seconds(kind, samples))


def _forward(subject: Subject, batch: Batch) -> None:
    with torch.no_grad():
        subject.output(batch)


def _gradient(subject: Subject, batch: Batch) -> None:
    own = [p for p in subject.model.parameters() if p.requires_grad]
    torch.autograd.grad(_value(subject, batch), own, allow_unused=True)


def _value(subject: Subject, batch: Batch) -> Tensor:
    """The loss; where there is none a sum of the answers, which costs as much."""
    return subject.loss_on(batch) if subject.has("loss") else first_tensor(subject.output(batch)).float().sum()


def _product(subject: Subject, batch: Batch) -> None:
    own = [p for p in subject.model.parameters() if p.requires_grad]
    slopes = torch.autograd.grad(_value(subject, batch), own, create_graph=True, materialize_grads=True)
    live = [slope for slope in slopes if slope.requires_grad]
    torch.autograd.grad(live, own, [torch.ones_like(slope) for slope in live], allow_unused=True)


_PASSES: dict[str, Callable[[Subject, Batch], Any]] = {"forward": _forward, "gradient": _gradient, "product": _product}


def thinned(subject: Subject, samples: int, *, batch_size: int | None = None) -> Batches:
    """So many samples, evenly spread over the data, in batches of at most a size; the data themselves where all are asked for."""
    whole = sample_count(subject)
    if samples >= whole and batch_size is None:
        return subject.data
    kept: list[Batch] = []
    start = 0
    for batch in subject.batches():
        places = torch.arange(start, start + len(batch))
        chosen = torch.nonzero((places + 1) * samples // whole > places * samples // whole).flatten()
        start += len(batch)
        kept += [batch.picked(rows) for rows in torch.split(chosen, batch_size or max(1, len(chosen))) if len(rows)]
    return Kept(kept, subject.model)


def parted(data: Batches, parts: int = 2) -> list[Kept]:
    """So many parts of the samples, dealt out one by one."""
    found: list[list[Batch]] = [[] for _ in range(parts)]
    dealt = 0  # goes on over batches: of many with one sample each every part gets some
    for batch in data:
        for place, part in enumerate(found):
            first = (place - dealt) % parts
            if first < len(batch):
                rows = torch.arange(first, len(batch), parts)
                part.append(batch.picked(rows))
        dealt += len(batch)
    return [Kept(part, data.model) for part in found if part]


def afforded(subject: Subject, kind: str, *, passes: float, share: float = 1.0, fewest: int = 1) -> int:
    """How many samples the instrument can pass so often within its allowance; all of them where that has no end."""
    limit = subject.allowance
    if limit.is_endless and limit.samples is None:
        return sample_count(subject)
    pace = pace_of(subject, kind)
    return min(pace.samples, max(fewest, pace.affordable(kind, limit, passes=passes, share=share)))


def weights_state(model: nn.Module) -> tuple[tuple[int, int], ...]:
    """Which weights a model has, without reading them: where they lie, and how often they were changed in place."""
    return tuple((parameter.data_ptr(), parameter._version) for parameter in model.parameters())


def features_of(subject: Subject) -> Features:
    """What one visit of the data shows of all layers: made once for all instruments, again where weights have moved."""
    limit = subject.allowance
    state = weights_state(subject.model)
    found: Features | None = subject.seen.get("features")
    wanted = min(sample_count(subject), limit.samples or sample_count(subject))
    enough = found is not None and (found.samples >= wanted or not limit.is_endless)
    if found is None or not enough or subject.seen.get("features at") != state:
        samples = afforded(subject, "forward", passes=1.6, share=0.8, fewest=min(8, wanted))
        data = thinned(subject, samples)
        with untouched(subject.model):
            on_device = (batch.on(subject.model) for batch in data)
            found = visited_features(subject.model, on_device, like_first=len(subject.data.first()), ended=limit.over)
        found = replace(found, of=sample_count(subject))
        subject.seen["features"], subject.seen["features at"] = found, state
    return found
