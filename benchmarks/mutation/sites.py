"""Where theory can be changed by one small error: a constant, a term, a sign, an exponent.

Only formulas are changed. Left out, since nothing ought to notice or anything would: what checks inputs and words complaints
(``if`` with a ``raise``, ``assert``, texts); what guards against rounding (sums and products with a constant below a millionth
or a name of `SAFETY`, and comparisons that hold one); when an iteration ends (tests of ``while`` and of ``if ...: break``) and
where a search begins (arguments of `SEARCHES` behind the first, and `BRACKETS` in a function that searches), or the ``step`` by
which a search or a quadrature goes on, for its answer depends on neither; and what counts or points (subscripts, whole
divisions, arguments of `INDICES`, sums with a count).
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

from .footprints import statement_lines, statement_spans

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
SEARCHES = {"brentq", "linprog", "nnls", "eigsh", "geomspace", "linspace"}
"""Roots and optima do not depend on where the search for them begins or how it is gridded."""
SAFETY = {"eps", "tiny", "jitter", "rounding", "tolerance", "LEAST", "TINY"}
COUNTS = {"len", "bit_length", "ndim", "start", "stop"}  # functions, methods and attributes
BRACKETS = {"low", "high"}
SMALL = 1e-6


@dataclass(frozen=True)
class Mutant:
    """One change of one expression."""

    module: str  # relative to the package, such as theory/bias/margins.py
    function: str
    lines: tuple[int, int]  # of the statement
    kind: str
    before: str
    after: str
    span: tuple[int, int]  # in bytes of the file
    key: str  # the same as long as the expression and its function are

    def applied(self, source: bytes) -> bytes:
        return source[: self.span[0]] + b"(" + self.after.encode() + b")" + source[self.span[1] :]

    def __str__(self) -> str:
        return f"{self.module}:{self.lines[0]} {self.function}: {self.kind}: {self.before} -> {self.after}"


def sample(root: Path, count: int, seed: int = 0) -> list[Mutant]:
    """The first ``count`` in an order by digests, module after module in turn: an edit elsewhere changes it little.

    Another ``seed`` is another order.
    """
    salt = f"{seed} " if seed else ""
    modules = sorted(root.glob("theory/**/*.py"), key=lambda path: _digest(salt + str(path.relative_to(root))))
    own = [mutants(path, root) for path in modules if "_gpu" not in str(path.relative_to(root))]  # needs a device
    turns = itertools.zip_longest(
        *(sorted(found, key=lambda mutant: _digest(salt + mutant.key) if salt else mutant.key) for found in own)
    )
    return [mutant for turn in turns for mutant in turn if mutant is not None][:count]


def mutants(path: Path, root: Path) -> list[Mutant]:
    """Every one of a module's functions."""
    source = path.read_bytes()
    starts = [0, *itertools.accumulate(len(line) for line in source.splitlines(keepends=True))]
    module, found, seen, tree = path.relative_to(root).as_posix(), [], {}, ast.parse(source)
    spans = statement_spans(tree)
    for function, node, kind, after in _changes(tree):
        span = (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)
        words = (module, function, kind, ast.unparse(node), after)
        seen[words] = seen.get(words, 0) + 1
        key = _digest("\0".join((*words, str(seen[words]))))
        lines = statement_lines(spans, node)
        found.append(Mutant(module, function, lines, kind, ast.unparse(node), after, span, key))
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _changes(tree):
    for function, body in _functions(tree, ()):
        searches = any(_called(node) in SEARCHES for statement in body for node in ast.walk(statement))
        for statement in body:
            if searches and _assigned(statement) and _assigned(statement) <= BRACKETS:
                continue
            for node, parent in _expressions(statement, None):
                for kind, after in _of_node(node, parent):
                    yield function, node, kind, after


def _assigned(statement):
    """The names that a statement gives a value to."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {_name(inner) for target in targets for inner in getattr(target, "elts", [target])}


def _functions(node, above):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            name = ".".join((*above, child.name))
            yield name, child.body
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*above, child.name))


def _expressions(node, parent):
    """Nodes with their parents, less what counts, points, annotates, complains, guards, ends a loop or is a word."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _only_complains(node) or _guards(node):
        return
    if _assigned(node) == {"step"}:
        return
    if _whole_division(node) or (isinstance(node, ast.UnaryOp) and _whole_division(node.operand)):  # downwards, upwards
        return
    if isinstance(node, ast.expr):
        yield node, parent
    skipped = {"annotation", "returns", "decorator_list", "slice", *_unchanged(node)}
    for name, value in ast.iter_fields(node):
        if name not in skipped:
            children = value if isinstance(value, list) else [value]
            if name == "args" and _called(node) in SEARCHES:
                children = children[:1]
            for child in children:
                if isinstance(child, ast.AST):
                    yield from _expressions(child, node)


def _whole_division(node):
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)


def _unchanged(node):
    """The fields of a node that no error is put into."""
    if isinstance(node, ast.While) or (isinstance(node, ast.If) and isinstance(node.body[0], ast.Break)):
        return {"test"}
    if isinstance(node, ast.FunctionDef) or _called(node) in INDICES:
        return {"args", "keywords"}
    return {"keywords"} if _called(node) in SEARCHES else set()


def _called(node):
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _only_complains(node):
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)


def _guards(node):
    """A comparison with, or a sum or product of, something that only rounding needs."""
    if isinstance(node, ast.Compare):
        return any(_safe(inner) for inner in ast.walk(node))
    return isinstance(node, ast.BinOp) and (_safe(node.left) or _safe(node.right))


def _safe(node):
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < abs(node.value) < SMALL
    return _name(node) in SAFETY


def _name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _of_node(node, parent):
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            arithmetic = isinstance(parent, ast.BinOp) and not (isinstance(parent.op, ast.Pow) and parent.right is node)
            if arithmetic and SMALL < abs(node.value) < 1 / SMALL and not (_words(parent) or _counted(parent)):
                yield "constant", repr(node.value * 1.1)
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right) if not (_words(node) or _counted(node)):
            yield "term", ast.unparse(left)
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield "sign", ast.unparse(ast.BinOp(left, other, right))
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            yield "exponent", ast.unparse(ast.BinOp(left, ast.Pow(), ast.BinOp(right, ast.Add(), ast.Constant(1))))
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "sign", ast.unparse(operand)


def _words(node):
    """Sums of texts and lists are no arithmetic."""
    return any(_worded(side) for side in (node.left, node.right))


def _worded(node):
    if isinstance(node, ast.IfExp):
        return _worded(node.body)
    if isinstance(node, ast.BinOp):
        return _words(node)
    kinds = ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp
    return isinstance(node, kinds) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _counted(node):
    """A sum with a length or a place: whole numbers that say how many or where."""
    if not isinstance(node.op, ast.Add | ast.Sub):
        return False
    return any(
        {_called(side), _name(side) if isinstance(side, ast.Attribute) else ""} & COUNTS
        for side in (node.left, node.right)
    )
