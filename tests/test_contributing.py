"""CONTRIBUTING, done literally: each file is written where the text says, and each command is run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import theodolite

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"Write this as\s+`(src/[\w/]+\.py)`:\n\n```python\n(.*?)```", TEXT, flags=re.DOTALL))
COMMANDS = [
    (command, shown.strip().splitlines())
    for block in re.findall(r"```console\n(.*?)```", TEXT, flags=re.DOTALL)
    for command, shown in re.findall(r"^\$ theodolite (.*)\n((?:[^$].*\n)*)", block, flags=re.MULTILINE)
]
SESSIONS = re.findall(r"```pycon\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package with the newcomer's files in it."""
    root = tmp_path_factory.mktemp("newcomer")
    shutil.copytree(Path(theodolite.__file__).parent, root / "src" / "theodolite")
    for path, code in FILES.items():
        assert not (root / path).exists(), f"{path} is there already: choose another example"
        (root / path).write_text(code, encoding="utf-8")
    return root


def ran(root, *arguments):
    path = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "140", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_shows_every_kind_of_file_that_is_found_by_its_name():
    rooms = [path.split("/")[2] for path in FILES]
    assert rooms == ["laws", "instruments", "ailments", "io", "theory"]
    assert len(SESSIONS) == 3
    assert len(FILES) == TEXT.count("```python")
    assert [command.split()[0] for command, _ in COMMANDS] == ["check", "explain", "survey"]


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command.split()[0] for command, _ in COMMANDS])
def test_commands_print_what_the_page_shows(copy, command, shown):
    printed = " ".join(ran(copy, "-m", "theodolite", *command.split()).split())
    assert shown
    for line in shown:
        assert " ".join(line.split()) in printed


def test_sessions_answer_what_the_page_shows(copy):
    names = [f"session{place}.txt" for place in range(len(SESSIONS))]
    for name, session in zip(names, SESSIONS, strict=True):
        (copy / name).write_text(session, encoding="utf-8")
    ran(copy, "-m", "doctest", "-o", "ELLIPSIS", *names)


def test_the_batteries_find_the_files(copy):
    tests = Path(__file__).parent
    for name in ("test_catalogue.py", "theory/test_activations.py"):
        (copy / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tests / name, copy / "tests" / name)
    words = "relu-halves or centered-weights or gaussian_bump"
    said = ran(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-k", words, "tests")
    # the law: holds, breaks, is documented; the instrument: reads, is documented; the activation: moments, covariances
    passed = re.search(r"\b(\d+) passed", said)
    assert passed is not None and int(passed[1]) >= 7 and "failed" not in said, said
