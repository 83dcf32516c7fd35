"""What there is, and what is advised: the catalogue and a design, for the terminal."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from theodolite.report.diagnosis import diagnosis_text
from theodolite.report.opening import SmallTable
from theodolite.report.text import as_cell, plain_table, survey_table
from theodolite.report.unicode_math import unicode_prose
from theodolite.report.words import number, plain


def listing(entries: Sequence[Any], topics: Mapping[str, str]) -> RenderableType:
    """Every law under its topic, then every instrument and every ailment, each with its one line."""
    parts: list[RenderableType] = []
    for topic, description in topics.items():
        laws = [entry for entry in entries if entry.kind == "law" and entry.topic == topic]
        parts += [Text.assemble((f"laws · {topic}", "bold"), (f"  {description}", "dim")), _names(laws), Text("")]
    instruments = [entry for entry in entries if entry.kind == "instrument"]
    ailments = [entry for entry in entries if entry.kind == "ailment"]
    parts += [Text("instruments", style="bold"), _names(instruments), Text("")]
    parts += [Text("ailments", style="bold"), _names(ailments)]
    return Group(*parts)


def design_table(design: Any) -> RenderableType:
    """The critical point, the usual initializations beside it, step sizes, and what random networks of this size did."""
    options, _ = design_tables(design)
    table = plain_table(*options.header)
    for row in options.rows:
        table.add_row(*row)
    point = design.criticality
    kind = Text.assemble(("criticality: ", "bold"), point.kind, ". ", point.reason)
    parts: list[RenderableType] = [Text(design.title, style="bold"), diagnosis_text(design.diagnosis), Text("")]
    parts += [kind, Text(""), table, Text(options.note, style="dim"), Text("")]
    if design.network is not None:
        parts += [Text.assemble(("network: ", "bold"), design.network.words), Text("")]
    parts += [Text.assemble(("learning rates: ", "bold"), *step_words(design)), Text("")]
    if design.capacity is not None:
        parts += [Text.assemble(("capacity: ", "bold"), _memory_words(design.capacity)), Text("")]
    for reading in (
        r for answer in design.answers if answer.question.name == "spread of gradients" for r in answer.readings
    ):
        parts += [Text.assemble(("gradients: ", "bold"), reading.meaning), Text("")]
    return Group(*parts, survey_table(design.answers, ()))


SYMBOLS = (
    "C_w is the variance of a weight times its fan-in, C_b that of a bias. χ∥ and χ⊥ say by how much a change of the signal's "
    "size, and a small difference of two inputs or a gradient, grows in one layer: 1 is critical. The depth scale is the number "
    "of layers in which it changes e-fold."
)


def design_tables(design: Any) -> tuple[SmallTable, ...]:
    """The usual initializations beside the critical one, and the largest useful steps of its layers."""
    rows = [
        (
            option.name,
            plain(option.weight_variance),
            plain(option.bias_variance),
            option.phase.name,
            *(plain(chi, digits=4) for chi in (option.phase.chi_parallel, option.phase.chi_perpendicular)),
            _depth(option.phase.correlation_depth),
        )
        for option in design.options
    ]
    header = ("initialization", "C_w", "C_b", "phase", "χ∥", "χ⊥", "depth scale")
    return SmallTable("Initializations", header, tuple(rows), SYMBOLS), _step_table(design)


def _step_table(design: Any) -> SmallTable:
    layers = design.rates.layers
    kinds = {"first layer": layers[0], "hidden layers": layers[min(1, len(layers) - 1)], "last layer": layers[-1]}
    rows = [
        (name, str(rate.fan_in), plain(rate.weight_lr, digits=3), plain(rate.bias_lr, digits=3))
        for name, rate in kinds.items()
    ]
    caption = f"Largest stable learning rates with {design.options[0].name} initialization, by layer"
    return SmallTable(caption, ("layer", "fan-in", "lr of weights", "lr of biases"), tuple(rows))


def _memory_words(memory: Any) -> str:
    holds = f"these widths certainly fit {memory.certain} points with any targets of one output"
    if memory.samples is None:
        return holds + "."
    enough = " x ".join(str(width) for width in memory.enough)
    answer = "so all" if memory.samples <= memory.certain else "so perhaps not all"
    return f"{holds}, {answer} {memory.samples} samples; two hidden layers of {enough} would."


def memory_words(report: Any, dtype: str) -> str:
    """What a memorizing network holds and how well, in a few lines."""
    widths = " x ".join(str(width) for width in report.widths)
    lines = [
        f"{report.points} points in hidden layers of {widths} {report.activation} units, which can hold "
        f"{report.capacity}; written down in {report.seconds:.2f} s, in {dtype.removeprefix('torch.')}."
    ]
    if report.merged:
        lines.append(f"{report.merged} rows that repeat others were merged.")
    if report.labels_right is None:
        lines.append(f"Largest error over all points: {report.error:.2g}.")
    else:
        lines.append(
            f"Labels right: {100 * report.labels_right:.4g}%; largest error of the one-hot answers: {report.error:.2g}."
        )
    blocks = ", ".join(str(points) for points in report.blocks)
    lines.append(f"Points along each projection: {blocks}. Largest weight: {report.largest_weight:.2g}.")
    return "\n".join(lines)


def dimension_table(found: Any) -> RenderableType:
    """Every estimator of dimension with its error and what it means, the best of them, and why they differ."""
    table = plain_table("family", "estimator")
    table.add_column("dimension", justify="right", no_wrap=True)
    table.add_column("what it says", overflow="fold", ratio=1)
    last = ""
    for answer in found.answers:
        for reading in answer.readings:
            family = answer.question.name
            told = number(reading.measured, reading.stderr)
            table.add_row("" if family == last else family, as_cell(reading.where), told, as_cell(reading.meaning))
            last = family
    best = Text.assemble(("dimension: ", "bold"), (number(found.best.value, found.best.stderr), "bold"))
    parts: list[RenderableType] = [Text(found.title, style="bold"), best, Text("")]
    parts += [as_cell(sentence) for sentence in found.words]
    parts += [Text(""), table]
    if found.skipped:
        skips = plain_table("skipped", "why")
        for skip in found.skipped:
            skips.add_row(as_cell(skip.instrument), as_cell(skip.reason))
        parts += [Text(""), skips]
    return Group(*parts)


def step_words(design: Any) -> list[str]:
    """How large a step may be, in sentences."""
    rates, first = design.rates, design.options[0].name
    hidden = rates.layers[min(1, len(rates.layers) - 1)]
    words = [
        f"With {first} initialization plain gradient descent on the mean squared error stays stable below lr = "
        f"{plain(rates.single, digits=3)} for all parameters, and this limit falls as 1 over the width. By layer: weights "
        f"{plain(hidden.weight_lr * hidden.fan_in, digits=3)} over fan-in, biases {plain(hidden.bias_lr, digits=3)}."
    ]
    if design.kernel is not None:
        left = ", ".join(
            f"{loss:.2g} after {time:g}" for time, loss in zip(design.kernel.times, design.kernel.losses, strict=True)
        )
        words.append(
            f" On the data the kernel of the infinitely wide network has condition number "
            f"{plain(design.kernel.condition, digits=3)}; at half the limit the loss falls to {left} steps."
        )
    return words


def _depth(layers: float) -> str:
    return "∞" if math.isinf(layers) else f"{layers:.3g}"


def _names(entries: Sequence[Any]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")
    for entry in entries:
        grid.add_row(f"  {entry.name}", as_cell(unicode_prose(entry.summary)))
    return grid


def summary_table(summary: Any) -> RenderableType:
    """The layers of a model with shapes, sizes and what was measured; columns without a number are left out."""
    columns: dict[str, Any] = {
        "layer": lambda layer: layer.name or "(the model)",
        "type": lambda layer: layer.kind,
        "output": lambda layer: layer.output,
        "parameters": lambda layer: (
            f"{layer.parameters:,}" + ("" if layer.trainable else " (frozen)") if layer.parameters else ""
        ),
        "multiply-adds": lambda layer: "" if not layer.multiply_adds > 0 else f"{layer.multiply_adds:,.0f}",
        "C_w": lambda layer: _three(layer.weight_variance),
        "signal": lambda layer: _three(layer.signal),
        "gradient": lambda layer: _three(layer.gradient),
    }
    cells = {name: [words(layer) for layer in summary.layers] for name, words in columns.items()}
    kept = {name: column for name, column in cells.items() if any(column)}
    table = plain_table()
    for name in kept:
        table.add_column(name, justify="left" if name in ("layer", "type", "output") else "right", overflow="fold")
    for row in zip(*kept.values(), strict=True):
        table.add_row(*map(as_cell, row))
    still = summary.parameters - summary.trainable
    size = f"{summary.bytes / 1e6:,.1f} MB" if summary.bytes >= 1e5 else f"{summary.bytes / 1e3:,.1f} kB"
    total = f"{summary.parameters:,} parameters ({size}" + (f", {still:,} frozen)" if still else ")")
    if summary.samples:
        total += f"; {summary.multiply_adds:,.0f} multiply-adds a sample"
    notes = {
        "C_w": "C_w: weight variance × fan-in",
        "signal": "signal: mean square of the outputs",
        "gradient": "gradient: norm of the gradient over norm of the weights",
    }
    legend = "; ".join(words for name, words in notes.items() if name in kept)
    return Group(table, Text(""), Text(total + "."), *([Text(legend + ".", style="dim")] if legend else []))


def _three(value: float) -> str:
    return "" if value != value else plain(value, digits=3)


def similarity_table(found: Any) -> RenderableType:
    """For each layer the one that it is most like in the other network, with what chance gives."""
    table = plain_table("layer", "most like", "similarity", "by chance", "")
    for layer, row in zip(found.layers, found.found, strict=True):
        best = max(
            range(len(row)), key=lambda place: row[place].value if row[place].value == row[place].value else -1.0
        )
        one = row[best]
        clear = "" if one.p_value <= 0.01 else "no more than chance"
        chance = f"{one.null:.3f} ± {one.null_error:.3f}"
        table.add_row(*map(as_cell, (layer, found.others[best], f"{one.value:.3f}", chance, clear)))
    words = (
        f"Centered kernel alignment on {found.samples:,} samples: 1 is the same features up to a rotation and a scale, 0 "
        "nothing in "
        "common. By chance: the same with the samples of one network permuted."
    )
    return Group(table, Text(""), Text(words, style="dim"))
