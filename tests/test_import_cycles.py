"""No circle of imports between modules, those inside functions included."""

import ast
import graphlib
from pathlib import Path

import theodolite

ROOT = Path(theodolite.__file__).parent


def _name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def _imported(node):
    """Modules that a statement imports; what only type checkers read imports nothing."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("theodolite"):
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in MODULES else node.module
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
    for child in ast.iter_child_nodes(node):
        yield from _imported(child)


def test_no_import_closes_a_circle():
    graph = {}
    for name, path in MODULES.items():
        graph[name] = set(_imported(ast.parse(path.read_text(encoding="utf-8")))) - {
            "theodolite"
        }  # lazy: it loads nothing
    assert sum(map(len, graph.values())) > 1000
    graphlib.TopologicalSorter(graph).prepare()
