"""Ailments of the data: the network and its training are in order."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from .case import Case, grades
from .data import Data, generator_of
from .recipe import Setup
from .sites import SITES

SGD = {"optimizer": "sgd", "momentum": 0.9}


def stretched(scale: float, offset: float) -> Callable[[Data], Data]:
    """Inputs in other units: all of them times scale plus offset."""
    return lambda data: replace(data, x=data.x * scale + offset, x_held=data.x_held * scale + offset)


def units(spread: float) -> Callable[[Data], Data]:
    """Columns in their own units, their sizes from 1 to `spread`, none centered."""

    def edit(data: Data) -> Data:
        scale = torch.logspace(0, torch.log10(torch.tensor(spread)).item(), data.x.shape[1])
        return replace(data, x=(data.x + 2) * scale, x_held=(data.x_held + 2) * scale)

    return edit


def holes(share: float, value: float = float("nan")) -> Callable[[Data], Data]:
    """This share of the samples (at least one) has an entry that is no number."""

    def edit(data: Data) -> Data:
        x = data.x.clone()
        rows = torch.randperm(len(x), generator=generator_of(30))[: max(int(share * len(x)), 1)]
        x.view(len(x), -1)[rows, x[0].numel() // 2] = value
        return replace(data, x=x)

    return edit


def _mixed(y: Tensor, share: float, seed: int) -> Tensor:
    """Labels of which this share changes places among themselves."""
    g = generator_of(seed)
    rows = torch.randperm(len(y), generator=g)[: int(share * len(y))]
    y = y.clone()
    y[rows] = y[rows[torch.randperm(len(rows), generator=g)]]
    return y


def unrelated(share: float) -> Callable[[Data], Data]:
    """This share of the labels belongs to other inputs, in both parts."""
    return lambda data: replace(data, y=_mixed(data.y, share, 31), y_held=_mixed(data.y_held, share, 32))


def conflicting(share: float) -> Callable[[Data], Data]:
    """This share of the training set is a copy of an input of the rest, under another label."""

    def edit(data: Data) -> Data:
        n = int(share * len(data.x))
        x, y = data.x.clone(), data.y.clone()
        x[-n:] = x[:n]
        if data.kind == "numbers":
            y[-n:] = y[:n] + torch.where(torch.arange(n) % 2 == 0, 2.0, -2.0)[:, None]
        else:
            y[-n:] = (y[:n] + 1 + torch.arange(n) % (data.outputs - 1)) % data.outputs
        return replace(data, x=x, y=y)

    return edit


def has_conflicts(setup: Setup) -> bool:
    """Whether at least a tenth of the distinct inputs stands under two labels."""
    x, y = setup.loader.x.flatten(1), setup.loader.y
    _, which = torch.unique(x, dim=0, return_inverse=True)
    order = which.argsort()
    same = which[order][1:] == which[order][:-1]
    other = (y[order][1:] != y[order][:-1]).flatten(1).any(1) if y.dim() > 1 else y[order][1:] != y[order][:-1]
    return float((same & other).sum() / which.max()) >= 0.1


def unbalanced(share: float) -> Callable[[Data], Data]:
    """The rarer classes thinned until the first class holds this share of the training set; the held-out part as it was."""

    def edit(data: Data) -> Data:
        first = (data.y == 0).nonzero().flatten()
        rest = (data.y != 0).nonzero().flatten()
        keep = max(round(len(first) * (1 - share) / share), data.outputs - 1)
        rows = torch.cat([first, rest[:keep]])
        rows = rows[torch.randperm(len(rows), generator=generator_of(33))]
        return replace(data, x=data.x[rows], y=data.y[rows])

    return edit


def targets(scale: float, offset: float) -> Callable[[Data], Data]:
    """Targets in other units."""
    return lambda data: replace(data, y=data.y * scale + offset, y_held=data.y_held * scale + offset)


def _inputs_not_scaled() -> list[Case]:
    plain = SGD | {"lr": 0.01}
    cases = []
    for site in ("mlp/mnist", "cnn/fashion", "mlp-tanh/digits"):
        base = replace(SITES[site], **plain)
        cases += grades(
            "inputs-not-scaled",
            base,
            mild={"edit_data": (stretched(25, 40),)},
            severe={"edit_data": (stretched(80, 90),)},
            also=("units-saturated", "units-dead", "signal-explodes", "step-too-large", "gradient-explodes"),
        )
    for site in ("mlp/clusters", "regression/friedman", "mlp-tanh/breast-cancer", "regression-norm/housing"):
        cases += grades(
            "inputs-not-scaled",
            site,
            kind="units",
            mild={"edit_data": (units(300.0),)},
            severe={"edit_data": (units(1e6),)},
            also=("units-saturated", "units-dead", "signal-explodes", "step-too-large", "gradient-explodes"),
        )
    return cases


def _inputs_not_finite() -> list[Case]:
    cases = []
    for site in ("mlp/digits", "cnn/digits", "regression/housing", "gru/tones", "autoencoder/mnist-itself"):
        value = float("inf") if site.startswith(("cnn", "gru")) else float("nan")
        cases += grades(
            "inputs-not-finite",
            site,
            mild={"edit_data": (holes(0.0, value),)},
            severe={"edit_data": (holes(0.05, value),)},
            also=("weights-not-finite",),
        )
    return cases


def _labels() -> list[Case]:
    cases = []
    for site in ("mlp/digits", "cnn/mnist", "regression/friedman", "cnn-bn/mnist", "gru/tones"):
        steps = SITES[site].steps // 2
        cases += grades(
            "labels-unrelated",
            site,
            mild={"edit_data": (unrelated(0.85),), "steps": steps},
            severe={"edit_data": (unrelated(1.0),), "steps": steps},
            also=("loss-stalls", "memorises-noise", "overfits"),
        )
    for site in ("mlp/digits", "regression/friedman", "cnn-bn/digits", "mlp-tanh/clusters"):
        cases += grades(
            "labels-conflict",
            site,
            mild={"edit_data": (conflicting(0.15),)},
            severe={"edit_data": (conflicting(0.45),)},
            fact="at least a tenth of the inputs stands in the training set under two labels",
            holds=has_conflicts,
            also=("loss-stalls", "memorises-noise"),
        )
    return cases


def _unbalanced() -> list[Case]:
    cases = []
    for site in ("mlp/mnist", "mlp/breast-cancer", "cnn-bn/mnist", "mlp-tanh/clusters", "gru/tones"):
        cases += grades(
            "classes-unbalanced",
            site,
            mild={"edit_data": (unbalanced(0.9),)},
            severe={"edit_data": (unbalanced(0.99),)},
            fact="one class holds nine tenths of the training set or more, and the mean accuracy over classes falls",
            balanced=True,
            also=("overfits", "memorises-noise"),
        )
    return cases


def _targets_not_scaled() -> list[Case]:
    cases = []
    sites = ("regression/friedman", "regression/diabetes", "regression-norm/housing", "autoencoder/mnist-itself")
    for site in (*sites, "autoencoder-narrow/digits-itself"):
        cases += grades(
            "targets-not-scaled",
            site,
            mild={"edit_data": (targets(80, 90) if "auto" in site else targets(300, 1000),)},
            severe={"edit_data": (targets(2e5, 1e6),)},
            also=("step-too-small", "gradient-explodes", "trained-too-short", "loss-stalls"),
        )
    cases += grades(
        "targets-not-scaled",
        replace(SITES["regression/friedman"], **SGD, lr=0.01),
        kind="sgd",
        mild={"edit_data": (targets(30, 100),)},
        severe={"edit_data": (targets(2e5, 1e6),)},
        also=("step-too-large", "gradient-explodes", "units-dead"),
    )
    return cases


def cases() -> list[Case]:
    """All cases whose data are at fault."""
    return [*_inputs_not_scaled(), *_inputs_not_finite(), *_labels(), *_unbalanced(), *_targets_not_scaled()]
