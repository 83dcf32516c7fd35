"""Every quantized weight of a checkpoint as the weight it stands for; tensors of unknown schemes stay as they are."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theodolite.io.packed import bitsandbytes, compressed, gptq, mxfp4, scaled
from theodolite.io.packed._scheme import Config, Match
from theodolite.io.weights import Weight, Weights

SCHEMES = (gptq.scheme, bitsandbytes.scheme, compressed.scheme, mxfp4.scheme, scaled.scheme)
LARGEST = 1 << 22
FILES = ("config.json", "quantize_config.json", "quant_config.json")


def unpacked(weights: Weights, config: Config) -> dict[str, Weight]:
    """The same weights with each quantized one put together, in the place of its matrix."""
    found: dict[str, Match] = {}
    for name in weights:
        match = _match(name, weights, config)
        if match is not None and not _taken(match, name, weights):
            found[name] = match
    used = {part for match in found.values() for part in match.used} - set(found)
    return {
        (found[name].weight.name if name in found else name): found[name].weight if name in found else weight
        for name, weight in weights.items()
        if name not in used
    }


def _match(name: str, weights: Weights, config: Config) -> Match | None:
    for scheme in SCHEMES:
        try:
            match = scheme(name, weights, config)
        except (ValueError, TypeError, RuntimeError, OSError, RecursionError):
            # not what the scheme writes: left as it is
            match = None
        if match is not None:
            return match
    return None


def _taken(match: Match, name: str, weights: Weights) -> bool:
    """Whether another tensor of the file has the name already."""
    return match.weight.name != name and match.weight.name in weights


def quantization(path: Path) -> dict[str, Any]:
    """What the configuration beside a checkpoint says of its quantization; empty where there is none that can be read."""
    folder = path if path.is_dir() else path.parent
    for name in FILES:
        found = _json(folder / name)
        told = found.get("quantization_config", found if name != "config.json" else None)
        if isinstance(told, Mapping):
            return dict(told)
    return {}


def _json(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return {}
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
