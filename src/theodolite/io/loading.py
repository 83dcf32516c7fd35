"""Targets from the command line: files and names become subjects, one tensor in memory at a time."""

import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theodolite.core.checks import InputError, check_device
from theodolite.core.lazy_torch import is_module
from theodolite.core.subject import Subject
from theodolite.io.adapters import Adapted, adapter, configuration, merged
from theodolite.io.checkpoints import KINDS, checkpoint, one_line
from theodolite.io.datasets import dataset, default_loss
from theodolite.io.files import is_there, printable
from theodolite.io.weights import Listed, Weights, counterparts, left_out, weights_of


def target(name: str, *, data: Any = None, device: str = "cpu", **facts: Any) -> Subject:
    """The subject that a target on the command line names: a checkpoint, or a function that returns a model.

    ``facts`` are the other fields of `Subject`, and ``base``, the checkpoint that an adapter belongs to. A function may also
    return a whole `Subject`.
    """
    check_device(device)
    if ":" in name and not is_there(Path(name)):
        return _from_function(name, data=data, device=device, facts=facts)
    base = facts.pop("base", None)
    weights = checkpoint(name, device=device)
    if data is not None:
        raise InputError(
            f"expected a model to run the data through, got the weights {name} alone; "
            "write a function that builds the model and loads them, and pass package.module:function"
        )
    found = adapter(weights, configuration(Path(name)))
    if found:
        return _adapted(
            name, weights, found, checkpoint(base, device=device) if base else facts.pop("origin", None), facts
        )
    if base is not None:
        raise InputError(
            f"expected a low-rank adapter in {name} for --base, got none; to compare two checkpoints pass --against"
        )
    weights, facts["origin"] = _compared(weights, facts.get("origin"))
    return Subject(weights=weights, name=printable(name, 400), **facts)


def _compared(weights: Weights, others: Weights | None) -> tuple[Weights, Weights | None]:
    """The weights, and those of another checkpoint under their names; what has no counterpart there is said first."""
    if not others:
        return weights, None
    found = counterparts(weights, others)
    alone = tuple(name for name, weight in weights.items() if name not in found and weight.floating)
    if not any(weights[name].floating for name in found):
        raise InputError(
            f"expected a checkpoint with tensors of the same names and shapes for --against, got none among its {len(others):,} "
            f"(such as {next(iter(others))}, here {next(iter(weights))}); pass the one this was trained from"
        )
    if alone:
        why = f"not compared: the --against checkpoint lacks the names or shapes of {len(alone):,} tensor{'s' * (len(alone) > 1)}"
        weights = Listed(weights, {why: alone, **left_out(weights)})
    return weights, found


def _adapted(
    name: str, weights: Weights, found: Mapping[str, Adapted], base: Weights | None, facts: Mapping[str, Any]
) -> Subject:
    """An adapter alone, or the weights of its base that it changes, with those of the base as their origin."""
    facts = {**facts, "adapter": found, "name": printable(name, 400), "origin": None}
    if base is None:
        return Subject(weights=weights, **facts)
    after, before = merged(found, weights, base)
    return Subject(weights=after, **{**facts, "origin": before or None})


def asked_subject(
    name: str | None,
    data: str | None = None,
    *,
    against: str | None = None,
    base: str | None = None,
    device: str = "cpu",
    **given: Any,
) -> Subject:
    """The subject that a command line names; the built-in network where it names none. ``given`` are fields of `Subject`."""
    check_device(device)
    if name is None and data is None:
        from theodolite.io.builtin_network import builtin

        return builtin()
    if name is None:
        raise InputError("expected a model to run the data through, got data alone; name package.module:function")
    return_large_blocks()
    loaded = dataset(data) if data else None
    origin = checkpoint(against, device=device) if against else None
    facts = {**given, "loss": default_loss(loaded), "origin": origin} | ({"base": base} if base else {})
    return target(name, data=loaded, device=device, **facts)


def return_large_blocks() -> None:
    """In this process, have the C library give tensors back to the system when they are freed.

    It would keep blocks of up to 32 MB (now 8 MB), and cut small notes out of them: then the next tensor of the same size no
    longer fits, and a survey that has one tensor in memory at a time grows as if it kept them all. Without glibc nothing is
    changed.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        for option, size in _LIMITS:
            ctypes.CDLL(None).mallopt(option, size)


# M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h: smaller ones are used again
_LIMITS = ((-3, 8 << 20), (-1, 64 << 20))


def _from_function(name: str, *, data: Any, device: str, facts: Mapping[str, Any]) -> Subject:
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        make = getattr(importlib.import_module(module), function)
    except AttributeError as error:
        raise InputError(f"expected a function called {function} in {module}, got none; check the name") from error
    except Exception as error:
        raise InputError(
            f"expected {KINDS}, got {name!r}: {one_line(error)}; run it where the module imports"
        ) from error
    made = make if is_module(make) or isinstance(make, Subject) else _called(name, make)
    if isinstance(made, Subject):
        return made
    if not is_module(made):
        raise InputError(
            f"expected {name} to return an nn.Module or a Subject, got {type(made).__name__}; return the model"
        )
    made = made if device == "cpu" else made.to(device)
    origin = _compared(weights_of(made), facts["origin"])[1] if facts.get("origin") else None
    return Subject(made, data=data, name=name, **{**facts, "origin": origin})


def _called(name: str, make: Any) -> Any:
    if not callable(make):
        raise InputError(f"expected {name} to be a function that returns a model, got {type(make).__name__}; wrap it")
    needed = [
        p.name
        for p in inspect.signature(make).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise InputError(
            f"expected {name} to need no arguments, got one that needs {', '.join(needed)}; "
            "write a function without arguments that calls it"
        )
    try:
        return make()
    except Exception as error:
        raise InputError(
            f"expected {name} to return a model, got {one_line(error)}; call it in Python to see why"
        ) from error
