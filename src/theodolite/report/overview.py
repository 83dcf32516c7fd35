"""What there is, and what is advised: the catalogue and a design, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.report.text import as_cell, plain_table, survey_table
from theodolite.report.words import plain

if TYPE_CHECKING:
    from rich.console import RenderableType


def listing(entries: Sequence[Any], topics: Mapping[str, str]) -> RenderableType:
    """Every law under its topic, then every instrument, each with its one line."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for topic, description in topics.items():
        laws = [entry for entry in entries if entry.kind == "law" and entry.topic == topic]
        parts += [Text.assemble((f"laws · {topic}", "bold"), (f"  {description}", "dim")), _names(laws), Text("")]
    instruments = [entry for entry in entries if entry.kind == "instrument"]
    parts += [Text("instruments", style="bold"), _names(instruments)]
    return Group(*parts)


def design_table(design: Any) -> RenderableType:
    """The critical point, the usual initialisations beside it, step sizes, and what random networks of this size did."""
    from rich.console import Group
    from rich.text import Text

    table = plain_table("initialisation", "C_w", "C_b", "phase", "χ∥", "χ⊥", "depth scale")
    for option in design.options:
        table.add_row(
            option.name, plain(option.weight_variance), plain(option.bias_variance), option.phase.name,
            *(plain(chi, digits=4) for chi in (option.phase.chi_parallel, option.phase.chi_perpendicular)),
            _depth(option.phase.correlation_depth),
        )  # fmt: skip
    point = design.criticality
    kind = Text.assemble(("criticality: ", "bold"), point.kind, ". ", point.reason)
    parts: list[RenderableType] = [Text(design.title, style="bold"), kind, Text(""), table, Text("")]
    parts += [Text.assemble(("step sizes: ", "bold"), *_step_words(design)), Text("")]
    for reading in (
        r for answer in design.answers if answer.instrument.name == "spread of gradients" for r in answer.readings
    ):
        parts += [Text.assemble(("gradients: ", "bold"), reading.meaning), Text("")]
    return Group(*parts, survey_table(design.answers, ()))


def _step_words(design: Any) -> list[str]:
    rates, first = design.rates, design.options[0].name
    hidden = rates.layers[min(1, len(rates.layers) - 1)]
    words = [
        f"under {first} initialisation plain gradient descent on the mean squared error stays stable below "
        f"{plain(rates.single, digits=3)} for all parameters alike, and that falls as 1 over the width. By layer: weights "
        f"{plain(hidden.weights * hidden.fan_in, digits=3)} over fan-in, biases {plain(hidden.biases, digits=3)}."
    ]
    if design.kernel is not None:
        left = ", ".join(
            f"{loss:.2g} after {time:g}" for time, loss in zip(design.kernel.times, design.kernel.losses, strict=True)
        )
        words.append(
            f" On the data the kernel of the infinitely wide network has condition number "
            f"{plain(design.kernel.condition, digits=3)}; of the loss it would leave {left} steps of half the limit."
        )
    return words


def _depth(layers: float) -> str:
    return "∞ layers" if math.isinf(layers) else f"{layers:.3g} layers"


def _names(entries: Sequence[Any]) -> RenderableType:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")
    for entry in entries:
        grid.add_row(f"  {entry.name}", as_cell(entry.summary))
    return grid
