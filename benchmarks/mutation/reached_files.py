"""Which files a file reaches, read from the sources: nothing is imported, and the lazy surfaces are seen through.

Mutants need it: a test that does not reach the changed file need not be run.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from theodolite.core.lazy_exports import public_names

_DOTTED = re.compile(r"\w+(\.\w+)+\.?")
_FILE = re.compile(r"[\w-]+\.\w+")


class Sources:
    """The modules of the package in folder ``root``, each with what it imports; every file is read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._direct: dict[Path, frozenset[Path]] = {}
        self._homes: dict[Path, dict[str, str]] = {}
        self._digests: dict[Path, bytes] = {}

    def reached(self, start: Path) -> frozenset[Path]:
        """A file (of the package, or one that uses it, such as a test) and all that importing and running it may read."""
        packages = {folder / "__init__.py" for folder in start.parents if folder.is_relative_to(self.root)}
        found = {start, *(path for path in packages if path.exists())}
        waiting = list(found)
        while waiting:
            new = self._reads(waiting.pop()) - found
            found |= new
            waiting += new
        return frozenset(found)

    def digest(self, start: Path) -> str:
        """Changes when any of the files that ``start`` reaches does, is moved, or is no longer reached."""
        whole = hashlib.sha256()
        for path in sorted(self.reached(start)):
            if path not in self._digests:
                self._digests[path] = hashlib.sha256(path.read_bytes()).digest()
            whole.update(os.path.relpath(path, self.root).encode() + b"\0" + self._digests[path])
        return whole.hexdigest()

    def _reads(self, path: Path) -> frozenset[Path]:
        if path not in self._direct:
            tree = ast.parse(path.read_bytes()) if path.suffix == ".py" else ast.Module([], [])
            names = {place for name in self._names(path, tree) for place in self._files(name)}
            self._direct[path] = frozenset(names | set(_files_beside(path, tree)))
        return self._direct[path]

    def _names(self, path: Path, tree: ast.Module) -> Iterator[str]:
        """Dotted names that a file may load: imports, attributes of imported packages, and names in strings."""
        bound: dict[str, str] = {}
        based: set[int] = set()
        nodes = list(_run_nodes(tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name
                    first = alias.name.partition(".")[0]
                    bound[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                home = self._home(path, node)
                yield from (f"{home}.{alias.name}" for alias in node.names)
                bound |= {a.asname or a.name: f"{home}.{a.name}" for a in node.names}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                based.add(id(node.value))
                root, rest = _chain(node)
                if root in bound:
                    yield ".".join((bound[root], *rest))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
                yield f"{node.value}*" if node.value.endswith(".") else node.value
        for node in nodes:
            if isinstance(node, ast.Name) and id(node) not in based and node.id in bound:
                yield f"{bound[node.id]}.*"  # a package handed on whole: anything in it may be used

    def _home(self, path: Path, node: ast.ImportFrom) -> str:
        if not node.level or not path.is_relative_to(self.root):
            return node.module or ""
        parts = (self.root.name, *path.relative_to(self.root).parts)[: -node.level]
        return ".".join((*parts, node.module) if node.module else parts)

    def _files(self, name: str) -> set[Path]:
        """The files that are run when a dotted name is looked up; none where it is not of this package."""
        first, *parts = name.split(".")
        if first != self.root.name:
            return set()
        folder, found = self.root, {self.root / "__init__.py"}
        for place, part in enumerate(parts):
            homes = self._public(folder)
            if part == "*":
                inner = {*homes, *(path.stem for path in folder.glob("*.py"))} - {"__init__"}
                return found.union(*(self._files(".".join((first, *parts[:place], one))) for one in inner))
            if homes.get(part):  # written in the stub: it lies in another module
                return found | self._files(".".join((first, *parts[:place], homes[part], *parts[place:])))
            if (folder / part / "__init__.py").exists():
                folder /= part
                found.add(folder / "__init__.py")
            elif (folder / f"{part}.py").exists():
                return found | {folder / f"{part}.py"}
            else:
                break
        return found

    def _public(self, folder: Path) -> dict[str, str]:
        stub = folder / "__init__.pyi"
        if stub not in self._homes:
            self._homes[stub] = public_names(stub) if stub.exists() else {}
        return self._homes[stub]


@functools.cache
def sources(root: Path) -> Sources:
    """The sources in a folder, as they were when first read in this process."""
    return Sources(root)


def _run_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers read."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _chain(node: ast.Attribute) -> tuple[str, list[str]]:
    """``a.b.c`` as ("a", ["b", "c"]); the name is empty where something else is asked for the attribute."""
    rest, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute):
        rest.append(inner.attr)
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) else "", rest[::-1]


def _files_beside(path: Path, tree: ast.AST) -> Iterator[Path]:
    """Tables and weights that a module reads from its own folder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _FILE.fullmatch(node.value):
            place = path.with_name(node.value)
            if place.is_file():
                yield place
