"""Budgets that keep files readable in one sitting, and promises about imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import theodolite
from theodolite.core.lazy_exports import public_names

ROOT = Path(theodolite.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_short(path):
    budget = 150 if path.parent == ROOT / "core" else 350
    assert len(path.read_text().splitlines()) <= budget


def functions():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not any("triton" in ast.unparse(decorator) for decorator in node.decorator_list):  # those take pointers
                yield f"{path.relative_to(ROOT)}:{node.name}", node


def test_functions_are_short_and_take_few_parameters():
    for name, node in functions():
        arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        own = [argument for argument in arguments if argument not in ("self", "cls")]
        assert node.end_lineno - node.lineno < 60, f"{name} is longer than 60 lines"
        assert len(own) <= 7, f"{name} takes {len(own)} parameters"


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
from theodolite.io.builtin_network import builtin
from theodolite.verbs.checking import Atlas, Checked
for name in catalogue.instrument_names():
    catalogue.instrument(name)
x, y = torch.randn(32, 3), torch.randn(32, 1)
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch = th.Watch(model, optimizer=optimizer, probe=(x, y), loss=torch.nn.functional.mse_loss, every=1)
for step in range(3):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    watch(step)
pages = {{
    "survey": th.survey(builtin(), cost="forward").html(),
    "watch": watch.html(),
    "diagnose": th.diagnose(model, data=(x, y), loss=torch.nn.functional.mse_loss, budget=2).html(),
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
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] in ("matplotlib", "PIL", "plotly")], path


def test_every_public_name_is_there():
    for name in theodolite.__all__:
        assert getattr(theodolite, name) is not None
    assert set(theodolite.__all__) <= set(dir(theodolite))


def test_verbs_stay_functions_whatever_is_imported_first():
    code = (
        "import theodolite.verbs.surveying, theodolite.verbs.designing.advice, theodolite.verbs.dimensions.panel; "
        "import theodolite as th; assert all(map(callable, (th.survey, th.design, th.dimension, th.check)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


STUBS = {path.parent: public_names(path) for path in sorted(ROOT.rglob("__init__.pyi"))}
MODULES = {".".join(("theodolite", *path.relative_to(ROOT).with_suffix("").parts)): path for path in FILES}
MODULES |= {name.removesuffix(".__init__"): path for name, path in MODULES.items()}


def test_no_module_has_the_name_of_a_public_function():
    functions = {name for names in STUBS.values() for name, home in names.items() if home}
    rooms = [path.relative_to(ROOT) for path in FILES]
    named_by_catalogue = (
        "laws",
        "instruments",
        "ailments",
    )  # their files are what people type, and no one imports them
    taken = [str(room) for room in rooms if room.stem in functions and room.parts[0] not in named_by_catalogue]
    assert not taken, "th.NAME would turn into the module when it is imported"


@pytest.mark.parametrize("folder", STUBS, ids=lambda folder: str(folder.relative_to(ROOT.parent)))
def test_a_stub_names_what_there_is(folder):
    for name, home in STUBS[folder].items():
        if not home:
            assert (folder / name).is_dir() or (folder / f"{name}.py").is_file(), f"no {name} in {folder.name}"
            continue
        path = (folder / Path(*home.split("."))).with_suffix(".py")
        assert name in _defined(path), f"the stub of {folder.name} names {name}, which {path.name} does not define"


PUBLIC = [
    path
    for path in FILES
    if path.relative_to(ROOT).parts[0] in ("theory", "measure", "construct")
    and not any(part.startswith("_") for part in path.relative_to(ROOT).parts)
]


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_module_defines_in_public_is_in_its_package_s_stub(path):
    here = {name for name, home in STUBS.get(path.parent, {}).items() if home == path.stem}
    tree = ast.parse(path.read_text())
    own = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")}
    assert own <= here, f"begin a private helper with an underscore, or name it in the stub: {sorted(own - here)}"


def _defined(path):
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_few_others(path):
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & MODULES.keys() or {node.module}
    assert len(found) <= 15, sorted(found)


def test_folders_are_small():
    by_file = {*(ROOT / "laws").iterdir(), ROOT / "ailments"}  # a file a theorem, a file a way to fail
    folders = {path.parent for path in FILES} - by_file
    sizes = {str(f.relative_to(ROOT)): len([p for p in f.glob("*.py") if p.name != "__init__.py"]) for f in folders}
    assert not {folder: size for folder, size in sizes.items() if size > 25}
