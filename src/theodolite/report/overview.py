"""What there is, and what is advised: the catalogue and a design, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theodolite.report.text import as_cell, plain_table, survey_table
from theodolite.report.words import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from theodolite.instrument import Answer


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


def design_table(title: str, criticality: Any, options: Sequence[Any], answers: Sequence[Answer]) -> RenderableType:
    """The critical point, the usual initialisations beside it, and what random networks of this size did."""
    from rich.console import Group
    from rich.text import Text

    table = plain_table("initialisation", "C_w", "C_b", "phase", "χ∥", "χ⊥", "depth scale")
    for option in options:
        numbers = (option.phase.chi_parallel, option.phase.chi_perpendicular)
        table.add_row(
            option.name,
            plain(option.weight_variance),
            plain(option.bias_variance),
            option.phase.name,
            *(plain(number, digits=4) for number in numbers),
            _depth(option.phase.correlation_depth),
        )
    heading = Text(title, style="bold")
    kind = Text.assemble(("criticality: ", "bold"), criticality.kind, ". ", criticality.reason)
    return Group(heading, kind, Text(""), table, Text(""), survey_table(answers, ()))


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
