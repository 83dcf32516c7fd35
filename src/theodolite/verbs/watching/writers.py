"""Where numbers go beside the page: one function a service: TensorBoard, wandb, MLflow, aim, any callable."""

import re
from collections.abc import Callable
from typing import Any

from theodolite.core.checks import InputTypeError
from theodolite.verbs.watching.records import Record

ScalarWriter = Callable[[str, float, int], Any]
"""Takes one number at a time: its name, its value and its step."""


def scalar_writer(writer: Any) -> ScalarWriter | None:
    """Whatever people log to, as a `ScalarWriter`.

    Known: anything with ``add_scalar`` (TensorBoard), a wandb run (``log``), the module mlflow or a client-like object
    (``log_metric``), an aim ``Run`` (``track``), and any ``function(numbers, step)``.

    >>> seen = []
    >>> scalar_writer(lambda numbers, step: seen.append((numbers, step)))("loss", 1.0, 3)
    >>> seen
    [({'loss': 1.0}, 3)]
    """
    if writer is None:
        return None
    if hasattr(writer, "add_scalar"):
        return lambda name, value, step: writer.add_scalar(name, value, step)
    if hasattr(writer, "track"):
        return lambda name, value, step: writer.track(value, name=name, step=step)
    if hasattr(writer, "log_metric"):
        return lambda name, value, step: writer.log_metric(name, value, step=step)
    if hasattr(writer, "log"):
        return lambda name, value, step: writer.log({name: value}, step=step)
    if callable(writer):
        return lambda name, value, step: writer({name: value}, step)
    raise InputTypeError(
        f"expected a writer with add_scalar, log, log_metric or track, or a function, got {type(writer).__name__}"
    )


def write_scalars(writer: ScalarWriter, record: Record) -> None:
    """Every reading of a look."""
    for look, reading in record.readings:
        writer(f"theodolite/{look}/{_word(reading.quantity)}", reading.measured, record.step)


def _word(quantity: str) -> str:
    """A quantity in the letters that every service takes: MLflow refuses brackets and commas.

    >>> _word("NC2, cosines from -1/(C-1)")
    'NC2-cosines-from--1-over-C-1'
    """
    return "-".join(re.sub(r"[^A-Za-z0-9_. -]", "", quantity.replace("/", " over ")).split())
