"""A package's public names, written once, in the stub beside its ``__init__``, and loaded when first touched.

The stub is what type checkers and editors read. Reading the same file here keeps what they show and what there is the same,
and ``import theodolite`` free of torch.
"""

import importlib
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

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
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_suggestion(name, homes)}")
        if not homes[name]:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *homes}), sorted(homes)


def _suggestion(name: str, names: Iterable[str]) -> str:
    """The public name that a misspelt one is nearest to, as a question; nothing for what only Python itself asks for."""
    from difflib import get_close_matches

    found = [] if name.startswith("_") else get_close_matches(name, names, n=1)
    return f"; did you mean {found[0]}?" if found else ""
