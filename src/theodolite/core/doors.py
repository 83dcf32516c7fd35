"""The door of a package: what enters is checked by name, and what goes wrong inside is said in one line.

Public functions of theory and measure are guarded where their package offers them; inside, functions call each other freely.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from theodolite.core.domains import array, number, numbers, whole, wholes
from theodolite.core.kernel_domains import covariance, inputs_or_count, kernel, model_inputs

SPECIAL: dict[str, Callable[[str, Any], Any]] = {
    "Inputs": model_inputs,
    "Covariance": covariance,
    "int | Tensor": inputs_or_count,
}
OBJECTS = frozenset(
    [
        "Cell",
        "ClassMoments",
        "Ensemble",
        "Kernels",
        "LineEnsemble",
        "LinearNet",
        "Margin",
        "Matrix",
        "Mlp",
        "Mlp | Layers",
        "Neighbors",
        "PowerLaw",
        "Problem",
        "QuadraticProblem",
        "RadialFunction",
        "Rows",
        "Symmetric",
        "nn.Module",
    ]
)
"""Annotations that a number or a word can never be."""
RAW = (RuntimeError, ArithmeticError, ValueError, TypeError)
"""What odd arguments raise inside: shapes, domains, overflow. A missing key, place or attribute is our own defect: it shows."""


def _checks(function: Callable[..., Any], package: str) -> dict[str, Callable[[str, Any], Any]]:
    """For each parameter that a check knows by its annotation, the check."""
    found: dict[str, Callable[[str, Any], Any]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        words = str(parameter.annotation).removesuffix(" | None")
        if words == "int":
            found[name] = whole
        elif words == "float":
            found[name] = number
        elif words in ("Tensor", "Array") and package != "theodolite.theory.dimension":  # transforms take any tensor
            known = kernel if name == "kernel" and package.startswith("theodolite.theory") else array
            found[name] = functools.partial(known, tensor=words == "Tensor")
            if known is array and package == "theodolite.theory.kernels" and name in ("x", "other"):
                found[name] = functools.partial(array, tensor=True, empty=True)  # no points have an empty kernel
        elif words in SPECIAL:
            found[name] = SPECIAL[words]
        elif words in OBJECTS:
            found[name] = functools.partial(_object, words=words)
        elif words in ("Sequence[float]", "Iterable[float]") and name not in ("losses", "curvatures"):
            found[name] = numbers
        elif words == "Array | float":
            found[name] = functools.partial(array, tensor=False)
        elif words == "Sequence[int]":
            found[name] = wholes
    return found


def _object(name: str, value: Any, *, words: str) -> Any:
    """The value, unless it is nothing, a plain number or a word."""
    if value is None or isinstance(value, str | bytes | int | float | complex):
        raise TypeError(f"expected {name} to be of type {words}, got {value!r}")
    return value


def guarded(function: Callable[..., Any], package: str) -> Callable[..., Any]:
    """The function behind a door that checks what enters by name, and says in one line what went wrong inside."""
    signature = inspect.signature(function)
    if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        return function  # what is handed on to a model is the model's to refuse
    checks = _checks(function, package)
    needed = {name for name, p in signature.parameters.items() if str(p.annotation) in OBJECTS and p.default is p.empty}

    @functools.wraps(function)
    def at_the_door(*args: Any, **keywords: Any) -> Any:
        bound = signature.bind(*args, **keywords)
        for name, value in bound.arguments.items():
            if name in checks and (value is not None or name in needed):
                bound.arguments[name] = checks[name](name, value)
        try:
            return function(*bound.args, **bound.kwargs)
        except RAW as error:
            text = str(error)
            said = text.startswith("expected") and not isinstance(error, RuntimeError)  # torch begins so too
            if said or "OutOfMemory" in type(error).__name__:
                raise
            first = (text.strip().splitlines() or [type(error).__name__])[0]
            raise ValueError(f"expected arguments within the domain of {function.__name__}, got {first}") from error

    at_the_door.__module__ = package  # where it is found again, by pickle too
    return at_the_door
