"""What attention layers do on a batch: how spread their rows are, and how many directions their tokens fill."""

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.state import untouched


@dataclass(frozen=True)
class AttentionSight:
    """One attention layer: ``entropies`` of each sample's rows over the largest possible (None where weights cannot be had).

    ``ranks`` are the effective ranks of each sample's matrix of ``tokens`` x ``width`` as the next attention layer, or the
    end of the block, gets it.
    """

    layer: str
    tokens: int
    width: int
    heads: int
    entropies: tuple[float, ...] | None
    ranks: tuple[float, ...]


@torch.no_grad()
def attention_sights(
    model: nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[AttentionSight, ...]:
    """Every nn.MultiheadAttention, in the order in which they ran on ``model(*inputs, **keywords)``.

    The tokens are those of the block that holds the layer, behind its residual sums. Nothing of the model is changed.

    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> [(sight.layer, sight.tokens) for sight in attention_sights(layer, (torch.randn(3, 5, 8),), {})]
    [('self_attn', 5)]
    """
    layers = {name: m for name, m in model.named_modules() if isinstance(m, nn.MultiheadAttention)}
    seen: dict[str, dict[str, Any]] = {}
    with untouched(model), ExitStack() as stack:
        for name, layer in layers.items():
            block = model.get_submodule(name.rpartition(".")[0])
            # hooks also keep torch from its fused path, which shows no weights
            stack.callback(layer.register_forward_pre_hook(_asks(name, seen), with_kwargs=True).remove)
            stack.callback(layer.register_forward_hook(_weights(name, seen)).remove)
            stack.callback(block.register_forward_hook(_tokens(name, seen, layer.batch_first)).remove)
        model(*inputs, **keywords)
    found = []
    for name, facts in seen.items():
        tokens = facts.get("tokens")
        if tokens is None or tokens.ndim != 3:
            continue
        weights, layer = facts.get("weights"), layers[name]
        ranks = tuple(_effective_rank(matrix) for matrix in tokens)
        entropies = None if weights is None else _entropies(weights)
        found.append(AttentionSight(name, tokens.shape[1], tokens.shape[2], layer.num_heads, entropies, ranks))
    return tuple(found)


def _asks(name: str, seen: dict[str, dict[str, Any]]) -> Any:
    def hook(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        seen.setdefault(name, {})
        return args[:4], {**kwargs, "need_weights": True, "average_attn_weights": False}

    return hook


def _weights(name: str, seen: dict[str, dict[str, Any]]) -> Any:
    def hook(module: nn.Module, args: Any, output: Any) -> None:
        weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if isinstance(weights, Tensor) and weights.ndim == 4:  # (samples, heads, to, from)
            seen[name]["weights"] = weights

    return hook


def _tokens(name: str, seen: dict[str, dict[str, Any]], batch_first: bool) -> Any:
    def hook(module: nn.Module, args: Any, output: Any) -> None:
        tokens = output[0] if isinstance(output, tuple | list) else output
        if isinstance(tokens, Tensor) and tokens.ndim == 3 and name in seen:
            seen[name]["tokens"] = (tokens if batch_first else tokens.transpose(0, 1)).detach()

    return hook


def _entropies(weights: Tensor) -> tuple[float, ...]:
    """Mean over heads and rows of each sample, over the logarithm of the number of tokens that can be looked at."""
    p = weights.double()
    allowed = (p > 0).sum(-1).clamp_min(2).double()
    entropy = torch.special.entr(p).sum(-1) / allowed.log()
    return tuple(entropy.clamp(0, 1).flatten(1).mean(1).tolist())


def _effective_rank(matrix: Tensor) -> float:
    values = torch.linalg.svdvals(matrix.double())
    total = float(values.sum())
    if total == 0 or not math.isfinite(total):
        return 0.0
    return float(torch.special.entr(values / total).sum().exp())
