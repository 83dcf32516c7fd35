"""Draws the figures of docs/transfer.md and writes its tables, from what was measured."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.gpu_transfer import best_step

from theodolite.report.drawing.charts import Figure, Mark, Points, Polyline
from theodolite.report.drawing.scales import Scale, scale_of
from theodolite.report.drawing.shapes import group_color
from theodolite.report.rendering import picture_file

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "transfer.md"
MARK = "<!-- measured: benchmarks/transfer.py page -->"
NAMES = {"mlp": "MLP on digits", "cnn": "CNN with batch normalization on digits", "gpt": "GPT on bytes"}
NAMES |= {"byte_mlp": "MLP on bytes", "byte_cnn": "CNN with batch normalization on bytes"}
RULES = {"adam": "AdamW", "sgd": "SGD"}
ORDER = ("mlp", "cnn", "byte_mlp", "byte_cnn", "gpt")


def curve(rows: Sequence[dict[str, Any]], size: str, title: str, low: float, high: float) -> str:
    """Loss against learning rate, a line for each size, with standard errors over seeds."""
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
    labels = f"learning rate, {title}", "loss on held-out text"
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
    """One line a network, optimizer and way: where the best learning rate was and is, and what that costs."""
    head = ("network, optimizer, steps", "way", "best step, smallest to largest", "moves by", "loss at the largest")
    lines = ["| " + " | ".join((*head, "with the step of the smallest", "larger is worse by")) + " |"]
    lines.append("|---|---|---|---:|---:|---:|---:|")
    groups: dict[tuple[str, str, int, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["network"], row["rule"], row["steps"], row["way"]), []).append(
            row | best_step(row["lrs"], row["losses"])
        )
    kept: dict[str, list[tuple[bool, bool, bool]]] = {}
    for (network, rule, steps, way), found in sorted(groups.items(), key=lambda item: ORDER.index(item[0][0])):
        found.sort(key=lambda row: row[size])
        logs = [row["log2_lr"] for row in found]
        last, first = found[-1], found[0]
        lost = excess(last, last["log2_lr"], last, logs[0])
        worse = max((excess(a, logs[0], b, logs[0]) for a, b in pairwise(found)), key=lambda found: found[0])
        error, moved = math.hypot(first["error"], last["error"]), 2 ** (max(logs) - min(logs))
        kept.setdefault(way, []).append((moved <= 1.5, lost[0] <= 1, worse[0] <= 2 * worse[1]))
        cells = (
            f"{NAMES[network]}, {RULES[rule]}, {steps}",
            way,
            f"{2 ** logs[0]:.2g} to {2 ** logs[-1]:.2g} ({size} {first[size]} to {last[size]})",
            f"{moved:.2g} (± {2**error:.2g}x)",
            f"{last['loss']:.3g}",
            _percent(*lost),
            "" if worse[0] <= 0 else _percent(*worse),
        )
        lines.append("| " + " | ".join(cells) + " |")
    counts = [
        f"{way}, of {len(held)}: {near} within a factor of 1.5, {cheap} within 1 % of the loss, {never} never worse by two errors"
        for way, held in kept.items()
        for near, cheap, never in [map(sum, zip(*held, strict=True))]
    ]
    return [*lines, "", "In all: " + "; ".join(counts) + "."]


def _percent(value: float, error: float) -> str:
    return f"{value:+.1f} ± {error:.1f} %" if math.isfinite(value) else "blows up"


def excess(one: dict[str, Any], log2_lr: float, other: dict[str, Any], other_lr: float) -> tuple[float, float]:
    """By how many percent the loss of the other row lies above that of the one, with the standard error over seeds."""
    pairs = zip(one["losses"], other["losses"], strict=True)
    shares = [100 * (at(other, b, other_lr) / at(one, a, log2_lr) - 1) for a, b in pairs]
    mean = sum(shares) / len(shares)
    return mean, math.sqrt(sum((s - mean) ** 2 for s in shares) / (len(shares) - 1) / len(shares))


def at(row: dict[str, Any], losses: Sequence[float], log2_lr: float) -> float:
    """The loss at a learning rate between those of the grid, by a parabola of its log through the nearest three."""
    grid = [math.log2(lr) for lr in row["lrs"]]
    k = min(range(1, len(grid) - 1), key=lambda i: abs(grid[i] - log2_lr))
    if log2_lr > grid[-1] + 0.5 or not all(map(math.isfinite, losses[k - 1 : k + 2])):
        return losses[min(range(len(grid)), key=lambda i: abs(grid[i] - log2_lr))]
    a, b, c = map(math.log, losses[k - 1 : k + 2])
    t = log2_lr - grid[k]
    return math.exp(b + t * (c - a) / 2 + t * t * (a - 2 * b + c) / 2)


def measured(known: dict[str, Any], gpu: Sequence[dict[str, Any]]) -> list[str]:
    named = [{**r, "network": "gpt", "steps": 160, "way": "standard" if r["standard"] else "transferred"} for r in gpu]
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
        price, seconds = (sorted(r[key] for r in rows)[len(rows) // 2] for key in ("price", "seconds"))
        most = max(map(_share_lost, rows))
        lines += [
            "### find_lr",
            "",
            f"On {len(rows)} runs of the clinic, begun from a learning rate that is wrong by up to 32 times: within a factor of "
            f"two of the best of a grid of 13 whole runs in {near}. Where the bottom of the grid is flat, two learning rates can "
            f"be far apart and cost the same: the one that was found leaves at most {100 * most:.1f} % of the fall of the loss "
            f"in any run. The median price is {price:.1f} trainings, "
            f"{seconds:.1f} s (the grid: 13 trainings)." + "".join(_peer(rows, *peer) for peer in PEERS),
            "",
            *_reference(rows, known.get("repeats", ())),
        ]
    return lines


def _reference(rows: Sequence[dict[str, Any]], repeats: Sequence[dict[str, Any]]) -> list[str]:
    """How sure the best of a grid is: one whole run at each learning rate goes up and down by itself."""
    scatters, again = zip(*map(_noise_of_grid, rows), strict=True)
    near = {key: sum(_near_smooth(r, key) for r in rows) for key in ("found", "tuner", "range_test")}
    lines = [
        f"The best of a grid is itself uncertain. About a cubic through them the losses of the grid scatter by "
        f"{100 * sorted(scatters)[len(scatters) // 2]:.0f} % (median), and with this scatter the best of a second grid is within "
        f"a factor of two of the curve's lowest point in {sum(again):.0f} of {len(rows)}. If each loss of the grid is averaged "
        f"with its neighbors (1/4, 1/2, 1/4), `find_lr` is within a factor of two of the lowest in {near['found']}, Lightning's "
        f"tuner in {near['tuner']} and torch-lr-finder in {near['range_test']}.",
        "",
    ]
    own = {r["case"]: r for r in rows}
    for case in dict.fromkeys(r["case"] for r in repeats):
        grids = [
            {int(k): v for k, v in r["grid"].items()} for r in (own[case], *(r for r in repeats if r["case"] == case))
        ]
        common = sorted(set.intersection(*map(set, grids)))
        losses = np.array([[grid[power] for power in common] for grid in grids])
        behind = losses - losses[:, [losses.mean(0).argmin()]]
        alike = behind.mean(0) <= 2 * behind.std(0, ddof=1) / math.sqrt(len(grids))
        low, best, high = (
            own[case]["own"] * 2.0 ** common[k]
            for k in (alike.argmax(), losses.mean(0).argmin(), -1 - alike[::-1].argmax())
        )
        bests = ", ".join(f"{own[case]['own'] * 2.0 ** min(g, key=g.__getitem__):g}" for g in grids)
        lines += [
            f"- {case.split('/')[1]}: found {own[case]['found']:.2g}; the best of the grid at {len(grids)} seeds: {bests}; of "
            f"their mean: {best:g}, and those from {low:g} to {high:g} are no worse by two errors."
        ]
    return [*lines, ""] if repeats else lines


def _near_smooth(row: dict[str, Any], key: str) -> bool:
    """Whether a learning rate is within a factor of two of the lowest of a grid, its losses averaged with their neighbors."""
    grid = {int(power): loss for power, loss in row["grid"].items()}
    smooth = {p: grid[p - 1] + 2 * grid[p] + grid[p + 1] for p in grid if p - 1 in grid and p + 1 in grid}
    best = row["own"] * 2.0 ** min(smooth, key=smooth.__getitem__)
    return bool(row[key]) and 0.5 <= row[key] / best <= 2


def _noise_of_grid(row: dict[str, Any], draws: int = 2000) -> tuple[float, float]:
    """The scatter of the log losses about a cubic within eight times of the best, and how often that many runs again would
    have their best within a factor of two of the cubic's lowest point."""
    losses = {int(power): loss for power, loss in row["grid"].items() if math.isfinite(loss)}
    best = min(losses, key=losses.__getitem__)
    x = np.array([power for power in sorted(losses) if abs(power - best) <= 3])
    y = np.log([losses[power] for power in x])
    cubic = np.polyfit(x, y, 3)
    scatter = math.sqrt(float(np.square(y - np.polyval(cubic, x)).sum()) / (len(x) - 4))
    fine = np.linspace(x[0], x[-1], 601)
    lowest = fine[np.polyval(cubic, fine).argmin()]
    noise = scatter * np.random.default_rng(0).normal(size=(draws, len(x)))
    again = x[(np.polyval(cubic, x) + noise).argmin(1)]
    return scatter, float((abs(again - lowest) <= 1).mean())


def _share_lost(row: dict[str, Any]) -> float:
    """What the learning rate that was found leaves of the loss's fall, from the lowest rate of the grid to its best."""
    grid = {int(power): loss for power, loss in row["grid"].items()}
    powers, best = sorted(grid), min(grid.values())
    found = np.interp(math.log2(row["found"] / row["own"]), powers, [math.log(grid[power]) for power in powers])
    return (math.exp(found) - best) / (grid[powers[0]] - best)


PEERS = (("tuner", "Lightning's tuner"), ("range_test", "torch-lr-finder"))


def _peer(rows: Sequence[dict[str, Any]], key: str, name: str) -> str:
    """How often the suggestion of a test of 100 rising learning rates is near the best, of the runs where it gives one."""
    told = [r for r in rows if r[key]]
    near = sum(0.5 <= r[key] / r["best"] <= 2 for r in told)
    seconds = sorted(r[key + "_seconds"] for r in rows)[len(rows) // 2]
    return f" {name} (100 rising learning rates, {seconds:.1f} s): in {near}, and gives no answer in {len(rows) - len(told)}."


def write(path: Path) -> None:
    known = json.loads(path.read_text())
    gpu = json.loads((HERE / "gpu_transfer.json").read_text())["rows"]
    for name, svg in pictures(gpu).items():
        (PAGE.parent / name).write_text(svg, encoding="utf-8")
    before, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(before + MARK + "\n\n" + "\n".join(measured(known, gpu)), encoding="utf-8")
