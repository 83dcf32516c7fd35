r"""Does a low-rank adapter do nothing: both factors zero, scale zero, or not attached?

An adapter adds $s\,BA$ to a weight. The gradient of A is proportional to B and that of B to A, so if both are zero neither ever
moves. If the scale s is zero, or the adapter is switched off, neither gets a gradient. An adapter that starts as it should has
one factor at zero, and that factor does get a gradient. One backward pass therefore shows exactly whether the adapter is idle,
and why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.batches import slopes_of
from theodolite.evidence.task import is_finite
from theodolite.evidence.thresholds import STILL
from theodolite.io.adapters import DOWN, UP


@dataclass(frozen=True)
class _Adapter:
    module: str
    down: Tensor
    up: Tensor


def adapters_in(model: nn.Module) -> list[_Adapter]:
    """The pairs of factors of a model: by their names, else by their shapes beside a frozen matrix."""
    own, found = dict(model.named_parameters()), []
    for name, down in own.items():
        match = DOWN.match(name)
        if match is None:
            continue
        start = name[: match.start("word")] + UP[match["word"]] + name[match.end("word") :]
        if start in own:
            found.append(_Adapter(match["module"], down, own[start]))
    return found or [one for name, module in model.named_modules() if (one := _beside_a_frozen_matrix(name, module))]


def _beside_a_frozen_matrix(name: str, module: nn.Module) -> _Adapter | None:
    """Two thin factors of a frozen matrix's shape, trained or with one of them at zero, and no other matrix beside them.

    A convolution is the matrix of its patches: the factors are one to a few channels and one of single pixels behind it.
    """
    matrices = sorted((p for p in module.parameters() if p.ndim > 1), key=lambda p: p.numel())
    if len(matrices) != 3 or matrices[2].requires_grad:
        return None
    down, up, whole = matrices
    (outputs, inputs), rank = whole.flatten(1).shape, min(down.flatten(1).shape)
    shapes = {tuple(down.flatten(1).shape), tuple(up.flatten(1).shape)}
    thin = rank < min(outputs, inputs) and shapes in (
        {(rank, inputs), (outputs, rank)},
        {(inputs, rank), (rank, outputs)},
    )
    used = down.requires_grad or up.requires_grad or not down.any() or not up.any()
    return _Adapter(name, down, up) if thin and used else None


def judge(subject: Subject) -> Iterator[Finding]:
    model = subject.model
    if model is None or not is_finite(subject):
        return
    own = adapters_in(model)
    if not own:
        return
    moving = _with_gradient(subject, own)
    idle = [one for one in own if id(one.down) not in moving and id(one.up) not in moving]
    if not idle:
        return
    why, remedy = _reason(model, idle)
    yield Finding(
        severity="critical" if len(idle) == len(own) else "warning",
        where=idle[0].module,
        says=f"{len(idle)} of {len(own)} adapters do nothing and never will: {why}.",
        remedy=remedy,
        evidence=(evidence("adapters without a gradient in either factor", len(idle)),),
    )


def _with_gradient(subject: Subject, own: list[_Adapter]) -> set[int]:
    """The factors whose gradient is not zero on the first batch, by identity."""
    factors = [t for one in own for t in (one.down, one.up) if t.requires_grad]
    slopes = slopes_of(subject, factors)
    return {id(t) for t, slope in zip(factors, slopes, strict=True) if slope is not None and bool(slope.any())}


def _reason(model: nn.Module, idle: list[_Adapter]) -> tuple[str, str]:
    if all(not one.down.any() and not one.up.any() for one in idle):
        return "both factors are zero, so neither gets a gradient", (
            "initialize one of them: nn.init.kaiming_uniform_(lora_A, a=5**0.5), and leave the other at zero"
        )
    if all(not (one.down.requires_grad or one.up.requires_grad) for one in idle):
        return (
            "they are frozen (requires_grad=False)",
            "p.requires_grad_(True) for the factors, before creating the optimizer",
        )
    layers = [model.get_submodule(one.module) for one in idle if _has(model, one.module)]
    if any(_switched_off(layer) for layer in layers):
        return (
            "they are switched off or merged",
            "model.enable_adapter_layers(), or model.set_adapter(name); unmerge first",
        )
    scales = [scale for layer in layers for scale in _scales(layer)]
    if scales and max(map(abs, scales)) < STILL:
        return f"their scale is {max(scales, key=abs):g}", "set lora_alpha to the rank, or twice the rank"
    return "their output does not reach the loss", (
        "attach them: get_peft_model(model, config) and train what it returns, or add scale * B(A(x)) in forward"
    )


def _has(model: nn.Module, name: str) -> bool:
    return name in dict(model.named_modules())


def _switched_off(layer: Any) -> bool:
    return bool(getattr(layer, "disable_adapters", False) is True or getattr(layer, "merged", False) is True)


def _scales(layer: Any) -> list[float]:
    found = getattr(layer, "scaling", None)
    found = list(found.values()) if isinstance(found, Mapping) else [found]
    return [float(value) for value in found if isinstance(value, int | float)]


ailment = Ailment(question="Does an adapter do nothing?", needs={"model", "data", "loss"}, judge=judge, exact=True)
