"""What a file reaches: against small packages with a known answer, and against what Python itself loads."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks is no installed package

from benchmarks.mutation.reached_files import Sources

import theodolite
from theodolite import catalogue
from theodolite.core.source_digest import ROOMS

ROOT = Path(theodolite.__file__).parent
PACKAGE = {
    "__init__.py": "",
    "__init__.pyi": "from . import lazy as lazy\nfrom .lazy.one import first as first\n",
    "lazy/__init__.py": "",
    "lazy/__init__.pyi": "from .one import first as first\nfrom .two import (\n    second as second,\n    third as third,\n)\n",
    "lazy/one.py": "from pkg import deep\nvalue = deep\n",
    "lazy/two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.typed import T\nTABLE = 'two.json'\n",
    "lazy/two.json": "1",
    "deep.py": "",
    "typed.py": "",
    "plugins/__init__.py": "",
    "plugins/a.py": "",
    "plugins/b.py": "from pkg import deep as below\n",
}


def reached(folder, text):
    for name, content in PACKAGE.items():
        (folder / "pkg" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pkg" / name).write_text(content)
    (folder / "user.py").write_text(text)
    found = Sources(folder / "pkg").reached(folder / "user.py")
    return {str(path.relative_to(folder / "pkg")) for path in found if path.name not in ("__init__.py", "user.py")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import math", set()),
        ("from pkg.lazy import first", {"lazy/one.py", "deep.py"}),
        ("from pkg.lazy import second as s", {"lazy/two.py", "lazy/two.json"}),
        ("from pkg import first", {"lazy/one.py", "deep.py"}),
        ("import pkg as p\np.lazy.third()", {"lazy/two.py", "lazy/two.json"}),
        ("import pkg.deep", {"deep.py"}),
        ("def f():\n    from pkg import lazy\n    return lazy.third", {"lazy/two.py", "lazy/two.json"}),
        ("from pkg import lazy\nprint(lazy)", {"lazy/one.py", "lazy/two.py", "lazy/two.json", "deep.py"}),
        ("import importlib\nimportlib.import_module(f'pkg.plugins.{1}')", {"plugins/a.py", "plugins/b.py", "deep.py"}),
        ("import importlib\nimportlib.import_module('pkg.plugins.a')", {"plugins/a.py"}),
    ],
)
def test_a_file_reaches_what_it_uses_and_no_more(tmp_path, text, expected):
    assert reached(tmp_path, text) == expected


LOADING = """
import json, os, sys, torch
import theodolite.catalogue as c
before = set(sys.modules)
for name in sys.argv[1:]:
    if not os.fork():
        law = c.law(name)
        law.exponent or law.predict(**law.cases[0])
        files = [m.__file__ for n, m in sys.modules.items() if n.startswith("theodolite") and n not in before]
        print(json.dumps([name, files]), flush=True)
        os._exit(0)
    os.wait()
"""


def test_every_module_that_python_loads_for_a_law_is_reached():
    """Each law is loaded and run by itself, in a fork; all that then lies in sys.modules must have been foreseen."""
    names = catalogue.law_names()[::60]
    done = subprocess.run([sys.executable, "-c", LOADING, *names], check=True, capture_output=True, text=True)
    seen = dict(map(json.loads, done.stdout.splitlines()))
    assert list(seen) == list(names)
    for name, files in seen.items():
        loaded = {Path(file) for file in files if file}
        assert len(loaded) > 5
        own = catalogue.entry(name).path
        assert not loaded - Sources(ROOT).reached(own), name
        below = {path for path in loaded if path.relative_to(ROOT).parts[0] in ROOMS}
        assert loaded - below <= {own, own.with_name("__init__.py"), ROOT / "laws" / "__init__.py"}, name
