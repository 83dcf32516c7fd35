"""A script with a suggestion typed in, as a person would who believes it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from .data import Data
from .recipe import Recipe

TYPED = {
    "lr": "lr",
    "steps": "steps",
    "early_stopping": "steps",
    "batch_size": "batch",
    "weight_decay": "weight_decay",
    "clip": "clip",
    "momentum": "momentum",
    "loss": "loss",
    "shuffle": "shuffle",
}
OPTIMIZER = ("lr", "steps", "batch_size", "weight_decay", "clip", "momentum", "dropout", "statistics_momentum", "dtype")
NUMBERS = frozenset((*OPTIMIZER, "initialize", "activation", "weight_variance", "bias_variance"))
"""What a suggestion may hold that is a number to type or an initialization."""

Edit = Callable[[nn.Module], nn.Module | None]


def _set_everywhere(kind: type, name: str, value: float) -> Edit:
    def edit(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, kind):
                setattr(module, name, value)

    return edit


def _initialized(name: str) -> Edit:
    """`th.initialize_`, after recurrent layers and layers that a constant fills were drawn as PyTorch draws them."""

    def edit(model: nn.Module) -> None:
        import theodolite as th

        for module in model.modules():
            own = [p for p in module.parameters(recurse=False) if p.ndim > 1]
            if isinstance(module, nn.RNNBase) or any(bool((p == p.flatten()[0]).all()) for p in own):
                getattr(module, "reset_parameters", lambda: None)()
        th.initialize_(model, name)

    return edit


def _with_activation(name: str) -> Edit:
    """Every activation but one behind the last layer becomes this one."""
    kinds = (nn.Sigmoid, nn.Tanh, nn.ReLU, nn.GELU, nn.SiLU)

    def edit(model: nn.Module) -> None:
        kind = {kind.__name__.lower(): kind for kind in kinds}[name]
        modules = list(model.named_modules())
        last = max(place for place, (_, module) in enumerate(modules) if isinstance(module, nn.Linear | nn.Conv2d))
        for path, module in modules[:last]:
            if isinstance(module, kinds) and path:
                parent, _, own = path.rpartition(".")
                setattr(model.get_submodule(parent), own, kind())

    return edit


def _without_last(model: nn.Module) -> nn.Module:
    return model[0] if isinstance(model, nn.Sequential) and len(model) == 2 else model[:-1]


def _standardized(part: str) -> Callable[[Data], Data]:
    def scaled(x: Tensor, like: Tensor) -> Tensor:
        mean, deviation = like.float().mean(0), like.float().std(0)
        return (x.float() - mean) / deviation.clamp(min=1e-3 * float(deviation.max()))

    def edit(data: Data) -> Data:
        if part == "inputs":
            return replace(data, x=scaled(data.x, data.x), x_held=scaled(data.x_held, data.x))
        return replace(data, y=scaled(data.y, data.y), y_held=scaled(data.y_held, data.y))

    return edit


def cured(recipe: Recipe, suggested: dict[str, Any]) -> Recipe:
    """The script with a suggestion typed in, whose keys are those of a Finding's ``suggested``; weight_variance with
    bias_variance draw every matrix anew where no initialization is named."""
    changes: dict[str, Any] = {TYPED[key]: value for key, value in suggested.items() if key in TYPED}
    data, model = list(recipe.edit_data), list(recipe.edit_model)
    if "dtype" in suggested:
        changes["dtype"] = getattr(torch, str(suggested["dtype"]).removeprefix("torch."))
    if "activation" in suggested:
        model.append(_with_activation(suggested["activation"]))
    if "initialize" in suggested:
        model.append(_initialized(suggested["initialize"]))
    elif "weight_variance" in suggested:
        changes["drawn"] = (float(suggested["weight_variance"]), float(suggested.get("bias_variance") or 0.0))
    if "dropout" in suggested:
        model.append(_set_everywhere(nn.Dropout, "p", suggested["dropout"]))
    if "statistics_momentum" in suggested:
        model.append(_set_everywhere(nn.modules.batchnorm._BatchNorm, "momentum", suggested["statistics_momentum"]))
    if suggested.get("remove") == "last activation":
        model.append(_without_last)
    if "standardize" in suggested:
        data.append(_standardized(suggested["standardize"]))
    if suggested.get("schedule") == "constant":
        changes["decay"] = ""
    if suggested.get("zero_grad"):
        changes["zero_every"] = 1
    if suggested.get("squeeze"):
        changes["loss"] = "mean_squares"
    if suggested.get("add_to_optimizer"):
        changes["parameters"] = nn.Module.parameters
    known = {*TYPED, *NUMBERS, "remove", "standardize", "zero_grad", "squeeze", "add_to_optimizer", "schedule"}
    if set(suggested) - known:
        unknown = sorted(set(suggested) - known)
        raise ValueError(f"expected a suggestion of known numbers, got {unknown}: add them to cured")
    return replace(recipe, **changes, edit_data=tuple(data), edit_model=tuple(model))
