"""What helps a network whose layers lose signals or gradients: a critical initialization, or paths around its layers."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.construct.propagation.initialization import initialize_
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.question import Need
from theodolite.core.subject import Subject
from theodolite.evidence.experiment import Intervention, Outcome, finding_of, found_by
from theodolite.evidence.layer_signals import activation_in, signals, signals_at_start
from theodolite.evidence.start import largest_lr
from theodolite.evidence.thresholds import WORTH
from theodolite.evidence.trial import Change, present_skill
from theodolite.measure.propagation.one_pass import VitalSigns
from theodolite.theory.propagation.critical_points import criticality

CRITICAL_START, PATHS = "critical initialization", "paths around layers"


def has_critical(activation: str) -> bool:
    """Whether theory knows a critical initialization for this activation."""
    try:
        return criticality(activation).weight_variance is not None
    except (ValueError, TypeError, AttributeError):
        return False


def remedy_for(activation: str | None) -> tuple[str, dict[str, Any]]:
    """What to type, for people and for programs: the critical initialization, after another activation where there is none."""
    name = activation or "relu"
    if not has_critical(name):
        point = criticality("relu")
        text = f'relu in place of {name}, which no initialization carries through many layers; then th.initialize_(model, "relu")'
        return text, {"activation": "relu", "initialize": "relu", "weight_variance": point.weight_variance}
    point = criticality(name)
    return f'th.initialize_(model, "{name}")', {
        "initialize": name,
        "weight_variance": point.weight_variance,
        "bias_variance": point.bias_variance,
    }


def depth_interventions(
    subject: Subject, says: str, *, rank: int, where: str = "", also: str = "", paths: bool = False
) -> list[Intervention]:
    """The critical initialization, at its own step size, and where asked for paths around layers, for what ``says`` tells.

    Nothing that overwrites trained weights is offered to a network that has skill: with nothing known of its start it may be a
    pre-trained one. Where samples are normalized at several places, as in transformers, the sizes of weights do not set those of
    signals: there theory knows no critical initialization.
    """
    signs = signals_at_start(subject)
    if signs is None or is_normalized(subject.model) or (subject.origin is None and present_skill(subject) > WORTH):
        return []
    name = activation_in(signs) or "relu"
    last = signs.layers[-1].name if signs.layers else ""
    text, suggested = remedy_for(activation_in(signs))
    drawn = Change(CRITICAL_START, prepare=partial(_drawn_critically, name, last))

    def found(outcome: Outcome) -> Finding:
        slower = outcome.trial.change.lr
        lr = {} if slower == 1.0 else {"lr": _lr(subject, slower)}
        step = "" if slower == 1.0 else f", with lr={lr['lr']:g}"
        return finding_of(outcome, says, f"{text}{step}{also}", {**suggested, **lr}, where=where)

    arms = [
        Intervention(drawn, found, rank=rank, sign=True),
        Intervention(drawn.at_lr(0.1), found, rank=rank + 1, sign=True),
    ]
    if paths:
        around = Change(PATHS, prepare=with_paths)
        remedy = "a skip connection around every layer: x + layer(x), or fewer layers"
        arms.append(
            Intervention(around, found_by(says, remedy, {"residual": True}, where=where), rank=rank + 2, sign=True)
        )
    return arms


Told = Callable[[Subject, VitalSigns], tuple[str, str]]
"""What the signs of a network say is lost, and where; two empty strings where nothing is."""


def depth_ailment(
    told: Told, *, question: str, rank: int, also: str = "", paths: bool = False, **given: Any
) -> Ailment:
    """The ailment whose symptom ``told`` sees at the start of a training, and which a better start or paths may cure."""

    def asked(subject: Subject, signs: VitalSigns | None) -> tuple[str, str]:
        return ("", "") if signs is None else told(subject, signs)

    def interventions(subject: Subject) -> Iterator[Intervention]:
        says, where = asked(subject, signals_at_start(subject))
        if says:
            yield from depth_interventions(subject, says, rank=rank, where=where, also=also, paths=paths)

    def sign(subject: Subject) -> bool:
        return bool(asked(subject, signals(subject))[0])

    needs: set[Need] = {"model", "data", "loss"}
    return Ailment(question=question, needs=needs, interventions=interventions, sign=sign, **given)


def is_normalized(model: nn.Module | None) -> bool:
    """Whether each sample is normalized by itself at two places or more."""
    modules = [] if model is None else list(model.modules())
    return sum(type(m).__name__.endswith(("LayerNorm", "RMSNorm")) for m in modules) > 1


def _lr(subject: Subject, factor: float) -> float:
    return float(f"{largest_lr(subject) * factor:.2g}")


def _drawn_critically(activation: str, last: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that draws all weights anew, critically; activations that allow none become ReLU, but not behind ``last``."""
    optimizer.state.clear()
    name = activation
    if not has_critical(name):
        _replaced(model, name, last)
        name = "relu"
    for parameter in model.parameters():
        if parameter.ndim >= 2 and parameter.requires_grad and bool((parameter == parameter.flatten()[0]).all()):
            with torch.no_grad():  # matrices that a constant has filled
                parameter.normal_(0.0, 1.0 / math.sqrt(parameter[0].numel()))
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.reset_parameters()
    initialize_(model, name, generator=torch.Generator().manual_seed(0))


def _replaced(model: nn.Module, activation: str, last: str) -> None:
    behind = False
    for name, module in list(model.named_modules()):
        behind = behind or name == last
        if not behind and type(module).__name__.lower() == activation and name:
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, nn.ReLU())


def with_paths(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that puts a path around every layer whose output has the shape of its input, the layer scaled by its number."""
    layers = [m for m in model.modules() if isinstance(m, nn.Linear | nn.Conv1d | nn.Conv2d)]
    depth = math.sqrt(max(1, len(layers)))

    def around(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        return args[0] + output / depth if args[0].shape == output.shape else output

    for layer in layers:
        layer.register_forward_hook(around)
