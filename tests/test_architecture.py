"""What holds of the whole tree: imports, public names, a few limits, and that the tree of tests is the tree of code."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import theodolite
from theodolite.core.lazy_exports import public_names

ROOT = Path(theodolite.__file__).parent
TESTS = Path(__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def imported_after(statement):
    code = f"import sys; {statement}; print(*sorted(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_the_command_line_and_the_package_start_without_anything_heavy():
    heavy = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "pandas", "jinja2", "joblib", "ray", "dask"}
    assert not heavy & imported_after("import theodolite, theodolite.cli, theodolite.catalogue")


def test_a_law_is_explained_without_torch():
    assert "torch" not in imported_after("from theodolite.cli import main; main(['explain', 'marchenko-pastur'])")


def test_a_network_is_diagnosed_without_the_compiler_of_torch():
    said = "import theodolite as th; from theodolite.io.builtin_network import builtin; th.diagnose(builtin())"
    assert "torch._dynamo" not in imported_after(said)


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
    "h5py",
    "msgpack",
    "matplotlib",
    "PIL",
)


BARE = """
import sys
for name in {optional}:
    sys.modules[name] = None
import torch
import theodolite as th
from theodolite import catalogue
from theodolite.verbs.checking import Atlas, Checked
for name in catalogue.instrument_names():
    catalogue.instrument(name)
x, y = torch.randn(32, 3), torch.randn(32, 1)
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch = th.Watch(model, optimizer=optimizer, probe=(x, y), loss=torch.nn.functional.mse_loss, every=1, budget=float("inf"))
for step in range(3):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    watch(step)
pages = {{
    "survey": th.survey(model, data=(x, y), loss=torch.nn.functional.mse_loss, instruments=("signal", "bridge")).html(),
    "watch": watch.html(),
    "diagnose": th.diagnose(model, data=(x, y), loss=torch.nn.functional.mse_loss, budget=0.5).html(),
    "design": th.design(activation="relu", depth=3, width=16).html(),
    "check": Atlas((Checked(th.check("marchenko-pastur")),)).files()["laws/marchenko-pastur.html"],
}}
print(*(name for name, page in pages.items() if page.startswith("<!doctype html>")))
print(*(name for name, page in pages.items() if "<svg class=\\"th-figure" in page))
"""


def test_a_bare_installation_surveys_watches_diagnoses_designs_and_checks_with_their_pages():
    done = subprocess.run([sys.executable, "-c", BARE.format(optional=OPTIONAL)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made, drawn = done.stdout.splitlines()
    assert made == "survey watch diagnose design check"
    assert {"survey", "watch", "check"} <= set(drawn.split())


def test_nothing_here_draws_with_another_engine():
    engine = re.compile(r"^\s*(import|from)\s+(matplotlib|PIL|plotly)\b", re.MULTILINE)
    assert engine.search("def f():\n    from matplotlib import pyplot")
    assert not [path for path in FILES if engine.search(path.read_text(encoding="utf-8"))]


def test_every_public_name_is_there():
    for name in theodolite.__all__:
        assert getattr(theodolite, name) is not None
    assert set(theodolite.__all__) <= set(dir(theodolite))


def test_no_module_has_the_name_of_a_public_function():
    """Else ``th.NAME`` would turn into the module once that is imported."""
    functions = {name for stub in ROOT.rglob("__init__.pyi") for name, home in public_names(stub).items() if home}
    found_by_file_name = ("laws", "instruments", "ailments")  # what people type; no one imports them by it
    rooms = [path.relative_to(ROOT) for path in FILES]
    assert not [room for room in rooms if room.stem in functions and room.parts[0] not in found_by_file_name]


def test_no_file_is_unpickled():
    """SECURITY.md says so."""
    words = ("torch.load(", "pickle.load", "Unpickler(", "allow_pickle=True", "joblib.load(")
    assert not [path for path in FILES if any(word in path.read_text(encoding="utf-8") for word in words)]


LONG = {  # modules and functions that may be longer, and why
    "verbs/running/observing.py": "one listener: its hooks on a script share what they have seen"
}


def test_no_god_file_and_no_god_function():
    """Guards, not style: one long file reads better than two halves that need each other."""
    over = []
    for path in FILES:
        name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        if len(text.splitlines()) > 600:
            over.append(name)
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        over += [f"{name}:{node.name}" for node in nodes if node.end_lineno - node.lineno >= 100]
    assert not set(over) - set(LONG), "split by meaning, or say in LONG why it stays whole"


MIRRORED = (
    "ailments",
    "bayes",
    "core",
    "evidence",
    "instruments",
    "integrations",
    "io",
    "report",
    "verbs",
)  # rooms whose every module has a test of its own name
WITHOUT = {"__main__": "one call of cli.main, which tests/test_cli.py runs as a process"}


def test_the_tree_of_tests_is_the_tree_of_code():
    """``tests/<room>/test_<module>.py`` tests ``<room>/<module>.py``; a leading underscore is left out of the name."""
    modules = {path.relative_to(ROOT).with_suffix("") for path in FILES if path.name != "__init__.py"}
    modules = {path for path in modules if len(path.parts) == 1 or path.parts[0] in MIRRORED}
    tested = {path.relative_to(TESTS).with_suffix("") for path in TESTS.rglob("test_*.py")}
    missing = {str(path) for path in modules if path.with_name(f"test_{path.name.lstrip('_')}") not in tested}
    assert not missing - set(WITHOUT)
