"""Every command can be typed, and says what it is for."""

import pytest

from theodolite.arguments import completion, parser

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
