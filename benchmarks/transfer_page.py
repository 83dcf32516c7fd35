"""Draws the figures of docs/transfer.md and writes its tables, from what was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from theodolite.report.drawing.charts import Figure, Mark, Points, Polyline
from theodolite.report.drawing.scales import Scale, scale_of
from theodolite.report.drawing.shapes import group_color
from theodolite.report.rendering import picture_file

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "transfer.md"
MARK = "<!-- measured: benchmarks/transfer.py page -->"
NAMES = {"mlp": "MLP on digits", "cnn": "CNN with batch normalization on digits", "gpt": "GPT on bytes"}
RULES = {"adam": "AdamW", "sgd": "SGD"}


def curve(rows: Sequence[dict[str, Any]], size: str, title: str, low: float, high: float) -> str:
    """Loss against step size, a line for each size, with standard errors over seeds."""
    marks: list[Mark] = []
    keys: list[Mark] = []
    lrs = sorted({lr for row in rows for lr in row["lrs"]})
    for group, row in enumerate(rows):
        x, y, errors = [], [], []
        for k, lr in enumerate(row["lrs"]):
            values = [seed[k] for seed in row["losses"]]
            mean = sum(values) / len(values)
            if math.isfinite(mean) and low <= mean <= high:
                x.append(lr)
                y.append(mean)
                errors.append(math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values)))
        marks += [Polyline(x, y, group_color(group)), Points(x, y, errors, group)]
        keys.append(Polyline(color=group_color(group), mark=group, label=f"{size} {row[size]}"))
    labels = f"step size, {title}", "loss on held-out text"
    figure = Figure(scale_of(lrs, log=True), Scale(low, high), marks, keys, *labels, spoken=f"Loss against {labels[0]}")
    return picture_file(figure.svg()) + "\n"


def pictures(gpu: Sequence[dict[str, Any]]) -> dict[str, str]:
    found = {}
    for axis in ("width", "depth"):
        for standard in (True, False):
            rows = [r for r in gpu if r["axis"] == axis and r["rule"] == "adam" and r["standard"] is standard]
            way = "standard" if standard else "transferred"
            title = "one for all layers" if standard else "of the smallest, transferred"
            found[f"transfer_{axis}_{way}.svg"] = curve(rows, axis, title, 2.2, 3.0)
    return found


def table(rows: Sequence[dict[str, Any]], size: str) -> list[str]:
    """One line a network, optimizer and way: where the best step size was and is, and what that costs."""
    head = ("network, optimizer", "way", "best step, smallest to largest", "moves by", "loss at the largest")
    lines = ["| " + " | ".join((*head, "with the step of the smallest")) + " |"]
    lines.append("|---|---|---|---:|---:|---:|")
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["network"], row["rule"], row["way"]), []).append(row)
    for (network, rule, way), found in groups.items():
        found.sort(key=lambda row: row[size])
        logs = [row["log2_lr"] for row in found]
        last, first = found[-1], found[0]
        best, (there, uncertain) = last["loss"], lost(last, first["log2_lr"])
        cost = "blows up" if not math.isfinite(there) else f"{there:+.1f} ± {uncertain:.1f} %"
        steps = f"{2 ** logs[0]:.2g} to {2 ** logs[-1]:.2g} ({size} {first[size]} to {last[size]})"
        error = math.hypot(first["error"], last["error"])
        moves = f"{2 ** (max(logs) - min(logs)):.2g} (± {2**error:.2g}x)"
        lines.append(f"| {NAMES[network]}, {RULES[rule]} | {way} | {steps} | {moves} | {best:.4g} | {cost} |")
    return lines


def lost(row: dict[str, Any], log2_lr: float) -> tuple[float, float]:
    """By how many percent the loss at a step size lies above that at the row's best, with the standard error over seeds."""
    seeds = [{**row, "losses": [seed]} for seed in row["losses"]]
    shares = [100 * (at(seed, log2_lr) / at(seed, row["log2_lr"]) - 1) for seed in seeds]
    mean = sum(shares) / len(shares)
    return mean, math.sqrt(sum((s - mean) ** 2 for s in shares) / (len(shares) - 1) / len(shares))


def at(row: dict[str, Any], log2_lr: float) -> float:
    """The mean loss of a row at a step size between those of its grid, by a parabola through the nearest three."""
    grid = [math.log2(lr) for lr in row["lrs"]]
    mean = [sum(column) / len(column) for column in zip(*row["losses"], strict=True)]
    k = min(range(1, len(grid) - 1), key=lambda i: abs(grid[i] - log2_lr))
    if log2_lr > grid[-1] + 0.5 or not all(map(math.isfinite, mean[k - 1 : k + 2])):
        k = min(range(len(grid)), key=lambda i: abs(grid[i] - log2_lr))
        return mean[k]
    a, b, c = mean[k - 1 : k + 2]
    t = log2_lr - grid[k]
    return b + t * (c - a) / 2 + t * t * (a - 2 * b + c) / 2


def measured(known: dict[str, Any], gpu: Sequence[dict[str, Any]]) -> list[str]:
    named = [{**r, "network": "gpt", "way": "standard" if r["standard"] else "transferred"} for r in gpu]
    lines = ["### Widths", ""]
    widths = [*known.get("sweep", []), *(r for r in named if r["axis"] == "width")]
    lines += [
        *table(widths, "width"),
        "",
        "### Depths",
        "",
        *table([r for r in named if r["axis"] == "depth"], "depth"),
        "",
    ]
    if "check" in known:
        rows, exponents = known["check"]["named"], known["check"]["exponents"]
        broken, right = [r for r in rows if r["broken"]], [r for r in rows if not r["broken"]]
        near = sum(abs(r["measured"] - r["predicted"]) <= 2 * r["stderr"] for r in exponents)
        lines += [
            "### The check",
            "",
            f"{sum(r['right'] for r in broken)} of {len(broken)} networks with one multiplier broken on purpose: that layer is "
            f"named, and no other. {sum(not r['right'] for r in right)} of {len(right)} networks that are right: a layer is "
            f"named. {near} of {len(exponents)} exponents, standard and transferred, lie within two errors of theory.",
            "",
        ]
    if "clinic" in known:
        rows = known["clinic"]
        near = sum(0.5 <= r["ratio"] <= 2 for r in rows)
        price = sorted(r["price"] for r in rows)[len(rows) // 2]
        lines += [
            "### find_lr",
            "",
            f"On {len(rows)} runs of the clinic, begun from a step size that is wrong by up to 32 times: within a factor of "
            f"two of the best of a grid of 13 whole runs in {near}. The median price is {price:.1f} trainings (the grid: 13)."
            + _tuner(rows),
            "",
        ]
    return lines


def _tuner(rows: Sequence[dict[str, Any]]) -> str:
    told = [r for r in rows if r.get("tuner")]
    if not told:
        return ""
    near = sum(0.5 <= r["tuner"] / r["best"] <= 2 for r in told)
    return (
        f" Lightning's tuner (100 steps of a rising step size, steepest descent of the loss): in {near} of {len(told)}."
    )


def write(path: Path) -> None:
    known = json.loads(path.read_text())
    gpu = json.loads((HERE / "gpu_transfer.json").read_text())["rows"]
    for name, svg in pictures(gpu).items():
        (PAGE.parent / name).write_text(svg, encoding="utf-8")
    before, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(before + MARK + "\n\n" + "\n".join(measured(known, gpu)), encoding="utf-8")
