"""A GPT on bytes, many step sizes and seeds at once: does the best step size stay where it is when width and depth grow?

Networks of one size that differ in step size and seed are trained together, their weights stacked along a first axis. Initial
sizes, step factors and multipliers are `th.transfer`'s own, of the plain module below. The text is the sources of Python's
standard library. `python -m benchmarks.gpu_transfer --out FILE`; `--tiny` is a minute on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import theodolite as th

VOCABULARY, HEADS = 128, 4


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (z.view(b, t, HEADS, c // HEADS).transpose(1, 2) for z in self.qkv(x).split(c, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """Every matrix begins with variance 1 / fan-in, tables with 1/4."""

    def __init__(self, width: int, depth: int, context: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def stacked_forward(p: dict[str, Tensor], times: dict[str, float], tokens: Tensor, depth: int) -> Tensor:
    """All members' logits (E, B, T, V) of tokens (E, B, T); ``times`` are the multipliers of queries and branches."""
    e, b, t = tokens.shape
    flat = tokens.reshape(e, -1)
    width = p["tokens.weight"].shape[-1]
    x = p["tokens.weight"].gather(1, flat[..., None].expand(-1, -1, width)).view(e, b, t, width)
    x = x + p["places.weight"][:, None, :t]

    def linear(x: Tensor, name: str) -> Tensor:  # (E, B, T, in) -> (E, B, T, out)
        return torch.bmm(x.flatten(1, 2), p[name].transpose(1, 2).to(x.dtype)).view(e, b, t, -1)

    def norm(x: Tensor, name: str) -> Tensor:
        z = F.layer_norm(x.float(), (width,))
        return (z * p[name + ".weight"][:, None, None] + p[name + ".bias"][:, None, None]).to(LOW[x.device.type])

    for i in range(depth):
        at = f"blocks.{i}."
        q, k, v = linear(norm(x, at + "norm1"), at + "attention.qkv.weight").split(width, -1)
        q = q * times.get("query", 1.0)
        q, k, v = (z.reshape(e * b, t, HEADS, width // HEADS).transpose(1, 2) for z in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(e, b, t, width)
        x = x + times.get("branch", 1.0) * linear(mixed, at + "attention.out.weight")
        hidden = F.gelu(linear(norm(x, at + "norm2"), at + "up.weight"))
        x = x + times.get("branch", 1.0) * linear(hidden, at + "down.weight")
    return linear(norm(x, "norm"), "head.weight").float()


LOW = {"cpu": torch.float32, "cuda": torch.bfloat16}


def text(context: int, size: int = 6_000_000) -> Tensor:
    """The sources of the standard library as bytes below 128, cut into rows of one more than the context."""
    found, length = [], 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        part = bytes(b for b in path.read_bytes() if b < VOCABULARY)
        found.append(part)
        length += len(part)
        if length > size:
            break
    whole = torch.frombuffer(bytearray(b"".join(found)), dtype=torch.uint8)
    rows = whole[: len(whole) // (context + 1) * (context + 1)].view(-1, context + 1).long()
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]


@dataclass(frozen=True)
class Size:
    width: int
    depth: int


@dataclass(frozen=True)
class Settings:
    context: int
    batch: int
    steps: int
    device: str
    most: float  # parameters of all members together


def plan_of(size: Size, base: Size, context: int) -> Any:
    torch.manual_seed(0)
    small, large = Gpt(base.width, base.depth, context), Gpt(size.width, size.depth, context)
    return th.transfer(large, small, inputs=torch.zeros(1, 8, dtype=torch.long))


def drawn(plan: Any, standard: bool, seed: int, device: str) -> dict[str, Tensor]:
    """One network's first weights: those that transfer, or those of the plain module of its own size."""
    generator = torch.Generator(device).manual_seed(seed)
    found = {}
    for one in plan.tensors:
        if one.fill is not None:
            found[one.name] = torch.full(one.shape, one.fill, device=device)
            continue
        spread = one.spread
        if standard:
            spread = (
                0.5 if one.kind == "embedding" or "places" in one.name or "tokens" in one.name else one.shape[1] ** -0.5
            )
        found[one.name] = spread * torch.randn(one.shape, generator=generator, device=device)
    return found


Member = tuple[float, int]
"""A step size and a seed."""


def trained(plan: Any, rule: str, standard: bool, members: list[Member], rows: Tensor, own: Settings) -> list[float]:
    """The held-out loss of every member, all trained together; those of one seed see the same batches from the same start."""
    seeds = {seed: drawn(plan, standard, seed, own.device) for seed in sorted({seed for _, seed in members})}
    e = len(members)
    names = [one.name for one in plan.tensors]
    p = {name: torch.stack([seeds[seed][name] for _, seed in members]).requires_grad_() for name in names}
    factors = {one.name: 1.0 if standard else one.lr_factor(rule) for one in plan.tensors}
    times: dict[str, float] = {}
    if not standard:
        times = {"query" if "qkv" in m.where else "branch": m.factor for m in plan.multipliers}
    depth = len(plan.model.blocks)
    orders = {
        s: torch.randint(len(rows) - 256, (own.steps, own.batch), generator=torch.Generator().manual_seed(1000 + s))
        for s in seeds
    }
    del seeds
    rates = torch.tensor([lr for lr, _ in members], device=own.device)
    moments = {name: (torch.zeros_like(w), torch.zeros_like(w) if rule == "adam" else None) for name, w in p.items()}
    dead = torch.zeros(e, dtype=torch.bool, device=own.device)
    for step in range(own.steps):
        batch = torch.stack([rows[orders[seed][step]] for _, seed in members]).to(own.device)
        losses = _losses(p, times, batch, depth)
        dead |= ~torch.isfinite(losses)
        grads = torch.autograd.grad(torch.where(dead, 0.0, losses).sum(), list(p.values()))
        warm = min(1.0, (step + 1) / (0.1 * own.steps)) * (1 - step / own.steps)
        with torch.no_grad():
            for (name, w), g in zip(p.items(), grads, strict=True):
                lr = (rates * warm * factors[name]).view(-1, *(1,) * (w.ndim - 1))
                g = torch.nan_to_num(g, 0.0, 0.0, 0.0)
                m, v = moments[name]
                if v is None:
                    m.mul_(0.9).add_(g)
                    w.sub_(lr * m)
                    continue
                m.lerp_(g, 0.1)
                v.mul_(0.95).addcmul_(g, g, value=0.05)
                bias1, bias2 = 1 - 0.9 ** (step + 1), 1 - 0.95 ** (step + 1)
                w.sub_((v / bias2).sqrt_().add_(1e-12).reciprocal_().mul_(m).mul_(lr / bias1))
                if w.ndim > 2:  # (E, out, in): weight decay of 0.1 on matrices, the same share at every size
                    w.mul_(1 - 0.1 * lr / factors[name])
    with torch.no_grad():
        parts = rows[-256:].to(own.device).split(32)
        total = sum(_losses(p, times, part.expand(e, -1, -1), depth) for part in parts) / len(parts)
    return [
        math.inf if lost or not math.isfinite(v) else v for lost, v in zip(dead.tolist(), total.tolist(), strict=True)
    ]


def _losses(p: dict[str, Tensor], times: dict[str, float], batch: Tensor, depth: int) -> Tensor:
    logits = stacked_forward(p, times, batch[..., :-1], depth)
    target = batch[..., 1:].reshape(-1)
    return F.cross_entropy(logits.flatten(0, 2), target, reduction="none").view(len(batch), -1).mean(1)


def vertex(lrs: list[float], losses: list[float]) -> tuple[float, float]:
    """The best step size, as log2, and its loss, by a parabola of the log of the loss through the least and its neighbors."""
    k = min(range(len(losses)), key=losses.__getitem__)
    if k in (0, len(losses) - 1) or not all(map(math.isfinite, losses[k - 1 : k + 2])):
        return math.log2(lrs[k]), losses[k]
    a, b, c = map(math.log, losses[k - 1 : k + 2])
    bend = a - 2 * b + c
    if bend <= 0:
        return math.log2(lrs[k]), losses[k]
    shift = 0.5 * (a - c) / bend * math.log2(lrs[k + 1] / lrs[k])
    return math.log2(lrs[k]) + shift, math.exp(b - 0.125 * (a - c) ** 2 / bend)


def best_step(lrs: list[float], seeds: list[list[float]]) -> dict[str, float]:
    """The best step size and loss of the mean over seeds, and the error of the step size."""
    at, loss = vertex(lrs, [sum(column) / len(seeds) for column in zip(*seeds, strict=True)])
    each = torch.tensor([vertex(lrs, row)[0] for row in seeds], dtype=torch.float64)
    return {"log2_lr": at, "error": float(each.std() / len(seeds) ** 0.5) if len(seeds) > 1 else 0.0, "loss": loss}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--limit", type=float, default=480.0, help="seconds after which no further size is begun")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.tiny:
        own, seeds = Settings(32, 8, 40, device, 1e9), 1
        runs = [("width", [Size(w, 2) for w in (32, 64)]), ("depth", [Size(32, d) for d in (2, 4)])]
    else:
        own, seeds = Settings(128, 16, 160, device, 2.2e9), 3
        runs = [
            ("depth", [Size(256, d) for d in (4, 8, 16, 32)]),
            ("width", [Size(w, 4) for w in (128, 256, 512, 1024, 2048)]),
        ]
    rows = text(own.context)
    began, found = time.monotonic(), []
    middle = {"adam": -7.0, "sgd": -2.0}
    for axis, sizes in runs:
        for size in sizes:
            plan = plan_of(size, sizes[0], own.context)
            for rule in ("adam", "sgd"):
                for standard in (False, True):
                    low, high = (-4, 4) if not standard else (-7, 3)
                    lrs = [2.0 ** (middle[rule] + k) for k in range(low, high + 1)]
                    if time.monotonic() - began > options.limit:
                        print("out of time before", axis, size, rule, standard, flush=True)
                        continue
                    count = sum(math.prod(t.shape) for t in plan.tensors)
                    members = [(lr, seed) for seed in range(seeds) for lr in lrs]
                    chunks = math.ceil(len(members) * count / own.most)
                    each = math.ceil(len(members) / chunks)
                    flat = []
                    for i in range(0, len(members), each):
                        flat += trained(plan, rule, standard, members[i : i + each], rows, own)
                    losses = [flat[i : i + len(lrs)] for i in range(0, len(flat), len(lrs))]
                    row = {"axis": axis, "width": size.width, "depth": size.depth, "rule": rule, "standard": standard}
                    found.append(row | {"lrs": lrs, "losses": losses})
                    print(row | best_step(lrs, losses), f"{time.monotonic() - began:.0f} s", flush=True)
            options.out.write_text(json.dumps({"settings": own.__dict__, "rows": found}) + "\n")


if __name__ == "__main__":
    main()
