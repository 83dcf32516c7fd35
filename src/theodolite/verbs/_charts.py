"""A chart from what people pass: a module, a subject, a state dict, or the path of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.ailments._common.chart import Chart
from theodolite.ailments._common.weight_facts import WeightFacts, facts_of_row
from theodolite.core.lazy_torch import is_module
from theodolite.core.model_wrappers import bare_model, prepared
from theodolite.core.subject import Subject
from theodolite.io.weights import state_of, weights_of

if TYPE_CHECKING:
    from torch import Tensor, nn

FACTS = ("origin", "steps", "history", "events", "lr", "device", "activation")


def chart_of(target: Any, *, budget: float, **facts: Any) -> tuple[Chart, str]:
    """The chart, and what to call its subject."""
    unknown = sorted(set(facts) - {*FACTS, "data", "loss", "optimizer", "validation"})
    if unknown:
        raise TypeError(f"expected facts among {', '.join(FACTS)}, got {', '.join(unknown)}; leave them out")
    given = {name: value for name, value in facts.items() if value is not None and name not in ("device", "activation")}
    lr = given.pop("lr", None)
    if isinstance(target, str | Path):
        from theodolite.io.loading import target as loaded

        data = given.pop("data", None)
        target = loaded(str(target), data=data, device=facts.get("device") or "cpu", loss=given.pop("loss", None))
    if isinstance(target, Subject):
        if (
            target.model is None
        ):  # nothing of a checkpoint, nor of its base, is read here: they may be larger than memory
            return Chart(weights=target.weights, budget=budget, facts=_known(target)), target.name
        own = {"data": target.data, "loss": target.loss, "origin": _tensors(target.origin)}
        given = {**{name: value for name, value in own.items() if value is not None}, **given}
        lr, name = lr or target.lr, target.name
        target = target.model
    elif is_module(target):
        name = type(bare_model(target)).__name__
    elif isinstance(target, Mapping):
        return Chart(weights=weights_of(state_of(target)), budget=budget), "state dict"
    else:
        raise TypeError(
            f"expected an nn.Module, a Subject, a state dict or a path, got {type(target).__name__}; pass the model"
        )
    if lr is not None and "optimizer" not in given:
        given["optimizer"] = _descent(target, lr)
    if is_module(given.get("origin")):
        given["origin"] = given["origin"].state_dict()
    return Chart(_whole(target, given), budget=budget, **given), name


def _known(subject: Subject) -> dict[str, WeightFacts]:
    """What a pass over the weights has found of each tensor."""
    from theodolite.instruments._common.weights import seen_before

    rows = seen_before(subject, "weight_facts")
    return {name: facts_of_row(row) for name, row in rows.items() if row is not None}


def _whole(model: nn.Module, given: dict[str, Any]) -> nn.Module:
    """The bare model, made where it waits for its first batch; data that are a path become what the file holds."""
    made, data, loss = prepared(bare_model(model), given.get("data"), given.get("loss"))
    given.update({name: value for name, value in (("data", data), ("loss", loss)) if value is not None})
    return made


def _descent(model: nn.Module, lr: float) -> Any:
    """Plain descent, where only a step size was told."""
    import torch

    own = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.SGD(own, lr=lr) if own else None


def _tensors(origin: Any) -> dict[str, Tensor] | None:
    if not origin:
        return None
    return {name: weight.read() for name, weight in origin.items()}
