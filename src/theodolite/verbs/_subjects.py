"""A subject from what people pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.core.checks import InputTypeError

if TYPE_CHECKING:
    from theodolite.core.subject import Subject


def subject_of(target: Any, **facts: Any) -> Subject:
    """A Subject from what people pass: a Subject, a module, a state dict, or the path of a checkpoint."""
    from theodolite.core.subject import Subject

    if isinstance(target, Subject):
        if facts:
            raise InputTypeError(
                f"expected {', '.join(facts)} inside the Subject, got them beside it; pass them to Subject"
            )
        return target
    if isinstance(target, str | Path):
        from theodolite.io.loading import target as loaded

        return loaded(str(target), **facts)
    if isinstance(target, Mapping):
        from theodolite.io.weights import state_of, weights_of

        return Subject(weights=weights_of(state_of(target)), **{"name": "state dict", **facts})
    return Subject(target, **facts)
