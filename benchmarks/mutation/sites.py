"""Where theory can be changed by one small error: a constant, a term, a sign, an exponent."""

from __future__ import annotations

import ast
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

INDICES = {
    "range",
    "arange",
    "reshape",
    "expand",
    "repeat",
    "zeros",
    "ones",
    "empty",
    "unsqueeze",
    "squeeze",
    "sum",
    "mean",
}
"""Calls whose arguments count or point: an error there stops the program, and any test would see it."""


@dataclass(frozen=True)
class Mutant:
    """One change of one expression."""

    module: str  # relative to the package, such as theory/bias/margins.py
    function: str
    line: int
    kind: str
    before: str
    after: str
    span: tuple[int, int]  # in bytes of the file
    key: str  # the same as long as the expression and its function are

    def applied(self, source: bytes) -> bytes:
        return source[: self.span[0]] + b"(" + self.after.encode() + b")" + source[self.span[1] :]

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.function}: {self.kind}: {self.before} -> {self.after}"


def sample(root: Path, count: int) -> list[Mutant]:
    """The first ``count`` in an order by digests, module after module in turn: an edit elsewhere changes it little."""
    modules = sorted(root.glob("theory/**/*.py"), key=lambda path: _digest(str(path.relative_to(root))))
    own = [mutants(path, root) for path in modules if "gpu" not in path.name]
    turns = itertools.zip_longest(*(sorted(found, key=lambda mutant: mutant.key) for found in own))
    return [mutant for turn in turns for mutant in turn if mutant is not None][:count]


def mutants(path: Path, root: Path) -> list[Mutant]:
    """Every one of a module's functions."""
    source = path.read_bytes()
    starts = [0, *itertools.accumulate(len(line) for line in source.splitlines(keepends=True))]
    module, found, seen = path.relative_to(root).as_posix(), [], {}
    for function, node, kind, after in _changes(ast.parse(source)):
        span = (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)
        words = (module, function, kind, ast.unparse(node), after)
        seen[words] = seen.get(words, 0) + 1
        key = _digest("\0".join((*words, str(seen[words]))))
        found.append(Mutant(module, function, node.lineno, kind, ast.unparse(node), after, span, key))
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _changes(tree):
    for function, body in _functions(tree, ()):
        for statement in body:
            for node, parent in _expressions(statement, None):
                for kind, after in _of_node(node, parent):
                    yield function, node, kind, after


def _functions(node, above):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            name = ".".join((*above, child.name))
            yield name, child.body
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*above, child.name))


def _expressions(node, parent):
    """Nodes with their parents, less what counts, points, annotates, complains or is a word."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _only_complains(node):
        return
    if isinstance(node, ast.expr):
        yield node, parent
    for name, value in ast.iter_fields(node):
        skipped = name in (
            "annotation",
            "returns",
            "decorator_list",
            "slice",
            "args" if _counts(node) else "",
            "keywords" if _counts(node) else "",
        )
        if not skipped:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _expressions(child, node)


def _counts(node):
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.FunctionDef)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in INDICES


def _only_complains(node):
    return isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)


def _of_node(node, parent):
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            arithmetic = isinstance(parent, ast.BinOp) and not (isinstance(parent.op, ast.Pow) and parent.right is node)
            if arithmetic and 1e-6 < abs(node.value) < 1e6 and not _words(parent):
                yield "constant", repr(node.value * 1.1)
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right) if not _words(node):
            yield "term", ast.unparse(left)
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield "sign", ast.unparse(ast.BinOp(left, other, right))
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            yield "exponent", ast.unparse(ast.BinOp(left, ast.Pow(), ast.BinOp(right, ast.Add(), ast.Constant(1))))
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "sign", ast.unparse(operand)


def _words(node):
    """Sums of texts and lists are no arithmetic."""
    kinds = ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp
    return any(
        isinstance(side, kinds) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
