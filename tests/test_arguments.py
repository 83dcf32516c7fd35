"""Every command can be typed, and says what it is for."""

import re
from pathlib import Path

import pytest

from theodolite.arguments import completion, configure, parser
from theodolite.cli import _RUNS, main

COMMANDS = [
    "survey",
    "diagnose",
    "run",
    "design",
    "dimension",
    "memorize",
    "check",
    "doctor",
    "list",
    "explain",
    "completion",
]


def made():
    return parser({name: lambda given: 0 for name in COMMANDS})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_helps_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        made().parse_args([command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"theodolite {command}" in said and "None" not in said


def test_options_become_what_they_say():
    given = made().parse_args(
        ["survey", "m.pt", "--lr", "0.1", "--instrument", "a", "--instrument", "b", "--jobs", "2"]
    )
    assert (given.target, given.lr, given.instrument, given.jobs, given.budget) == ("m.pt", 0.1, ["a", "b"], 2, "60s")
    assert given.run(given) == 0
    given = made().parse_args(["run", "--every", "5", "train.py", "--lr", "3"])
    assert given.script == "train.py" and given.arguments == ["--lr", "3"]


def test_a_wrong_option_is_one_line_and_exit_status_2(capsys):
    with pytest.raises(SystemExit) as ended:
        made().parse_args(["check", "--size", "huge"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "huge" in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_laws(shell):
    script = completion(shell, made())
    assert "diagnose" in script and "marchenko-pastur" in script


CONFIG = """
[tool.theodolite]
budget = "7s"
out = "findings"
seed = 3
[tool.theodolite.diagnose]
fail-on = "warning"
budget = "9s"
"""


def configured(folder, text, words):
    (folder / "pyproject.toml").write_text(text)
    (folder / "deep").mkdir(exist_ok=True)
    whole = parser(_RUNS)
    configure(whole, folder / "deep")
    return whole.parse_args(words)


def test_a_file_gives_defaults_and_the_command_line_overrides_them(tmp_path):
    found = configured(tmp_path, CONFIG, ["diagnose"])
    assert (found.budget, found.fail_on, found.out) == ("9s", "warning", Path("findings"))
    assert configured(tmp_path, CONFIG, ["survey"]).budget == "7s"
    assert configured(tmp_path, CONFIG, ["survey", "--budget", "1s"]).budget == "1s"
    assert configured(tmp_path, CONFIG, ["check"]).seed == 3
    assert configured(tmp_path, "[project]\nname = 'other'\n", ["survey"]).budget == "60s"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.theodolite]\nbudgt = '7s'\n", "expected an option in .* got 'budgt'"),
        (
            "[tool.theodolite.diagnos]\nbudget = '7s'\n",
            "expected a command in .* got 'diagnos'; one of survey, diagnose",
        ),
        ("[tool.theodolite.diagnose]\nfail-on = 'never'\n", "expected one of critical, warning for fail-on"),
        ("[tool.theodolite]\nbudget = [1]\n", "expected a value as on the command line for budget"),
        ("[tool.theodolite\n", "expected a table"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line_and_status_2(text, words, tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 2
    said = capsys.readouterr().err
    assert re.search(words, said) and said.count("\n") == 1
