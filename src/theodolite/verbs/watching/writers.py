"""Where numbers go beside the page: one small protocol, and what speaks it: TensorBoard, wandb, MLflow, aim, any callable."""

import re
from typing import Any, Protocol

from theodolite.core.checks import InputTypeError
from theodolite.verbs.watching.records import Record


class ScalarWriter(Protocol):
    """Takes one number at a time."""

    def add_scalar(self, tag: str, value: float, step: int) -> Any:
        """One number of one step."""


class _Called:
    """Any function of a dictionary and a step as a writer: it is called once a number."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.function({tag: value}, step)


def scalar_writer(writer: Any) -> ScalarWriter | None:
    """Whatever people log to, as a `ScalarWriter`.

    Known: anything with ``add_scalar`` (TensorBoard), a wandb run (``log``), the module mlflow or a client-like object
    (``log_metric``), an aim ``Run`` (``track``), and any ``function(numbers, step)``.

    >>> seen = []
    >>> scalar_writer(lambda numbers, step: seen.append((numbers, step))).add_scalar("loss", 1.0, 3)
    >>> seen
    [({'loss': 1.0}, 3)]
    """
    if writer is None:
        return None
    if hasattr(writer, "add_scalar"):
        return writer  # type: ignore[no-any-return]
    if hasattr(writer, "track"):
        return _Called(lambda numbers, step: [writer.track(v, name=name, step=step) for name, v in numbers.items()])
    if hasattr(writer, "log_metric"):
        return _Called(lambda numbers, step: [writer.log_metric(name, v, step=step) for name, v in numbers.items()])
    if hasattr(writer, "log"):
        return _Called(lambda numbers, step: writer.log(numbers, step=step))
    if callable(writer):
        return _Called(writer)
    raise InputTypeError(
        f"expected a writer with add_scalar, log, log_metric or track, or a function, got {type(writer).__name__}"
    )


def write_scalars(writer: ScalarWriter, record: Record) -> None:
    """Every reading of a look."""
    for look, reading in record.readings:
        writer.add_scalar(f"theodolite/{look}/{_word(reading.quantity)}", reading.measured, record.step)


def _word(quantity: str) -> str:
    """A quantity in the letters that every service takes: MLflow refuses brackets and commas.

    >>> _word("NC2, cosines from -1/(C-1)")
    'NC2-cosines-from--1-over-C-1'
    """
    return "-".join(re.sub(r"[^A-Za-z0-9_. -]", "", quantity.replace("/", " over ")).split())
