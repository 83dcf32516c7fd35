"""What attention layers do on a batch: where their rows look, how sharply, and how many directions their tokens fill."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from theodolite.core.checks import tensors_in
from theodolite.core.state import untouched

SOFTMAX = (F.softmax, torch.softmax, Tensor.softmax)
ONE_PLACE = 0.9
"""The weight, on average over rows, from which on a head attends to one place."""
MOST_WEIGHTS = 1 << 24
"""Weights of a layer that are looked at: of long sequences those of two samples, each many rows."""


@dataclass(frozen=True)
class AttentionSight:
    """One attention layer. Rows that may look at one place only are left out of everything here.

    ``entropies``: of each sample's rows, over the largest possible. ``largest_score``: how far the largest logit lies above the
    mean of its row. ``one_place``: the heads whose rows have most of their weight on one place, whichever it is. ``sink`` is the
    place that gets the largest share of all weight of a head, ``sink_shares`` that share in each sample and ``even_share``
    what rows that look everywhere alike would give it. ``ranks`` are the effective ranks of each sample's matrix of
    ``tokens`` x ``width`` as the block that holds the layer passes it on.
    """

    layer: str
    tokens: int
    width: int
    heads: int
    entropies: tuple[float, ...]
    largest_score: float
    one_place: tuple[int, ...]
    sink: int
    sink_shares: tuple[float, ...]
    even_share: float
    ranks: tuple[float, ...]


@torch.no_grad()
def attention_sights(
    model: nn.Module, inputs: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[AttentionSight, ...]:
    """Every attention layer, in the order in which they ran on ``model(*inputs, **keywords)``.

    Those are nn.MultiheadAttention, scaled_dot_product_attention, and a softmax over pairs of places. Nothing of the model is
    changed.

    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> [(sight.layer, sight.tokens) for sight in attention_sights(layer, (torch.randn(3, 5, 8),), {})]
    [('self_attn', 5)]
    """
    seen = _Rows()
    tokens: dict[str, Tensor] = {}
    with untouched(model):
        for name, module in model.named_modules():  # hooks also keep torch from its fused path, which shows no weights
            module.register_forward_pre_hook(partial(seen.enter, name))
            module.register_forward_hook(partial(seen.leave, tokens, name))
        with seen:
            model(*inputs, **keywords)
    layers = {name: module for name, module in model.named_modules() if name in seen.rows}
    found = []
    for name, facts in seen.rows.items():
        around = _block(name, layers, tokens)
        if around is None or facts is None:
            continue
        first = getattr(layers[name], "batch_first", True)
        matrix = tokens[around] if first else tokens[around].transpose(0, 1)
        ranks = tuple(_effective_rank(sample) for sample in matrix)
        found.append(AttentionSight(name, matrix.shape[1], matrix.shape[2], ranks=ranks, **facts))
    return tuple(found)


def _block(name: str, layers: Mapping[str, nn.Module], tokens: Mapping[str, Tensor]) -> str | None:
    """What holds the layer and no other one, behind its residual sums; else the layer itself; None where neither gives tokens."""
    parent = name.rpartition(".")[0]
    others = [other for other in layers if other != name and (not parent or other.startswith(f"{parent}."))]
    if name and parent in tokens and not others:
        return parent
    return name if name in tokens else None


class _Rows(TorchFunctionMode):
    """Sees the weights of attention, in the module in which they are made."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = [""]
        self.rows: dict[str, dict[str, Any] | None] = {}

    def enter(self, name: str, module: nn.Module, args: Any) -> None:
        self.stack.append(name)

    def leave(self, tokens: dict[str, Tensor], name: str, module: nn.Module, args: Any, output: Any) -> None:
        self.stack.pop()
        found = next(tensors_in(output), None)
        if found is not None and found.ndim == 3:
            tokens[name] = found.detach()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is F.multi_head_attention_forward:
            asked, averaged = kwargs.get("need_weights", True), kwargs.get("average_attn_weights", True)
            call: Any = func  # of the type checker, which takes the weights for missing
            out, weights = call(*args, **{**kwargs, "need_weights": True, "average_attn_weights": False})
            if weights.ndim == 4:
                self._take(weights, lambda sample: weights[sample])
            shown = weights.mean(-3) if averaged else weights
            return out, shown if asked else None
        if func is F.scaled_dot_product_attention:
            names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            if given["query"].ndim in (3, 4):
                like = given["query"][..., :1].expand(*given["query"].shape[:-1], given["key"].shape[-2])
                self._take(like, lambda sample: _weights(given, sample))
        elif func in SOFTMAX and args and isinstance(args[0], Tensor) and args[0].ndim in (3, 4):
            scores, axis = args[0], kwargs.get("dim", args[1] if len(args) > 1 else -1)
            if axis in (-1, scores.ndim - 1) and scores.shape[-1] == scores.shape[-2]:
                self._take(scores, lambda sample: scores[sample].double().softmax(-1))
        return func(*args, **kwargs)

    def _take(self, like: Tensor, weights: Callable[[int], Tensor]) -> None:
        """The rows of some samples; a layer that runs twice is seen as it ran at first."""
        if self.stack[-1] not in self.rows:
            few = min(len(like), max(2, MOST_WEIGHTS // like[0].numel()))
            with torch._C.DisableTorchFunction():
                own = (weights(sample) for sample in range(few))
                self.rows[self.stack[-1]] = _facts(p if p.ndim == 3 else p[None] for p in own)


def _weights(given: Mapping[str, Any], sample: int) -> Tensor:
    """The rows of one sample, (heads, to, from), in double precision."""
    q, k = (given[name][sample].double() for name in ("query", "key"))
    if q.ndim == 3 and len(k) != len(q):  # several queries share a key
        k = k.repeat_interleave(len(q) // len(k), 0)
    scale = given.get("scale") or 1 / math.sqrt(q.shape[-1])
    scores: Tensor = scale * q @ k.mT
    mask = given.get("attn_mask")
    if given.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        own = mask if mask.ndim < given["query"].ndim or len(mask) == 1 else mask[sample]
        own = own[0] if own.ndim > scores.ndim else own
        scores = scores.masked_fill(~own, -math.inf) if own.dtype == torch.bool else scores + own
    return scores.softmax(-1)


def _facts(samples: Iterable[Tensor]) -> dict[str, Any] | None:
    """What is told of a layer; None where no row may look at two places."""
    entropies, tops, shares, even, largest = [], [], [], [], -math.inf
    for weights in samples:
        p = weights.detach().double().nan_to_num(0.0)
        allowed = (p > 0).sum(-1)
        rows = allowed.amax(0) > 1  # (to,)
        if not bool(rows.any()):
            return None
        p, count = p[:, rows], allowed[:, rows].clamp_min(2).double()
        entropies.append(float((torch.special.entr(p).sum(-1) / count.log()).clamp(0, 1).mean()))
        tops.append(p.amax(-1).mean(-1))
        shares.append(p.mean(1))  # (heads, from)
        even.append(((p > 0) / count[..., None]).mean(1))
        scores = p.log().masked_fill(p <= 0, 0.0)
        largest = max(largest, float((p.amax(-1).log() - scores.sum(-1) / count).max()))
    if len({share.shape for share in shares}) > 1:
        return None
    together = torch.stack(shares)  # (samples, heads, from)
    head, place = divmod(int(together.mean(0).argmax()), together.shape[-1])
    return {
        "heads": together.shape[1],
        "entropies": tuple(entropies),
        "largest_score": largest,
        "one_place": tuple((torch.stack(tops).mean(0) > ONE_PLACE).nonzero().flatten().tolist()),
        "sink": place,
        "sink_shares": tuple(together[:, head, place].tolist()),
        "even_share": float(torch.stack(even)[:, head, place].mean()),
    }


def _effective_rank(matrix: Tensor) -> float:
    values = torch.linalg.svdvals(matrix.double())
    total = float(values.sum())
    if total == 0 or not math.isfinite(total):
        return 0.0
    return float(torch.special.entr(values / total).sum().exp())
