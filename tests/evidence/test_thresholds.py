"""Numbers that decisions hang on have a name, a reason beside it and one place."""

import ast
from pathlib import Path

import theodolite
from theodolite.evidence import thresholds

ROOT = Path(theodolite.__file__).parent
FILES = [*(ROOT / "ailments").glob("*.py"), *(ROOT / "evidence").glob("*.py")]
MOST = 82
"""Names of numbers in both rooms; a new one takes the place of an old one."""


def _named(file):
    """The lines where a module names numbers, the names, and whether a reason follows."""
    body = ast.parse(file.read_text()).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign):
            continue
        names = [n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)]
        numbers = [n for n in ast.walk(node.value) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
        if numbers and all(name.isupper() for name in names) and not isinstance(node.value, ast.Call):
            reasoned = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            yield names, reasoned


def test_every_number_has_its_reason():
    bare = [(file.name, names) for file in FILES for names, reasoned in _named(file) if not reasoned]
    assert not bare


def test_numbers_are_few():
    assert sum(len(names) for file in FILES for names, _ in _named(file)) <= MOST


def test_a_number_that_is_shared_is_named_once():
    shared = {name for name in vars(thresholds) if name.isupper()}
    again = [(f.name, set(n) & shared) for f in FILES if f.name != "thresholds.py" for n, _ in _named(f)]
    assert not [one for one in again if one[1]]
