"""What a shell completes."""

import subprocess

import pytest

from theodolite.cli import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_options_and_names(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("diagnose", "marchenko-pastur", "units-dead", "propagation"):
        assert word in script
    assert ("-l budget" if shell == "fish" else "--budget") in script


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("explain ntk-m", ["ntk-matrix-chernoff", "ntk-mean"]),
        ("survey --instrument wei", ["weight-spectrum"]),
        ("diagnose --fail-on c", ["critical"]),
        ("diag", ["diagnose"]),
    ],
)
def test_completion_completes_in_bash(tmp_path, capsys, typed, offered):
    main(["completion", "bash"])
    (tmp_path / "words.sh").write_text(capsys.readouterr().out)
    words = f"COMP_WORDS=(theodolite {typed}); COMP_CWORD={len(typed.split())}"
    asked = f'source words.sh; {words}; _theodolite_words; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered
