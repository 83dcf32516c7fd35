"""One vocabulary: every parameter of the public surface stands in the glossary once, and a class name means one thing."""

import ast
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import theodolite

ROOT = Path(theodolite.__file__).parent
GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
PACKAGES = ["theodolite", *(".".join(p.parent.relative_to(ROOT.parent).parts) for p in ROOT.glob("*/**/__init__.pyi"))]
PLAIN = ("theodolite.bayes", "theodolite.nn", "theodolite.optim")  # without a stub
FORBIDDEN = {"rate", "eta", "step_size", "learning_rate", "bias_std", "weight_std", "noise", "std"}
RATES = {"weight_rate", "bias_rate", "rates"}
TORCH = {"closure", "param_group", "state_dict"}  # names that an optimizer's methods have from torch


def public_objects() -> Iterator[tuple[str, object]]:
    for name in (*PACKAGES, *PLAIN):
        module = importlib.import_module(name)
        names = getattr(module, "__all__", None) or [own for own in vars(module) if not own.startswith("_")]
        for own in names:
            found = getattr(module, own)
            if callable(found) and getattr(found, "__module__", "").startswith("theodolite"):
                yield f"{found.__module__}.{own}", found


def callables() -> Iterator[tuple[str, object]]:
    """Public functions, constructors of public classes (not of protocols), and the public methods that they define."""
    for name, found in public_objects():
        if not inspect.isclass(found):
            yield name, found
            continue
        if not getattr(found, "_is_protocol", False):
            yield name, found
        for own, member in vars(found).items():
            function = getattr(member, "__func__", member)
            if own.startswith("_") or not inspect.isfunction(function):
                continue
            if function.__module__.startswith("theodolite"):
                yield f"{name}.{own}", function


def parameters() -> dict[str, set[str]]:
    """Each parameter's name, with the callables that have it."""
    found: dict[str, set[str]] = {}
    for name, function in callables():
        if inspect.isclass(function) and issubclass(function, Exception):
            continue
        for parameter in inspect.signature(function).parameters:
            if parameter not in ("self", "cls") and not parameter.startswith("_"):
                found.setdefault(parameter, set()).add(name)
    return found


def glossary() -> list[str]:
    return re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]* \|$", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def used():
    return {name: users for name, users in parameters().items() if name not in TORCH}


def test_every_parameter_is_in_the_glossary(used):
    missing = {name: sorted(users)[:3] for name, users in used.items() if name not in glossary()}
    assert not missing, f"give each a row in {GLOSSARY.name}, or one of the names that are there"


def test_the_glossary_has_each_name_once_in_order_and_no_other(used):
    rows = glossary()
    assert rows == sorted(set(rows), key=lambda name: (name.lower(), name))
    assert not set(rows) - set(used), "rows that no public signature uses"


def test_no_name_says_a_quantity_in_a_forbidden_word(used):
    assert not FORBIDDEN & set(used)
    assert {name for name in used if "rate" in name.split("_") or "rates" in name.split("_")} <= RATES
    assert not {name for name in used if name.endswith(("_std", "_eta"))}


def test_a_step_is_counted_and_never_a_size(used):
    """The only steps are those that training has taken: their number is whole."""
    for name in used.get("step", ()):
        module, _, owner = name.rpartition(".")
        assert any(word in name for word in ("Watch", "Moment")), f"{owner} of {module}: a size of steps is lr"


def test_a_class_name_means_one_thing():
    """Integrations are left out: each offers a callback of the same name and meaning to another trainer."""
    names = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        if "integrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, count in names.items() if count > 1]


def test_a_public_function_means_one_thing():
    names = Counter(name.rpartition(".")[2] for name in {name for name, found in public_objects() if callable(found)})
    assert not [name for name, count in names.items() if count > 1]
