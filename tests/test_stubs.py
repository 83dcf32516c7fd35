"""Every package's stub names exactly the public functions and classes of its modules."""

import ast
from pathlib import Path

import pytest

import theodolite
from theodolite.core.lazy_exports import public_names

ROOT = Path(theodolite.__file__).parent
STUBS = sorted(path for room in ("theory", "measure", "construct") for path in (ROOT / room).glob("*/__init__.pyi"))


def defined(module):
    body = ast.parse(module.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_a_stub_is_exact(stub):
    names = public_names(stub)
    for module in sorted(stub.parent.glob("*.py")):
        listed = {name for name, home in names.items() if home == module.stem}
        assert listed <= defined(module), f"{module.name} does not define {sorted(listed - defined(module))}"
        if not module.name.startswith("_"):
            public = {name for name in defined(module) if not name.startswith("_")}
            assert listed == public, f"the stub leaves out {sorted(public - listed)} of {module.name}"
    assert not [name for name in names if name.startswith("_")]
    assert not {module.stem for module in stub.parent.glob("*.py")} & set(names)
