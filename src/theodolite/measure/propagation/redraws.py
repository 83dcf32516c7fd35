"""A copy of a model, initialized afresh many times: how gradients differ between draws of the weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, at_least, finite_values
from theodolite.core.model_wrappers import copied_model
from theodolite.core.state import untouched
from theodolite.measure.functional import first_tensor, plain_attention


@dataclass(frozen=True)
class GradientDraws:
    """Squared norms of input gradients (draws, inputs), and the names of modules that could not be initialized afresh."""

    squares: Tensor
    kept: tuple[str, ...]


def redrawn_gradients(
    model: nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any], *, draws: int, seed: int = 0
) -> GradientDraws:
    """Squared norms of the gradient of the first output by each sample, for freshly initialized copies of the model.

    Every module with ``reset_parameters`` is initialized as its own code does; others keep their weights and are named.
    The model given is not touched: it is copied once. In evaluation mode, so samples do not mix.
    """
    at_least(1, draws=draws)
    if not inputs or not isinstance(inputs[0], Tensor) or not inputs[0].is_floating_point():
        raise InputError("expected inputs of real numbers to take gradients by, got others; give embedded inputs")
    with untouched(None), plain_attention():
        fresh = copied_model(model).eval()
        kept = _kept(fresh)
        torch.manual_seed(seed)
        rows = []
        for _ in range(draws):
            for module in fresh.modules():
                reset = _resets(module)
                if callable(reset):
                    reset()
            x = inputs[0].detach().clone().requires_grad_()
            z = first_tensor(fresh(x, *inputs[1:], **keywords))
            (gradient,) = torch.autograd.grad(z.reshape(len(z), -1)[:, 0].sum(), x)
            rows.append(gradient.detach().double().flatten(1).square().sum(1).cpu())
    return GradientDraws(torch.stack(rows), kept)


def log_spread(squares: Tensor) -> tuple[float, float]:
    """The variance between draws of the log of each column, averaged over columns, and its standard error (jackknife).

    Draws in which a gradient is exactly zero, dead networks, are left out.
    """
    if squares.ndim != 2:
        raise InputError(f"expected squares of gradients as (draws, columns), got shape {tuple(squares.shape)}")
    finite_values(squares=squares)
    alive = squares[(squares > 0).all(1)]
    if len(alive) < 8:
        raise InputError(
            f"expected at least 8 draws with gradients, got {len(alive)} of {len(squares)}; the network is mostly dead: widen it"
        )
    centered = alive.log() - alive.log().mean(0)
    n = len(centered)
    parts = centered.square()
    total = parts.sum(0)
    whole = float((total / (n - 1)).mean())
    # leaving one draw out of a variance: its square counts n/(n-1) times
    left_out = ((total - parts * n / (n - 1)) / (n - 2)).mean(1)
    return whole, float(((n - 1) * left_out.var(unbiased=False)).sqrt())


def _resets(module: nn.Module) -> Any:
    return getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)


def _kept(model: nn.Module) -> tuple[str, ...]:
    own = [
        (name, module) for name, module in model.named_modules() if any(True for _ in module.parameters(recurse=False))
    ]
    kept = tuple(name or type(module).__name__ for name, module in own if not callable(_resets(module)))
    if len(kept) == len(own):
        raise InputError(
            "expected a module with reset_parameters, got none; give your modules that method to see how draws differ"
        )
    return kept
