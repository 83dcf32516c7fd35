"""One visit of the data: everything that instruments ask of layers, reduced as it comes; feature maps are never kept."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.io.batches import Batch
from theodolite.measure.functional import first_tensor
from theodolite.measure.propagation.layer_features import WIDEST, matrix_layers
from theodolite.measure.propagation.signal_flow import Signal, signals
from theodolite.measure.spectra import FeatureCovariance, feature_rows

FEWEST_KEPT, NUMBERS, GIVEN = 1000, 1 << 23, 1024
"""Rows that are kept of a layer whatever their length, numbers otherwise, and rows of what a linear layer is given."""


@dataclass
class Features:
    """What one visit saw, ``samples`` of ``of`` in the data.

    Of every layer that multiplies by weights: ``covariances`` of its output (positions pooled), ``rows`` of it for
    the first samples, ``given``, what linear layers got in the first batch, or as many others (positions are rows).
    ``readout`` is what each linear layer got for each sample, where that is one row a sample. ``answers`` and
    ``targets`` are those of all samples seen, None where they do not fit together or are too large; ``alone`` says
    whether the model answers nothing else; ``signals`` are of the first batch, ``first`` its covariances.
    """

    samples: int = 0
    of: int = 0
    covariances: dict[str, FeatureCovariance] = field(default_factory=dict)
    rows: dict[str, Tensor] = field(default_factory=dict)
    given: dict[str, Tensor] = field(default_factory=dict)
    readout: dict[str, Tensor] = field(default_factory=dict)
    answers: Tensor | None = None
    alone: bool = True
    targets: Tensor | None = None
    signals: tuple[Signal, ...] = ()
    first: dict[str, FeatureCovariance] = field(default_factory=dict)


class _Keeper:
    """Hooks that reduce what passes by."""

    def __init__(self, like_first: int) -> None:
        self.found = Features()
        self.like_first, self.batch = like_first, 0
        self.parts: dict[tuple[str, str], list[Tensor]] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.met: set[tuple[str, str]] = set()

    def keep(self, kind: str, name: str, rows: Tensor) -> None:
        """Some rows of a layer; those of its first call in a batch alone, until there are enough."""
        key, have = (kind, name), self.counts.get((kind, name), 0)
        room = max(FEWEST_KEPT, NUMBERS // max(1, rows[0].numel())) - have if len(rows) else 0
        if key in self.met or room <= 0:
            return
        self.met.add(key)
        self.parts.setdefault(key, []).append(rows[:room].detach().clone())
        self.counts[key] = have + min(room, len(rows))

    def after(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        """The hook behind a layer."""
        given = args[0] if args and isinstance(args[0], Tensor) else None
        if given is not None and not self.met and given.is_floating_point() and given.ndim >= 2:
            self.keep("rows", "input", given.flatten(1))
        if given is not None and isinstance(module, nn.Linear):
            self._linear(name, given)
        features = output[0] if isinstance(output, tuple | list) else output
        if not isinstance(features, Tensor) or features.ndim < 2:
            return
        rows = feature_rows(features.detach())
        self.keep("rows", name, rows)
        if rows.shape[1] <= WIDEST:
            part, known = FeatureCovariance.of(rows), self.found.covariances
            known[name] = known[name] + part if name in known else part

    def _linear(self, name: str, given: Tensor) -> None:
        flat = given.detach().flatten(0, -2)
        have = self.found.given.get(name)
        room = min(GIVEN, self.like_first * len(flat) // max(1, self.batch)) - (0 if have is None else len(have))
        if room > 0 and ("given", name) not in self.met:
            self.met.add(("given", name))
            self.found.given[name] = flat[:room].clone() if have is None else torch.cat([have, flat[:room]])
        if given.ndim == 2:
            self.keep("readout", name, given)

    def gathered(self, kind: str) -> dict[str, Tensor]:
        return {name: torch.cat(parts) for (own, name), parts in self.parts.items() if own == kind}


@torch.no_grad()
def visited_features(
    model: nn.Module, batches: Iterable[Batch], *, like_first: int, ended: Callable[[], bool] = bool
) -> Features:
    """Run the model once over the batches; ``ended()`` is asked between batches and ends the visit early.

    ``like_first`` is the size of the first batch of the data as they came, which thinned batches together make up for.
    """
    keeper, first = _Keeper(like_first), True
    answers: list[Tensor] = []
    kept: list[Any] = []
    targets: list[Any] = []
    with ExitStack() as stack:
        for name, module in matrix_layers(model).items():
            stack.callback(module.register_forward_hook(partial(keeper.after, name)).remove)
        stack.callback(model.register_forward_hook(lambda _, __, answer: kept.append(answer)).remove)
        for batch in batches:
            if not first and ended():
                break
            keeper.batch = len(batch)
            if first and len(batch) > 1:
                keeper.found.signals = signals(model, *batch.inputs, **batch.keywords)
            else:
                model(*batch.inputs, **batch.keywords)
            if first:
                keeper.found.first = dict(keeper.found.covariances)
            answers.append(_answer(kept[-1]))
            keeper.found.alone &= isinstance(kept.pop(), Tensor)
            keeper.found.samples += len(batch)
            targets.append(batch.target)
            keeper.met.clear()
            first = False
    found = keeper.found
    found.rows, found.readout = keeper.gathered("rows"), keeper.gathered("readout")
    found.answers, found.targets = _joined(answers, found.samples), _joined(targets, found.samples)
    return found


def _answer(answer: Any) -> Tensor:
    try:
        return first_tensor(answer).detach()
    except TypeError:
        return torch.empty(0)


def _joined(parts: list[Any], samples: int) -> Tensor | None:
    if not all(isinstance(part, Tensor) and part.ndim and part.shape[1:] == parts[0].shape[1:] for part in parts):
        return None
    if sum(part.numel() for part in parts) > NUMBERS:
        return None
    whole = torch.cat(parts)
    return whole if len(whole) == samples else None
