"""Five scripts as people write them, run as they are and under `theodolite run`: the same output, status and randomness."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


@pytest.mark.parametrize(
    ("script", "arguments", "steps", "named"),
    [
        ("plain_loop", ["1"], 48, "Sequential with SGD, loss cross_entropy"),
        ("amp_accumulation", [], 16, "Sequential with AdamW, loss cross_entropy"),
        ("digits_convnet", ["--epochs", "2", "--save"], 20, "Net with Adadelta, loss nll_loss"),
        ("lightning_fit", [], 24, "Regression with Adam, loss mse_loss"),
        ("transformers_trainer", [], 20, "GPT2LMHeadModel with AdamW, whose loss the model computes itself"),
    ],
)
def test_a_script_runs_as_it_does_alone_and_is_watched(tmp_path, warm, script, arguments, steps, named):
    path = str(EXAMPLES / f"{script}.py")
    alone = warm.ran([path, *arguments], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", "--every", "6", "--out", "seen", path, *arguments], tmp_path)
    assert alone.stdout and watched.stdout == alone.stdout, watched.stderr
    assert watched.returncode == alone.returncode
    assert f"theodolite: watching {named}" in watched.stderr
    told = json.loads((tmp_path / "seen" / "run.json").read_text())
    seen = sorted({row["step"] for row in told["readings"]})
    assert seen[-1] == steps and len(seen) >= 2
    quantities = {row["quantity"] for row in told["readings"]}
    assert "norm of the gradient on the probe" in quantities
    assert any("Hessian eigenvalue" in quantity for quantity in quantities)
    page = (tmp_path / "seen" / "run.html").read_text()
    assert "Training of " in page and 'http-equiv="refresh"' not in page


TOLD = """
import sys, warnings
import torch
from torch.nn.functional import mse_loss
print(__file__, sys.argv, __name__, __spec__, sys.modules["__main__"].__file__)
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 3)
for step in range(20):
    optimizer.zero_grad()
    loss = mse_loss(model(x), x[:, :1]) + 1e-3 * model.weight.square().sum()
    (loss / 2).backward()
    optimizer.step()
print(model.weight.tolist())
torch.zeros(2, requires_grad=True).backward() if sys.argv[1] == "-x" else sys.exit("over")
"""


def test_a_script_is_told_what_python_tells_it_and_ends_as_it_does(tmp_path, warm):
    (tmp_path / "told.py").write_text(TOLD)
    alone, watched = (
        ran([*how, "told.py", "-x", "--", "--out", "y"], tmp_path) for how in ([], ["-m", "theodolite", "run"])
    )
    assert watched.stdout == alone.stdout and "'told.py', '-x', '--', '--out', 'y'" in alone.stdout
    assert (watched.returncode, alone.returncode) == (1, 1)
    assert "loss mse_loss (a part of what it minimizes)" in watched.stderr
    trace = alone.stderr[alone.stderr.index("Traceback") :]
    assert trace in watched.stderr and "grad can be implicitly created only for scalar outputs" in trace
    ended = warm.ran(["-m", "theodolite", "run", "told.py", "no"], tmp_path)
    assert ended.returncode == 1 and "\nover\n" in ended.stderr


def test_an_interrupted_script_is_told_and_has_the_status_of_a_shell(tmp_path, warm):
    (tmp_path / "stopped.py").write_text("print('so far')\nraise KeyboardInterrupt\n")
    watched = warm.ran(["-m", "theodolite", "run", "stopped.py"], tmp_path)
    assert (watched.returncode, watched.stdout) == (130, "so far\n")
    assert 'stopped.py", line 2, in <module>' in watched.stderr and "KeyboardInterrupt" in watched.stderr


def test_a_module_is_run_as_python_does(tmp_path, warm):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys\nfrom package import other\nprint(sys.argv[1:], __name__)\n"
    )
    (tmp_path / "package" / "other.py").write_text("")
    alone = ran(["-m", "package", "-x"], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", "-m", "package", "-x"], tmp_path)
    assert watched.stdout == alone.stdout == "['-x'] __main__\n", watched.stderr


def test_what_a_script_made_lives_until_its_process_ends(tmp_path, warm):
    (tmp_path / "kept.py").write_text("class Kept:\n    def __del__(self):\n        print('gone')\n")
    (tmp_path / "left.py").write_text(
        "import atexit\nfrom kept import Kept\nkept = Kept()\natexit.register(print, 'end')\n"
    )
    alone = ran(["left.py"], tmp_path)
    assert alone.stdout == "end\ngone\n"
    for command in (["left.py"], ["-m", "left"]):
        watched = ran(["-m", "theodolite", "run", *command], tmp_path)
        assert watched.stdout == alone.stdout, watched.stderr


def test_what_goes_wrong_in_a_script_is_the_scripts_own(tmp_path, warm):
    (tmp_path / "broken.py").write_text("print('so far')\nraise KeyError('its own')\n")
    watched = warm.ran(["-m", "theodolite", "run", "broken.py"], tmp_path)
    assert watched.returncode == 1 and watched.stdout == "so far\n"
    assert "KeyError: 'its own'" in watched.stderr and "scripts.py" not in watched.stderr
    assert "nothing was watched" in watched.stderr
    missing = warm.ran(["-m", "theodolite", "run", "absent.py"], tmp_path)
    assert missing.returncode == 2 and "expected a script" in missing.stderr
