"""How are the spectra of a layer's inputs, weights and outputs related?

For a linear layer Y = X Wᵀ the singular values obey Horn's log-majorization for any shapes; the slack says how far the
features' directions are from the weights'. If the ranks allow it, the condition number of the features after the layer is at
most the product of the other two.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import SIGMAS, Band, Reading, Series
from theodolite.core.statistics import left_out_errors
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import features_of
from theodolite.theory.spectra import (
    condition_number_bound,
    density_exponent,
    endpoint_exponent,
    feature_exponent_bound,
    majorization_slack,
    product_bound_applies,
)

MOST_ROWS, MOST_LOG = 1024, 20.0


def read(subject: Subject) -> Iterator[Reading]:
    """The slack of the majorization and the condition number behind every linear layer, on the first batch."""
    layers = {name: module for name, module in subject.model.named_modules() if isinstance(module, nn.Linear)}
    found = features_of(subject)
    given = {name: x[:MOST_ROWS] for name, x in found.given.items() if name in layers}
    spectra = {name: _spectra(x, layers[name]) for name, x in given.items()}
    errors = {name: _errors(x, layers[name], found.samples / found.of) for name, x in given.items()}
    for name, (x, w, y) in spectra.items():
        slack = majorization_slack(y.tolist(), x.tolist(), w.tolist())
        if slack:
            ranks = tuple(float(rank) for rank in range(1, len(slack) + 1))
            yield Reading(
                quantity="majorization slack, least over ranks",
                where=name,
                measured=min(slack),
                stderr=errors[name][0],
                expected=Band(low=-1e-6),
                meaning=f"Never negative, by Horn's theorem. Per rank it is {slack[-1] / len(slack):.2g} in log units: 0 where "
                "features and weights share their directions, larger where the layer mixes them.",
                series=Series(
                    x=ranks,
                    measured=tuple(slack),
                    x_label="rank k",
                    y_label="slack of the first k",
                    low=(0.0,) * len(slack),
                    high=(float("inf"),) * len(slack),
                ),
            )
    for name, (x, w, y) in spectra.items():
        yield replace(_condition(name, x, w, y, layers[name].in_features), stderr=errors[name][1])
    for name, (x, w, y) in spectra.items():
        if min(len(x), len(w), len(y)) > 1:
            yield replace(_exponent(name, x, w, y, layers[name].in_features), stderr=errors[name][2])


def _errors(x: Tensor, layer: nn.Linear, share: float) -> tuple[float, ...]:
    """What seeing a share of the samples alone costs the least slack, the condition number and the exponent.

    The rows are as many as ever, but others: two draws of so many differ by a root of two of the error of either.
    """
    if share >= 1 or len(x) < 8:
        return 0.0, 0.0, 0.0

    def three(rows: Any) -> list[float]:
        a, w, y = _spectra(x[rows], layer)
        slack = majorization_slack(y.tolist(), a.tolist(), w.tolist())
        return [
            min(slack, default=0.0),
            math.log(_kappa(y)),
            endpoint_exponent(_kappa(y), len(y)) if len(y) > 1 else 0.0,
        ]

    least, logs, exponent = (math.sqrt(2 * (1 - share)) * e for e in left_out_errors(three, len(x), of=10**9))
    kappa = _kappa(_spectra(x, layer)[2])
    # a condition number spreads by factors: three errors reach as far up as three of its logarithm
    return least, kappa * math.expm1(min(SIGMAS * logs, MOST_LOG)) / SIGMAS, exponent


def _condition(name: str, x: Tensor, w: Tensor, y: Tensor, inner: int) -> Reading:
    kappas = [_kappa(s) for s in (x, w, y)]
    applies = product_bound_applies(inner, len(x), len(w))
    bound = condition_number_bound(kappas[0], kappas[1]) if applies else None
    return Reading(
        quantity="condition number of the features after the layer",
        where=name,
        measured=kappas[2],
        expected=None if bound is None else Band(high=bound * (1 + 1e-6)),
        meaning=f"Features before the layer {kappas[0]:.3g}, weights {kappas[1]:.3g}, on non-zero singular values. "
        + ("At most the product of the two." if applies else _NOT_HERE),
    )


def _exponent(name: str, x: Tensor, w: Tensor, y: Tensor, inner: int) -> Reading:
    before, weight, behind = (endpoint_exponent(_kappa(s), len(s)) for s in (x, w, y))
    applies = product_bound_applies(inner, len(x), len(w))
    bound = feature_exponent_bound(_kappa(x), weight, weight_rank=len(w), feature_rank=len(y)) if applies else None
    density = f", a density exponent of {density_exponent(weight):.3g}" if weight > 0 else ""
    return Reading(
        quantity="rank exponent of the features after the layer",
        where=name,
        measured=behind,
        expected=None if bound is None else Band(high=bound + 1e-6),
        meaning=f"By end points: features before the layer {before:.3g}, weights {weight:.3g}{density}. Steeper weights, with a "
        "smaller density exponent, make steeper features. " + ("" if applies else _NOT_HERE),
    )


_NOT_HERE = (
    "Too few samples for so wide an input: the bound by condition numbers does not apply, only majorization does."
)


def _kappa(singular: Tensor) -> float:
    return (singular[0] / singular[-1]).item()


def _spectra(x: Tensor, layer: nn.Linear) -> tuple[Tensor, Tensor, Tensor]:
    x, w = x.double(), layer.weight.detach().double()
    return _singular(x), _singular(w), _singular(x @ w.T)


def _singular(matrix: Tensor) -> Tensor:
    values: Tensor = torch.linalg.svdvals(matrix).cpu()
    floor = max(matrix.shape) * torch.finfo(torch.float64).eps * values[0] * 10
    return values[values > floor] if values[0] > 0 else values[:1].clamp(min=1e-300)


instrument = Instrument(
    question="How do the spectra of features and weights depend on each other?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"features": 0},
    laws=("horn-majorization", "kappa-product", "htsr-alphareq-bound"),
)
