"""A network written down for a file of points, kept as safetensors, and what was made of it in words or JSON."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from theodolite.construct.capacity import memorizing as memory
from theodolite.core.checks import InputError
from theodolite.io.datasets import dataset
from theodolite.report.overview import memory_words


def memorize_file(data: str, out: Path, options: Any) -> str:
    """Write the network that fits the points of a file; ``options`` are those of the command line."""
    points = dataset(data, exact=True)
    if not isinstance(points, tuple):
        raise InputError(f"expected an .npz with x and y, got {data} without targets; numpy.savez(path, x=x, y=y)")
    try:
        widths = [int(width) for width in options.widths.split(",")] if options.widths else None
    except ValueError as error:
        raise InputError(f"expected widths such as 200,200, got {options.widths!r}; pass whole numbers") from error
    net = memory.memorize(*points, activation=options.activation, widths=widths, seed=options.seed)
    if options.float32:
        net = memory.in_float32(net, *points)
    memory.save(net, out)
    dtype = str(net[-1].weight.dtype)
    if options.json:
        return json.dumps({**asdict(net.report), "file": str(out), "dtype": dtype}, indent=2)
    return memory_words(net.report, dtype) + f"\nThe network: {out}"
