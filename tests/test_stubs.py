"""Every package's stub names what its modules define; in theory, measure and construct all of it that is public."""

import ast
from pathlib import Path

import pytest

import theodolite
from theodolite.core.lazy_exports import public_names

ROOT = Path(theodolite.__file__).parent
STUBS = sorted(ROOT.rglob("__init__.pyi"))
WHOLE = ("theory", "measure", "construct")


def defined(module):
    functions, others = set(), set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            functions.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            others |= {target.id for target in targets if isinstance(target, ast.Name)}
    return functions, others


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: str(path.parent.relative_to(ROOT.parent)))
def test_a_stub_agrees_with_the_code(stub):
    names, folder = public_names(stub), stub.parent
    assert not [name for name in names if name.startswith("_")]
    for name in (name for name, home in names.items() if not home):
        assert (folder / name).is_dir() or (folder / f"{name}.py").is_file(), f"no {name} in {folder.name}"
    for home in {home for home in names.values() if home}:
        module = (folder / Path(*home.split("."))).with_suffix(".py")
        listed = {name for name, place in names.items() if place == home}
        assert listed <= set.union(*defined(module)), f"{module.name} does not define all of {sorted(listed)}"
    if folder.relative_to(ROOT).parts[:1] and folder.relative_to(ROOT).parts[0] in WHOLE:
        modules = [path for path in folder.glob("*.py") if not path.name.startswith("_")]
        public = {name for module in modules for name in defined(module)[0] if not name.startswith("_")}
        assert public <= set(names), "begin a private helper with an underscore, or name it in the stub"
