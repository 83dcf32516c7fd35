r"""The linear map at the end of a model, and what it is given: the last linear layer, or the whole model where it is linear."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.measure.propagation import layer_inputs

WIDEST = 4096
"""Inputs of more dimensions than this are not fed one by one to find the map."""


@dataclass(frozen=True)
class Readout:
    """Features (samples, d) with 1 as the last where there is a bias, and the map (outputs, d), in double precision."""

    name: str
    features: Tensor
    weight: Tensor
    bias: bool
    whole: bool  # the model is linear in its inputs: there is no layer before


def _linear_map(model: nn.Module, x: Tensor) -> Tensor | None:
    """The weights (outputs, d + 1), bias last, of a model that is affine in its inputs, or None where it is not.

    Any parametrization counts: a linear layer, a product of layers, a diagonal network. Told on the samples themselves:
    $f(x)+f(x')-f(0)=f(x+x')$ to rounding, and $f(x)$ by the map found.
    """
    if x.ndim != 2 or not x.is_floating_point() or x.shape[1] > WIDEST or len(x) < 2:
        return None
    with torch.no_grad():
        zero = model(torch.zeros_like(x[:1]))
        if not isinstance(zero, Tensor) or not 1 <= zero.ndim <= 2:
            return None
        half = len(x) // 2
        first, second = x[:half], x[half : 2 * half]
        both, whole = model(first) + model(second) - zero, model(first + second)
        size = float(both.abs().max()) + float(whole.abs().max())
        near = 1e-4 if x.dtype != torch.float64 else 1e-9
        if not float((both - whole).abs().max()) <= near * size:
            return None
        columns = model(torch.eye(x.shape[1], dtype=x.dtype, device=x.device)) - zero
    columns, zero = columns.reshape(x.shape[1], -1), zero.reshape(1, -1)
    return torch.cat([columns, zero]).T.double().cpu()


def readout(model: nn.Module, run: Callable[[], Any], x: Any) -> Readout | None:
    """The whole model where it is affine in x, else its last linear layer with what that is given when ``run`` runs."""
    if isinstance(x, Tensor):
        found = _linear_map(model, x)
        if found is not None:
            bias = bool(found[:, -1].abs().max() > 0)
            return _readout("the whole model", x, found if bias else found[:, :-1], bias, whole=True)
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    if not layers:
        return None
    name = list(layers)[-1]
    given = layer_inputs(run, {name: layers[name]}).get(name)
    if given is None:
        return None
    layer = layers[name]
    shift: Tensor | None = layer._parameters["bias"]  # torch annotates it as always there
    weight = layer.weight.detach() if shift is None else torch.cat([layer.weight, shift[:, None]], 1).detach()
    return _readout(name, given, weight, shift is not None, whole=False)


def _readout(name: str, features: Tensor, weight: Tensor, bias: bool, *, whole: bool) -> Readout:
    rows = features.detach().double().cpu()
    if bias:
        rows = torch.cat([rows, torch.ones(len(rows), 1, dtype=rows.dtype)], 1)
    return Readout(name, rows, weight.double().cpu(), bias, whole)
