"""What the ailments of the network share: how much was learnt, the critical initialization and paths around layers as trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments._common.chart import Chart, at_weights
from theodolite.ailments._common.trials import TrialComparison, compared, with_lr
from theodolite.construct.propagation.initialization import initialize_
from theodolite.measure.dynamics.trial_runs import Loss, TrialRun, trial_run
from theodolite.measure.propagation.one_pass import LayerSigns, VitalSigns
from theodolite.theory.propagation.critical_points import criticality

LEARNT, LITTLE = 0.5, 0.1
"""Shares of the way from the best constant answer to a perfect one: above the first a fault has not stopped it, below the second
nothing was learnt."""


Change = Callable[[nn.Module, torch.optim.Optimizer], None]
STEPS = 120
"""Steps of a trial that must show whether a deep network trains at all."""

SOON = 0.2
"""The share of the loss that the remedy takes off in a short trial for which no longer one is made."""


def learnt(chart: Chart, *, held_out: bool = False) -> float:
    """The share of the way from the best constant answer to a perfect one that the model has gone on its training data.

    By loss and, where targets are classes, by accuracy: the better of the two. Not a number where neither can be told.
    ``held_out`` asks the same of the validation data, where there are any.
    """
    if chart.fit is None:
        return math.nan
    scores = chart.fit.validation if held_out and chart.fit.validation is not None else chart.fit.training
    shares = []
    loss, chance = scores.loss, chart.chance
    if math.isfinite(chance) and chance > 0 and math.isfinite(loss):
        shares.append(1.0 - loss / chance)
    accuracy, majority = scores.accuracy, chart.fit.majority
    if accuracy == accuracy and majority < 1:
        shares.append((accuracy - majority) / (1 - majority))
    return max(shares, default=math.nan)


def is_fit(chart: Chart, enough: float = LEARNT) -> bool:
    """Whether the model has learnt its training data well enough that nothing can be in its way."""
    return learnt(chart) >= enough


def is_fit_everywhere(chart: Chart, enough: float) -> bool:
    """Whether that much was learnt on training data and on held-out data, where there are any: nothing can have cost it much."""
    return min(learnt(chart), learnt(chart, held_out=True)) >= enough


def severity(chart: Chart) -> Any:
    """Critical where nothing was learnt, else a warning."""
    share = learnt(chart)
    return "critical" if not share >= LITTLE else "warning"


def hidden(signs: VitalSigns) -> tuple[LayerSigns, ...]:
    """The layers before the last that ran."""
    return signs.layers[:-1]


def activation_in(signs: VitalSigns) -> str | None:
    """The activation that most hidden layers have."""
    names = Counter(layer.activation for layer in hidden(signs) if layer.activation)
    return names.most_common(1)[0][0] if names else None


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
        text = f'relu in place of {name}, which has no critical initialization; then th.initialize_(model, "relu")'
        return text, {"activation": "relu", "initialize": "relu", "weight_variance": point.weight_variance}
    point = criticality(name)
    return f'th.initialize_(model, "{name}")', {
        "initialize": name,
        "weight_variance": point.weight_variance,
        "bias_variance": point.bias_variance,
    }


def reinitialized(chart: Chart) -> TrialComparison | None:
    """Training from the critical initialization beside training as it is; None where it cannot be tried."""
    if chart.start is None:
        return None
    name = activation_in(chart.start) or "relu"
    last = chart.start.layers[-1].name if chart.start.layers else ""
    change = critical_change(name, last)
    soon = compared(chart, "critical initialization", change)
    if soon is None or soon.is_better(SOON):
        return soon
    tried = compared_longer(chart, "critical initialization", change)
    if tried is None or tried.changed.after < tried.changed.before:
        return tried

    def slower(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        change(model, optimizer)
        with_lr(0.1)(model, optimizer)

    return compared_longer(chart, "critical initialization, lr x 0.1", slower)


def around_layers(chart: Chart) -> TrialComparison | None:
    """Training with a path around every layer beside training as it is."""
    return compared_longer(chart, "paths around layers", with_paths)


def remedy_of_depth(
    chart: Chart, signs: VitalSigns, share: float
) -> tuple[str, dict[str, Any], TrialComparison | None]:
    """The critical initialization or paths around layers, with the trial in which that lowers the loss by this share or more.

    Without such a trial it is what theory says first; paths where the initialization was tried and did not help.
    """
    tried = reinitialized(chart)
    if tried is not None and tried.is_better(share):
        return *remedy_for(activation_in(signs)), tried
    other = around_layers(chart)
    if other is not None and not other.is_better(share):
        other = None
    if other is None and tried is None:
        return *remedy_for(activation_in(signs)), None
    return "a path around every layer: x + layer(x), or fewer layers", {"residual": True}, other


def compared_longer(
    chart: Chart, what: str, change: Change | None, *, loss: Loss | None = None
) -> TrialComparison | None:
    """A trial with a change beside one without, both from the start and over the batches again until `STEPS` steps are made."""
    plain, other = longer_trial(chart, "as it is"), longer_trial(chart, what, change, loss=loss)
    return None if plain is None or other is None else TrialComparison(plain, other)


def longer_trial(chart: Chart, what: str, change: Change | None = None, *, loss: Loss | None = None) -> TrialRun | None:
    """`Chart.trial` from the start with more steps, for what a few cannot show; None where no time or optimizer is left."""
    key = f"{what}, longer"
    if key not in chart._trials:
        cut = max(1, len(chart.batches) // 4)
        rounds = max(1, round(STEPS / max(1, len(chart.batches) - cut)))
        few, held_out = chart.batches[cut:] or chart.batches, chart.batches[:cut]

        def again(model: nn.Module, batch: Any) -> Tensor:
            return (loss or chart.loss_on)(model, batch)

        chart._trials[key] = _repeated(chart, change, again, training=few * rounds, held_out=held_out)
    return chart._trials[key]


def _repeated(chart: Chart, change: Change | None, loss: Loss, *, training: Any, held_out: Any) -> TrialRun | None:
    if chart.model is None or chart.optimizer is None or chart.left < 0.1 * chart.budget:
        return None

    def changed(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if chart.origin is not None:
            optimizer.state.clear()
            for group in optimizer.param_groups:
                group["lr"] = group.get("initial_lr", chart.largest_lr or group["lr"])
        if change is not None:
            change(model, optimizer)

    with at_weights(chart.model, chart.origin):
        try:
            return trial_run(
                chart.model,
                chart.optimizer,
                loss,
                training=training,
                held_out=held_out,
                change=changed,
                most_seconds=min(chart.budget / 12, chart.left / 2),
            )
        except (RuntimeError, ValueError, TypeError, IndexError):  # their own forward may refuse the change
            return None


def critical_change(activation: str, last: str) -> Change:
    """The change that draws all weights anew, critically; activations that allow none become ReLU, but not behind ``last``."""

    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
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

    return change


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


def thirds(values: list[float]) -> tuple[float, float]:
    """The medians of the first and of the last third."""
    cut = max(1, len(values) // 3)
    middle = [sorted(part)[len(part) // 2] for part in (values[:cut], values[-cut:])]
    return middle[0], middle[1]


def gradient_ratio(signs: VitalSigns) -> float:
    """The relative gradient of the first third of the layers beside that of the last; not a number for fewer than three."""
    relative = [layer.relative_gradient for layer in signs.layers]
    known = [value for value in relative if value is not None]
    if len(known) < 3 or len(known) < len(relative):
        return math.nan
    first, last = thirds(known)
    return first / last if last > 0 else math.nan


def signal_ratio(signs: VitalSigns) -> float:
    """The mean square of what the last layer is given beside that of what the first is given."""
    if len(signs.layers) < 2 or not signs.layers[0].input_square > 0:
        return math.nan
    return signs.layers[-1].input_square / signs.layers[0].input_square


def planned_steps(chart: Chart) -> int:
    """Steps made or planned; a thousand where nobody said."""
    seen = max((moment.step for moment in chart.history), default=0)
    return chart.steps or seen or 1000


def width_spread(signs: VitalSigns) -> float:
    """The deviation of the logarithm of a mean square that finite width explains at a critical initialization of ReLU."""
    return math.sqrt(sum(5.0 / layer.units for layer in hidden(signs)))


def weights_ratio(signs: VitalSigns) -> float:
    """The factor on a mean square that the hidden layers' weights alone would make, with half of the units open."""
    return math.prod(0.5 * layer.weight_norm**2 / layer.units for layer in hidden(signs))
