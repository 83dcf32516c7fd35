"""A package's public names, written once, in the stub beside its ``__init__``, and loaded when first touched.

The stub is what type checkers and editors read. Reading the same file here keeps what they show and what there is the same,
and ``import theodolite`` free of torch.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from theodolite.core.doors import guarded

GUARDED = ("theodolite.theory", "theodolite.measure")
"""Packages whose functions check what enters."""
_IMPORT = re.compile(r"^from \.([\w.]*) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


def public_names(stub: Path) -> dict[str, str]:
    """Each name that a stub offers, with the module that it lies in; a submodule lies in the empty one."""
    text = stub.read_text(encoding="utf-8")
    return {
        words.split(" as ")[0].strip(): module
        for module, several, one in _IMPORT.findall(text)
        for words in (several or one).split(",")
        if words.strip()
    }


def surface(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub."""
    file = sys.modules[package].__file__
    assert file is not None
    homes = public_names(Path(file).with_suffix(".pyi"))

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes[name]:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(_nearest(package, homes[name], name)), name)
        if isinstance(value, FunctionType) and package.startswith(GUARDED):
            value = guarded(value, package)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *homes}), sorted(homes)


def _nearest(package: str, home: str, name: str) -> str:
    """The package that offers a name where one does, so that a function is the same by every way; else its module."""
    room, _, _ = f"{package}.{home}".rpartition(".")
    offered = room != package and name in getattr(importlib.import_module(room), "__all__", ())
    return room if offered else f"{package}.{home}"
