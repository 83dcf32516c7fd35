"""Budgets that keep files readable in one sitting, and promises about imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import theodolite

ROOT = Path(theodolite.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
CORE = ("reading.py", "subject.py", "law.py", "instrument.py")
FUNCTIONS = [
    pytest.param(node, id=f"{path.relative_to(ROOT)}:{node.name}")
    for path in FILES
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    and not any("triton" in ast.unparse(decorator) for decorator in node.decorator_list)  # pointers, not parameters
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_short(path):
    budget = 120 if path.parent == ROOT and path.name in CORE else 350
    assert len(path.read_text().splitlines()) <= budget


def test_functions_are_short_and_take_few_parameters():
    for parameter in FUNCTIONS:
        (node,) = parameter.values
        arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        own = [name for name in arguments if name not in ("self", "cls")]
        assert node.end_lineno - node.lineno < 60, f"{parameter.id} is longer than 60 lines"
        assert len(own) <= 7, f"{parameter.id} takes {len(own)} parameters"


def imported_after(statement):
    code = f"import sys; {statement}; print(*sorted(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_the_command_line_and_the_package_start_without_anything_heavy():
    heavy = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "pandas", "jinja2", "joblib", "ray", "dask"}
    assert not heavy & imported_after("import theodolite, theodolite.cli, theodolite.catalogue")


OPTIONAL = (
    "pandas",
    "ray",
    "dask",
    "distributed",
    "lightning",
    "transformers",
    "tensorboard",
    "pynndescent",
    "openTSNE",
)


def test_a_survey_needs_no_optional_package():
    blocked = "; ".join(f"sys.modules['{name}'] = None" for name in OPTIONAL)
    work = (
        "import theodolite as th; from theodolite import catalogue; from theodolite.io.builtin_network import builtin; "
        "[catalogue.instrument(name) for name in catalogue.instrument_names()]; th.survey(builtin(), cost='forward').html()"
    )
    subprocess.run([sys.executable, "-c", f"import sys; {blocked}; {work}"], check=True)


def test_every_public_name_is_there():
    for name in theodolite.__all__:
        assert getattr(theodolite, name) is not None
    assert set(theodolite.__all__) <= set(dir(theodolite))


def test_verbs_stay_functions_whatever_is_imported_first():
    code = (
        "import theodolite.verbs.surveying, theodolite.verbs.designing, theodolite as th; "
        "assert callable(th.survey) and callable(th.design)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
