"""Adapters of low rank (LoRA and its like): which tensors of a file are the two factors of which module, and what they add.

The change of a module's weight is scale x B A with A of rank x inputs and B of outputs x rank (Hu et al., 2022). Names are
those of peft (``lora_A``, ``lora_B``, ``lora_embedding_A``), diffusers (``lora.down``) and the trainers of image models
(``lora_down``, ``lora_up``, ``alpha``). The scale is alpha over the rank, or over its root where the configuration says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.core.checks import InputError
from theodolite.core.lazy_torch import torch
from theodolite.io.formats._format import unreadable
from theodolite.io.weights import Listed, Weight, Weights, left_out

if TYPE_CHECKING:
    from torch import Tensor

CONFIG = "adapter_config.json"
DOWN = re.compile(
    r"^(?P<module>.*?)[._](?P<word>lora_A|lora_embedding_A|lora_down|lora\.down|lora_linear_layer\.down)"
    r"(?P<rest>(\.[A-Za-z0-9_]+)??)(?P<end>\.weight)?$"
)
UP = {
    "lora_A": "lora_B",
    "lora_embedding_A": "lora_embedding_B",
    "lora_down": "lora_up",
    "lora.down": "lora.up",
    "lora_linear_layer.down": "lora_linear_layer.up",
}
PREFIXES = ("base_model.model.", "base_model.", "_orig_mod.", "module.")


@dataclass(frozen=True)
class Adapted:
    """A module and what an adapter adds to its weight: ``scale`` times ``up`` times ``down``.

    ``embedding`` says that the product is transposed, ``magnitude`` holds the norms that the rows of the sum are brought to
    (Liu et al., 2024), ``note`` what could not be known.
    """

    module: str
    down: Weight
    up: Weight
    scale: float
    embedding: bool = False
    magnitude: Weight | None = None
    note: str = ""

    @property
    def rank(self) -> int:
        """The nominal rank."""
        return self.down.shape[0]

    def factors(self) -> tuple[Tensor, Tensor]:
        """B with the scale in it, of outputs x rank, and A of rank x inputs, in float64."""
        up, down = (weight.read().double().flatten(1) for weight in (self.up, self.down))
        if up.shape[1] != down.shape[0]:
            raise InputError(
                f"expected factors of one rank in {self.module}, got {tuple(up.shape)} and {tuple(down.shape)}; "
                "save the adapter again"
            )
        return self.scale * up, down

    def change(self) -> Tensor:
        """What is added to the weight, as a matrix of outputs by inputs (of an embedding: words by features)."""
        up, down = self.factors()
        return (up @ down).T if self.embedding else up @ down


def adapter(weights: Weights, config: Mapping[str, Any]) -> dict[str, Adapted]:
    """Every pair of factors among the weights, by module; none where they are of another kind of file."""
    found: dict[str, Adapted] = {}
    for name, down in weights.items():
        match = DOWN.match(name)
        if match is None or len(down.shape) < 2:
            continue
        tail = f"{match['rest']}{match['end'] or ''}"
        at = match.end("module")
        up = weights.get(f"{name[: at + 1]}{UP[match['word']]}{tail}")
        if up is None or len(up.shape) < 2:
            continue
        module = _bare(match["module"])
        scale, note = _scale(module, down.shape[0], weights.get(f"{match['module']}.alpha"), config)
        lengths = weights.get(f"{match['module']}.lora_magnitude_vector{tail}") or weights.get(
            f"{match['module']}.lora_magnitude_vector"
        )
        found[module] = Adapted(module, down, up, scale, "embedding" in match["word"], lengths, note)
    return found


def configuration(path: Path) -> dict[str, Any]:
    """What ``adapter_config.json`` beside the tensors says; empty where there is none."""
    file = (path if path.is_dir() else path.parent) / CONFIG
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() and file.stat().st_size < 1 << 22 else {}
    except (ValueError, OSError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _bare(module: str) -> str:
    for prefix in PREFIXES:
        module = module.removeprefix(prefix)
    return module


def _scale(module: str, rank: int, own: Weight | None, config: Mapping[str, Any]) -> tuple[float, str]:
    if own is not None and math.prod(own.shape) == 1:
        return float(own.read().double().item()) / max(rank, 1), ""
    alpha = _pattern(module, config.get("alpha_pattern"), config.get("lora_alpha"))
    if not isinstance(alpha, int | float):
        return 1.0, "its alpha is not known and assumed to be its rank"
    return alpha / (math.sqrt(rank) if config.get("use_rslora") else max(rank, 1)), ""


def _pattern(module: str, patterns: Any, usual: Any) -> Any:
    """The value for a module whose name ends in one of the patterns, as peft reads them: as words, not as programs."""
    for key, value in patterns.items() if isinstance(patterns, dict) else ():
        if module == str(key).removeprefix("^") or module.endswith(f".{key}"):
            return value
    return usual


def merged(found: Mapping[str, Adapted], tensors: Weights, base: Weights) -> tuple[Listed, dict[str, Weight]]:
    """The weights that the adapter changes, as they are with it, and as they are in the base.

    Whole tensors that were saved beside the factors (heads, embeddings) are among them.
    """
    names = _by_end(base)
    after: dict[str, Weight] = {}
    before: dict[str, Weight] = {}
    for module, adapted in found.items():
        name = _named(module, names)
        if name is None:
            after[module] = unreadable(
                module,
                f"expected the weight of {module} in the base, got none; pass the base that the adapter was made for",
            )
            continue
        before[name] = base[name]
        after[name] = _sum(base[name], adapted)
    used = {weight.name for a in found.values() for weight in (a.down, a.up, a.magnitude) if weight is not None}
    for name, weight in tensors.items():
        whole = _named(_bare(name).replace(".modules_to_save.default", "").removesuffix(".weight"), names)
        if name not in used and whole is not None and base[whole].shape == weight.shape:
            before[whole], after[whole] = base[whole], replace(weight, name=whole, note="saved whole by the adapter")
    rest = tuple(name for name in base if name not in before)
    return Listed(after, {**left_out(tensors), "as it is in the base: the adapter leaves it alone": rest}), before


def _by_end(base: Weights) -> dict[str, str]:
    """Names of the base by their last parts, wherever these lead to one tensor alone."""
    ends: dict[str, list[str]] = {}
    for name in base:
        parts = name.removesuffix(".weight").split(".")
        for start in range(1, len(parts)):
            ends.setdefault(".".join(parts[start:]), []).append(name)
    alone = {key: names[0] for key, names in ends.items() if len(names) == 1}
    return alone | {name.removesuffix(".weight"): name for name in base}


def _named(module: str, names: Mapping[str, str]) -> str | None:
    parts = module.split(".")
    tries = [".".join(parts[start:]) for start in range(max(1, min(3, len(parts) - 1)))]
    return next((names[key] for key in (*tries, module.replace(".", "_")) if key in names), None)


@dataclass(frozen=True)
class _Sum:
    """The weight of the base with what the adapter adds."""

    base: Weight
    adapted: Adapted

    def __call__(self) -> Tensor:
        start = self.base.read()
        change = self.adapted.change()
        if change.shape != start.flatten(1).shape:
            if change.T.shape != start.flatten(1).shape:
                raise InputError(
                    f"expected a base of shape {tuple(change.shape)} for {self.base.name}, got {tuple(start.shape)}; "
                    "pass the base that the adapter was made for"
                )
            change = change.T  # layers that keep their weight as inputs by outputs
        whole = start.double() + change.reshape(start.shape)
        if self.adapted.magnitude is not None:
            lengths = self.adapted.magnitude.read().double().flatten()
            whole = whole * (lengths / whole.flatten(1).norm(dim=1)).reshape(-1, *[1] * (start.ndim - 1))
        return whole.to(start.dtype if start.is_floating_point() else torch.float32)


def _sum(base: Weight, adapted: Adapted) -> Weight:
    parts = [base, adapted.down, adapted.up]
    source = "|".join(part.source for part in parts) if all(part.source for part in parts) else ""
    words = f"the base with an adapter of rank {adapted.rank}" + (f"; {adapted.note}" if adapted.note else "")
    return Weight(
        base.name, base.shape, base.kind, _Sum(base, adapted), source and f"{source}|{adapted.scale}", note=words
    )
