"""Are there trainable parameters with a gradient that no group of the optimizer holds?

Exact: a parameter that no group holds never changes. One that does not require a gradient is frozen on purpose and is not named.
How much it matters is tried: the same training with those parameters in a group of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from theodolite.ailments._common.chart import Chart, seen
from theodolite.ailments._common.patients import patient
from theodolite.ailments._common.trials import SHORT, beside, does_well, steps_made
from theodolite.core.ailment import Ailment, Finding

LEAST, MUCH = 0.05, 0.2
"""What adding the parameters must take off the loss for their absence to be more than a note; and where the model does well."""
NAMED = 4


def judge(chart: Chart) -> Iterator[Finding]:
    assert chart.model is not None and chart.optimizer is not None
    held = {id(p) for group in chart.optimizer.param_groups for p in group["params"]}
    own = {name: p for name, p in chart.model.named_parameters() if p.requires_grad}
    signs = chart.now
    idle = set() if signs is None else {*signs.untouched, *signs.zero}
    missing = {n: p for n, p in own.items() if id(p) not in held and n not in idle and not _moved(chart, n, p)}
    if not missing:
        return
    share = sum(p.numel() for p in missing.values()) / sum(p.numel() for p in own.values())
    names = list(missing)
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    none = not any(id(p) in held for p in chart.model.parameters())
    tried = None if none else beside(chart, "all in optimizer", _with_all(names), steps=SHORT)
    matters = tried is not None and tried.is_better(LEAST)
    whole = " None of the model's parameters is in it: no step changes the model." if none else ""
    gained = (
        ""
        if not matters or tried is None
        else (
            f" With them, {len(tried.changed.losses)} steps on a copy take the loss to {tried.changed.after:.3g} "
            f"instead of {tried.as_it_is.after:.3g}."
        )
    )
    fails = tried is not None and matters and not tried.as_it_is.certain > 0
    much = matters and tried is not None and tried.is_better(MUCH)
    note = not matters or (steps_made(chart) > 0 and does_well(chart) and not much)
    yield Finding(
        severity="critical" if none or fails else "note" if note else "warning",
        where=names[0],
        says=f"{len(names)} trainable parameter{'s' * (len(names) > 1)} ({share:.0%} of the numbers) are in no group of the "
        f"optimizer and stay as they are: {shown}.{whole}{gained}",
        remedy="optimizer = "
        + type(chart.optimizer).__name__
        + "(model.parameters(), ...), made after the last layer was "
        "added; p.requires_grad_(False) for those that are to stay",
        suggested={"add_to_optimizer": names},
        evidence=(seen("share of trainable numbers in no group", share),),
    )


def _moved(chart: Chart, name: str, parameter: torch.Tensor) -> bool:
    """Whether a parameter is not what it was at the start: another optimizer holds it."""
    start = None if chart.origin is None else chart.origin.get(name)
    return start is not None and not torch.equal(start.to(parameter), parameter.detach())


def _with_all(names: list[str]) -> Any:
    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        own = dict(model.named_parameters())
        first = optimizer.param_groups[0]
        rest = {name: value for name, value in first.items() if name not in ("params", "param_names")}
        optimizer.add_param_group({"params": [own[name] for name in names], **rest})

    return change


def _without_first(seed: int) -> Mapping[str, Any]:
    return patient(seed, lambda own: torch.optim.SGD(list(own)[4:], 0.1), steps=150)


def _frozen(seed: int) -> Mapping[str, Any]:
    found = patient(seed, lambda own: torch.optim.SGD(list(own)[2:], 0.1), steps=150)
    for p in list(found["model"].parameters())[:2]:
        p.requires_grad_(False)
    return found


ailment = Ailment(
    question="Are trainable parameters missing from the optimizer?",
    needs={"model", "data", "loss", "optimizer"},
    signs=("now", "trial"),
    judge=judge,
    examples={
        "sick": (
            _without_first,
            lambda seed: patient(seed, lambda own: torch.optim.Adam([nn.Parameter(torch.ones(1))])),
        ),
        "healthy": (_frozen, lambda seed: patient(seed, lambda own: torch.optim.Adam(own, 1e-3))),
    },
    explains=("loss-stalls", "layer-untrained", "trained-too-short", "too-narrow", "rank-lost", "step-too-small"),
)
