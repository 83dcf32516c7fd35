"""What helps a network whose layers lose signals or gradients: a critical initialization, or paths around its layers."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.construct.propagation.initialization import initialize_
from theodolite.core.ailment import Ailment, Finding
from theodolite.core.question import Need
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows
from theodolite.evidence.drawn_outputs import quiet
from theodolite.evidence.interventions import Intervention, Outcome, finding_of, found_by
from theodolite.evidence.layer_signals import activation_in, merged_places, signals, signals_at_start
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


def remedy_since_training(word: str) -> str:
    """What to look at where training made units so: which step or scale is to blame is what the trials tell."""
    return f"look at the lr, the inputs and the loss at the start of the run: units were not {word} before training"


def depth_interventions(
    subject: Subject, says: str, *, rank: int, where: str = "", also: str = "", paths: bool = False
) -> list[Intervention]:
    """The critical initialization, at its own step size, and where asked for paths around layers, for what ``says`` tells.

    Nothing that overwrites trained weights is offered to a network that has skill: with nothing known of its start it may be a
    pre-trained one. Where samples are normalized at several places, as in transformers, the sizes of weights do not set those of
    signals: there theory knows no critical initialization, and paths only where the places of a sample have become the same.
    """
    signs = signals_at_start(subject)
    if signs is None or (subject.origin is None and present_skill(subject) > WORTH):
        return []
    around = []
    if paths:
        change = Change(PATHS, prepare=partial(with_paths, _without_paths(subject)))
        remedy = "a skip connection around every layer: x + layer(x), or fewer layers"
        found = found_by(says, remedy, {"residual": True}, where=where)
        around = [Intervention(change, found, rank=rank + 2, sign=True)]
    if is_normalized(subject.model):
        return around if merged_places(signs) else []
    name = activation_in(signs) or "relu"
    last = signs.layers[-1].name if signs.layers else ""
    text, suggested = remedy_for(activation_in(signs))
    drawn = Change(CRITICAL_START, prepare=partial(_drawn_critically, name, last))

    def drawn_found(outcome: Outcome) -> Finding:
        factor = outcome.trial.change.lr
        lr = {} if factor == 1.0 else {"lr": _lr(subject, factor)}
        step = "" if factor == 1.0 else f", with lr={lr['lr']:g}"
        return finding_of(outcome, says, f"{text}{step}{also}", {**suggested, **lr}, where=where)

    slower = Intervention(drawn.at_lr(0.1), drawn_found, rank=rank + 1, sign=True)
    return [Intervention(drawn, drawn_found, rank=rank, sign=True), slower, *around]


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


def _without_paths(subject: Subject) -> list[str]:
    """Layers whose output has the shape of their input, then the smallest parts that hold other layers and keep the shape, too.

    No part of those has the first layer or the last: a path around it would hand on the inputs themselves.
    """
    model, ran, alike = subject.model, list[str](), list[str]()
    batch = first_rows(batches(subject)[0], 2)

    def note(name: str, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if isinstance(module, _LAYERS):
            ran.append(name)
        if args and isinstance(args[0], Tensor) and isinstance(output, Tensor) and args[0].shape == output.shape:
            alike.append(name)

    with untouched(model), torch.no_grad(), quiet():
        for name, module in model.named_modules():
            module.register_forward_hook(partial(note, name))
        subject.answer(batch)
    found = [name for name in ran if name in alike]
    rest = set(ran) - set(found)
    for name in sorted(set(alike) - set(ran), key=lambda name: (-name.count("."), name)):
        inside = {layer for layer in ran if layer.startswith(f"{name}.")}
        if inside & rest and not inside & {ran[0], ran[-1]}:
            found.append(name)
            rest -= inside
    return found


_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d)


def with_paths(names: Sequence[str], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that puts a path around each of these parts of a network, the part scaled by their number."""
    depth = math.sqrt(max(1, len(names)))

    def around(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        return args[0] + output / depth

    for name in names:
        model.get_submodule(name).register_forward_hook(around)
