"""Byte-level GPTs on Python's own documentation, healthy and with a known fault: what a watch says of each at its end.

    PYTHONPATH=src python -m benchmarks.language [case ...] --out FILE [--size NAME] [--jobs N] [--text FILE ...]

Twelve healthy trainings (three sizes, four step sizes from a third to three times the best, with warm-up and without), of which
no finding above a note may be raised (a step size called wrong is trained with the advice as well) and whose printed numbers
are held against a second computation: loss and accuracy over places in one numpy pass, and the floor of single bytes by
counting. Twelve trainings with one fault each, of which the cause must be named first. Last a GPT of 98 million parameters on
the device: seconds of the diagnosis and its peak of memory beside that of training, and the best of four step sizes of each
shape, by training alone. `real` is for a GPU (three minutes on an H200); `tiny` trains each case in seconds on one core, and so
does `pieces`, in 512 tokens, half of which are byte pairs; `small` takes a minute a case. The file is written as cases end, and
after `--limit` seconds none is begun.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import json
import logging
import math
import multiprocessing
import pydoc_data.topics
import sysconfig
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from benchmarks.bpe import encoded, learned_pairs
from torch import Tensor, nn

import theodolite as th

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PADDING = 0


@functools.cache
def text(files: tuple[Path, ...] = ()) -> np.ndarray:
    """Files as bytes; without any the topics of pydoc and the docstrings of the standard library."""
    if files:
        return np.frombuffer(b"\n\n".join(file.read_bytes() for file in files), dtype=np.uint8)
    found = [value for _, value in sorted(pydoc_data.topics.topics.items())]
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        with contextlib.suppress(SyntaxError, UnicodeDecodeError):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
            found += [said for n in nodes if (said := ast.get_docstring(n))]
    return np.frombuffer("\n\n".join(found).encode("ascii", "replace"), dtype=np.uint8)


@functools.cache
def tokens(pieces: int, files: tuple[Path, ...]) -> np.ndarray:
    """The text in bytes and so many byte pairs, learned from the beginning of it."""
    return encoded(text(files), learned_pairs(text(files)[:100_000], pieces)) if pieces else text(files)


def windows(
    count: int, context: int, seed: int, *, held_out: bool, pieces: int = 0, files: tuple[Path, ...] = ()
) -> Tensor:
    """Contexts of one token more than asked for; every tenth stretch of 8192 tokens is for validation alone."""
    whole = tokens(pieces, files)
    stretches = [part for part in np.array_split(whole, len(whole) // 8192) if len(part) > context + 1]
    own = [part for i, part in enumerate(stretches) if (i % 10 == 9) == held_out]
    draw = np.random.default_rng(seed)
    which = draw.integers(0, len(own), count)
    starts = [draw.integers(0, len(own[i]) - context) for i in which]
    return torch.from_numpy(np.stack([own[i][s : s + context + 1] for i, s in zip(which, starts, strict=True)])).long()


def token_loss(answer: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(answer.flatten(0, -2).float(), target.flatten(), ignore_index=-100)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, *, causal: bool, post: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.causal, self.post = heads, causal, post
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(dropout)

    def seen(self, x: Tensor) -> Tensor:
        n, t, d = x.shape
        q, k, v = self.attend(x).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.drop(self.join(found.transpose(1, 2).reshape(n, t, d)))

    def forward(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.first(x + self.seen(x))
            return self.second(x + self.drop(self.feed(x)))
        x = x + self.seen(self.first(x))
        return x + self.drop(self.feed(self.second(x)))


class Gpt(nn.Module):
    def __init__(
        self,
        layers: int,
        width: int,
        context: int,
        *,
        tokens: int = 256,
        causal: bool = True,
        post: bool = False,
        dropout: float = 0.0,
        tied: bool = True,
    ) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        heads = max(2, width // 64)
        self.blocks = nn.ModuleList(
            Block(width, heads, causal=causal, post=post, dropout=dropout) for _ in range(layers)
        )
        self.last = nn.Identity() if post else nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        for name, p in self.named_parameters():
            if p.ndim > 1:
                small = name.endswith(("join.weight", "feed.2.weight")) and not post
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if small else 0.02)
        if tied:
            self.head.weight = self.token.weight

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop(self.token(x) + self.place(torch.arange(x.shape[1], device=x.device)))
        for block in self.blocks:
            h = block(h)
        return self.head(self.last(h))


@dataclass(frozen=True)
class Case:
    """A training: what differs from the usual one, and what must be named first (nothing: healthy)."""

    name: str
    wanted: tuple[str, ...] = ()
    layers: int = 0
    width: int = 0
    lr: float = 1.0  # times the best
    warm_up: bool = True
    seed: int = 0
    weight_decay: float = 0.1
    model: dict[str, Any] = field(default_factory=dict)
    rows: str = ""
    dtype: str = "float32"
    autocast: bool = False
    held: str = ""
    frozen: bool = False
    twin: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    shapes: tuple[tuple[int, int], ...]
    best: tuple[float, ...]
    context: int
    batch: int
    steps: int
    every: int
    pieces: int = 0
    files: tuple[Path, ...] = ()


SIZES = {
    "tiny": Size(((2, 48), (2, 64), (3, 64)), (4e-3, 4e-3, 3e-3), 64, 32, 300, 30),
    "pieces": Size(((2, 48), (2, 64), (3, 64)), (4e-3, 4e-3, 3e-3), 64, 32, 300, 30, 256),
    "small": Size(((2, 96), (2, 128), (3, 128)), (4e-3, 4e-3, 3e-3), 64, 32, 240, 30),
    "real": Size(((2, 128), (6, 256), (8, 384)), (4e-3, 2e-3, 1.5e-3), 256, 32, 400, 40),
}
FACTORS = (0.33, 0.7, 1.5, 3.0)
SWEPT = (0.5, 1.0, 2.0, 4.0)


def cases(size: Size) -> list[Case]:
    """Twelve healthy ones, then twelve with one fault each, in the middle size."""
    found = []
    for i, (layers, width) in enumerate(size.shapes):
        for j, factor in enumerate(FACTORS):
            warm = factor > 1 or (i + j) % 2 == 0
            name = f"healthy {layers}x{width} lr x{factor:g}{'' if warm else ' no warm-up'}"
            found.append(Case(name, (), layers, width, factor, warm, seed=10 * i + j, autocast=(i + j) % 3 == 2))
    layers, width = size.shapes[1]
    deep = max(6, 2 * layers)
    faulty = [
        Case("hot", ("step-too-large",), lr=30.0),
        Case("cold", ("step-too-small", "trained-too-short"), lr=0.01),
        Case("no mask", ("target-leaks",), model={"causal": False}),
        Case("not shifted", ("target-leaks",), rows="not shifted"),
        Case("shuffled", ("labels-unrelated", "memorises-noise"), rows="shuffled"),
        Case("padding counted", ("padding-counted",), rows="padding"),
        Case("bf16 lost", ("precision-too-low",), lr=0.03, dtype="bfloat16", twin={"dtype": "float32"}),
        Case(
            "post-norm without warm-up",
            ("warm-up-missing", "step-too-large"),
            layers=deep,
            width=width,
            warm_up=False,
            model={"post": True},
            twin={"warm_up": True},
        ),
        Case("embedding not in the optimizer", ("not-in-optimizer",), held="token", model={"tied": False}),
        Case("decay 100 times", ("regularised-too-hard",), weight_decay=10.0),
        Case("dropout 0.9", ("regularised-too-hard",), model={"dropout": 0.9}),
        Case("frozen half", ("frozen-by-mistake", "layer-untrained"), frozen=True),
    ]
    return found + [
        replace(one, layers=one.layers or layers, width=one.width or width, seed=100 + k)
        for k, one in enumerate(faulty)
    ]


def rows_of(case: Case, count: int, size: Size, seed: int, *, held_out: bool) -> tuple[Tensor, Tensor]:
    context = size.context
    whole = windows(count, context, seed, held_out=held_out, pieces=size.pieces, files=size.files)
    draw = torch.Generator().manual_seed(seed)
    if case.rows == "padding":  # most lines end early, and the rest of the context is padding that counts
        ends = torch.randint(context // 8, context // 2, (count, 1), generator=draw)
        whole = whole.where(torch.arange(context + 1) < ends, torch.full_like(whole, PADDING))
    x, y = whole[:, :-1], whole[:, 1:]
    if case.rows == "not shifted":
        y = x.clone()
    if case.rows == "shuffled":
        y = y[torch.randperm(count, generator=draw)]
    return x.contiguous(), y.contiguous()


def built(case: Case, size: Size) -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    torch.manual_seed(case.seed)
    model = Gpt(case.layers, case.width, size.context, tokens=256 + size.pieces, **case.model).to(
        DEVICE, getattr(torch, case.dtype)
    )
    if case.frozen:
        for block in model.blocks[len(model.blocks) // 2 :]:
            block.requires_grad_(False)
        model.place.requires_grad_(False)
        model.blocks[0].attend.requires_grad_(False)
    best = (
        size.best[size.shapes.index((case.layers, case.width))]
        if (case.layers, case.width) in size.shapes
        else size.best[1]
    )
    own = [p for n, p in model.named_parameters() if p.requires_grad and not (case.held and n.startswith(case.held))]
    optimizer = torch.optim.AdamW(own, lr=case.lr * best, betas=(0.9, 0.95), weight_decay=case.weight_decay)
    warm = size.steps // 10 if case.warm_up else 0
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / warm) if warm else 1.0)
    return model, optimizer, schedule


@contextlib.contextmanager
def precision(case: Case) -> Iterator[None]:
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=case.autocast):
        yield


def trained(case: Case, size: Size, *, watched: bool = True) -> tuple[Any, dict[str, Any]]:
    """The training of a case, watched or alone (then the model is in place of the watch), and its seconds with its looks."""
    model, optimizer, schedule = built(case, size)
    count = min(size.steps * size.batch, 8192)
    x, y = (t.to(DEVICE) for t in rows_of(case, count, size, case.seed, held_out=False))
    held = tuple(t.to(DEVICE) for t in rows_of(case, 256, size, case.seed + 1, held_out=True))
    watch = None
    if watched:
        watch = th.Watch(
            model,
            probe=(x[:32], y[:32]),
            loss=token_loss,
            optimizer=optimizer,
            validation=held,
            every=size.every,
            level="cheap",
        )
    began = time.perf_counter()
    draw = torch.Generator().manual_seed(case.seed)
    model.train()
    value = torch.tensor(math.nan)
    for step in range(size.steps):
        rows = torch.randint(0, count, (size.batch,), generator=draw).to(DEVICE)
        inputs, targets = x[rows], y[rows]
        with precision(case):
            value = token_loss(model(inputs), targets)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if watch is not None:
            watch(step)
    if watch is not None:
        watch.look(size.steps)
    return watch or model, {"seconds": time.perf_counter() - began, "last batch": float(value.detach()), "held": held}


def independent(
    case: Case, model: nn.Module, held: tuple[Tensor, Tensor], kept: Iterable[Any] = ()
) -> dict[str, float]:
    """Loss, accuracy over places and the floor of single bytes on validation data, with nothing of the library."""
    x, y = held
    model.eval()
    with torch.no_grad(), precision(case):
        logits = torch.cat([model(part).float() for part in x.split(32)]).double().cpu().numpy()
    model.train()
    wanted = y.cpu().numpy()
    top = logits.max(-1, keepdims=True)
    log = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    own = np.take_along_axis(log, wanted[..., None], -1)[..., 0]
    counts = np.zeros(logits.shape[-1])
    for batch in kept:
        counts += np.bincount(batch.target.cpu().numpy().ravel(), minlength=logits.shape[-1])
    shares = counts[counts > 0] / max(1.0, counts.sum())
    floor = -(shares * np.log(shares)).sum()
    return {
        "loss": float(-own.mean()),
        "accuracy": float((log.argmax(-1) == wanted).mean()),
        "floor": float(floor),
        "spread": float(own.mean(1).std()),
    }


def prepare() -> None:
    """A process of its own: quiet, on one core, with the matrix products that people use on a GPU."""
    logging.getLogger("theodolite").setLevel(logging.CRITICAL)
    if DEVICE == "cpu":
        torch.set_num_threads(1)
    else:
        torch.set_float32_matmul_precision("high")


def swept(shape: int, factor: float, size: Size) -> dict[str, Any]:
    """The held-out loss of one shape trained alone with warm-up at a multiple of the step size that is called its best."""
    prepare()
    layers, width = size.shapes[shape]
    case = Case("sweep", (), layers, width, factor, seed=50 + shape)
    model, told = trained(case, size, watched=False)
    loss = independent(case, model, told["held"])["loss"]
    return {
        "name": f"sweep {layers}x{width}",
        "lr": factor * size.best[shape],
        "loss": loss,
        "training s": told["seconds"],
    }


def one(case: Case, size: Size) -> dict[str, Any]:
    """What a diagnosis says of a case, and whether that is right."""
    prepare()
    try:
        watch, told = trained(case, size)
        began = time.perf_counter()
        found = watch.diagnosis
        seconds = time.perf_counter() - began
    except Exception:
        return {"name": case.name, "right": False, "error": traceback.format_exc()[-1500:]}
    serious = [f.name for f in found.findings if f.severity != "note"]
    known = independent(case, watch.model, told["held"], watch.training_batches.kept)
    ours = {
        key: found.scores.get(name, math.nan)
        for key, name in (("loss", "validation loss"), ("accuracy", "validation accuracy"))
    }
    ours["floor"] = found.scores.get("loss when ignoring the input", math.nan)
    read = found.scores.get("validation samples", math.nan)  # a dear model is read on some of them
    allowed = 2e-3 * known["loss"] + (0.0 if read == len(told["held"][0]) else 3 * known["spread"] / math.sqrt(read))
    exact = abs(ours["loss"] - known["loss"]) < allowed and abs(ours["accuracy"] - known["accuracy"]) < max(
        2e-3, allowed / 3
    )
    exact = exact and math.isclose(ours["floor"], known["floor"], rel_tol=0.02)  # of some of the batches
    right = bool(serious) and serious[0] in case.wanted if case.wanted else not serious
    twin = advised = math.nan
    advice = found.findings[0].suggested.get("lr") if serious and not case.wanted else None
    if advice:  # is the alarm true? The same training with the step advised, and nothing of the library
        other = replace(case, lr=case.lr * advice / max(group["initial_lr"] for group in watch.optimizer.param_groups))
        advised = independent(other, trained(other, size, watched=False)[0], told["held"])["loss"]
    if case.twin:  # the same training without its fault: is it one?
        other = replace(case, **case.twin)
        twin = independent(other, trained(other, size, watched=False)[0], told["held"])["loss"]
    return {
        "name": case.name,
        "right": right,
        "loss without the fault": twin,
        "loss as advised": advised,
        "numbers right": exact,
        "found": serious,
        "wanted": case.wanted,
        "notes": [f.name for f in found.findings if f.severity == "note"],
        "alarms": sorted({f.name for f in watch.findings if f.severity != "note"}),
        "headline": found.headline,
        "remedy": found.findings[0].remedy if serious else "",
        "ours": ours,
        "independent": known,
        "unchecked": {k: v for k, v in found.unchecked.items() if "needs" not in v},
        "training s": told["seconds"],
        "diagnosis s": seconds,
        "batches kept": len(watch.training_batches.kept),
        "looks": [
            (r.step, round(r.facts.get("loss", math.nan), 3)) for r in watch.records[:: max(1, len(watch.records) // 5)]
        ],
    }


def large(steps: int = 150) -> dict[str, Any]:
    """A GPT of 98 million parameters: seconds of its diagnosis, and its peak of memory beside that of training."""
    shape, batch = ((12, 768, 256), 32) if DEVICE == "cuda" else ((2, 64, 64), 8)
    layers, width, context = shape
    prepare()
    torch.manual_seed(0)
    tokens = 16_384 if DEVICE == "cuda" else 512
    pairs = text()[: len(text()) // 2 * 2].reshape(-1, 2).astype(np.int64) @ np.array([256, 1])
    values, counts = np.unique(pairs, return_counts=True)
    ids = np.zeros(65_536, dtype=np.int64)
    common = values[np.argsort(-counts)][: tokens - 1]
    ids[common] = np.arange(1, len(common) + 1)
    stream = torch.from_numpy(ids[pairs])
    starts = torch.randint(0, len(stream) - context - 1, (2048, 1), generator=torch.Generator().manual_seed(0))
    whole = stream[starts + torch.arange(context + 1)].to(DEVICE)
    x, y = whole[:, :-1].contiguous(), whole[:, 1:].contiguous()
    model = Gpt(layers, width, context, tokens=tokens).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 20))
    watch = th.Watch(
        model,
        probe=(x[:4], y[:4]),
        loss=token_loss,
        optimizer=optimizer,
        validation=(x[-64:], y[-64:]),
        every=steps // 3,
        level="cheap",
    )

    def peak() -> float:
        if DEVICE != "cuda":
            return math.nan
        most = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
        return most

    peak()
    began = time.perf_counter()
    for step in range(steps):
        rows = torch.randint(0, len(x) - 64, (batch,), generator=torch.Generator().manual_seed(step)).to(DEVICE)
        inputs, targets = x[rows], y[rows]
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            value = token_loss(model(inputs), targets)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        schedule.step()
        if step == steps // 2:
            training = peak()  # between two looks
        watch(step)
        if step == steps // 3 + 2:
            peak()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    trained_s = time.perf_counter() - began
    peak()
    began = time.perf_counter()
    found = watch.diagnosis
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    seconds, diagnosis = time.perf_counter() - began, peak()
    return {
        "name": "98 million",
        "parameters": sum(p.numel() for p in model.parameters()),
        "training s": trained_s,
        "diagnosis s": seconds,
        "training GiB": training,
        "diagnosis GiB": diagnosis,
        "times": diagnosis / training,
        "headline": found.headline,
        "found": [f.name for f in found.findings if f.severity != "note"],
        "unchecked": {k: v for k, v in found.unchecked.items() if "needs" not in v},
        "loss": float(value.detach()),
    }


def learns_nearly_as_well(results: Iterable[dict[str, Any]]) -> set[str]:
    """The healthy cases that keep nine tenths of what the best training of their shape has learned, with nothing of the library.

    Below that an alarm is no false one: at three times the best step of a run of 400 steps half of it may be lost.
    """
    losses, floors = {}, {}
    for row in results:
        if row["name"].startswith(("healthy", "sweep")) and "error" not in row:
            losses.setdefault(row["name"].split()[1], []).append(
                row["independent"]["loss"] if "ours" in row else row["loss"]
            )
            floors |= {row["name"]: row["independent"]["floor"]} if "ours" in row else {}
    return {
        row["name"]
        for row in results
        if row["name"] in floors
        and floors[row["name"]] - row["independent"]["loss"]
        >= 0.9 * (floors[row["name"]] - min(losses[row["name"].split()[1]]))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--size", choices=list(SIZES), default="real" if DEVICE == "cuda" else "tiny")
    parser.add_argument("--text", type=Path, nargs="*", default=[], help="files to learn instead of the documentation")
    parser.add_argument("--jobs", type=int, default=8 if DEVICE == "cuda" else 1)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which no case is begun")
    parser.add_argument("--full", action="store_true", help="print all that is known of each case")
    given = parser.parse_args()
    size = replace(SIZES[given.size], files=tuple(given.text))
    chosen = [c for c in cases(size) if not given.cases or any(q in c.name for q in given.cases)]
    sweep = [(i, f) for i in range(len(size.shapes)) for f in SWEPT if not given.cases or "sweep" in given.cases]
    began = time.perf_counter()
    results: list[dict[str, Any]] = []

    def tell(row: dict[str, Any]) -> None:
        results.append(row)
        mark = "" if "right" not in row else "OK  " if row["right"] else "MISS" if row.get("wanted") else "ALARM"
        short = (
            "found",
            "numbers right",
            "error",
            "training s",
            "diagnosis s",
            "times",
            "loss without the fault",
            "loss as advised",
            "lr",
            "loss",
        )
        say = {k: v for k, v in row.items() if given.full or k in short}
        print(mark, row["name"], json.dumps(say, default=str, indent=1 if given.full else None), flush=True)
        if given.out:
            given.out.write_text(json.dumps(results, indent=1, default=str), encoding="utf-8")

    if not given.cases or "98" in given.cases:
        try:
            tell(large())
        except Exception:
            tell({"name": "98 million", "error": traceback.format_exc()[-1500:]})
    todo = [(one, case, size) for case in chosen] + [(swept, shape, factor, size) for shape, factor in sweep]
    if given.jobs == 1:
        for ask, *told in todo:
            if time.perf_counter() - began < given.limit:
                tell(ask(*told))
    else:
        running: set[Future[dict[str, Any]]] = set()
        with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
            while todo or running:
                while todo and len(running) < given.jobs and time.perf_counter() - began < given.limit:
                    running.add(pool.submit(*todo.pop(0)))
                if not running:
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for ended in done:
                    why = ended.exception()
                    tell({"name": "a case that broke", "error": repr(why)} if why else ended.result())
    rows = [r for r in results if "right" in r]
    healthy = [r for r in rows if r["name"].startswith("healthy")]
    fine = learns_nearly_as_well(results)
    lossy = [r for r in healthy if r["name"] not in fine]
    told = [r for r in lossy if r["found"]]
    true = sum(r["loss as advised"] < r["independent"]["loss"] for r in told)
    print(
        f"of the healthy ones {len(fine)} keep nine tenths of what the best of their shape has learned, "
        f"{sum(bool(r['found']) for r in healthy if r['name'] in fine)} of these with an alarm; the {len(lossy)} others lost "
        f"more: {len(told)} with an alarm, and trained as advised {true} of these end lower"
    )
    faulty = [r for r in rows if r not in healthy]
    print(
        f"healthy without an alarm {sum(r['right'] for r in healthy)} of {len(healthy)}, numbers right "
        f"{sum(r.get('numbers right', False) for r in rows)} of {len(rows)}, faults named first "
        f"{sum(r['right'] for r in faulty)} of {len(faulty)}; {time.perf_counter() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
