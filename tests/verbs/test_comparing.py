"""Two runs side by side, from what they left in their folders."""

import json
import math
import subprocess
import sys

import pytest
import torch

from theodolite.cli import main
from theodolite.core.checks import InputError
from theodolite.io.documents import VERSION
from theodolite.verbs.comparing import LOSS, compared_runs


def run_in(folder, losses, *, lr=0.1, findings=(), subject="net"):
    readings = [
        {"quantity": LOSS, "step": step, "measured": None if math.isnan(loss) else loss, "lr": lr}
        for step, loss in losses.items()
    ]
    diagnosis = {"headline": "Told.", "findings": [{"name": name, "says": f"{name} is so."} for name in findings]}
    document = {"schema": "theodolite/watch", "version": VERSION, "subject": subject, "readings": readings}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({**document, "diagnosis": diagnosis}))
    return folder


def test_runs_part_where_a_reading_first_differs_by_a_twentieth(tmp_path):
    one = run_in(tmp_path / "one", {0: 2.0, 5: 1.0, 10: 0.5})
    other = run_in(tmp_path / "other", {0: 2.0, 5: 1.04, 10: 0.9, 15: 0.1})
    found = compared_runs(one, other)
    assert (found.first.step, found.first.quantity, found.first.one, found.first.other) == (10, LOSS, 0.5, 0.9)
    assert found.first.share == pytest.approx(0.4 / 0.9)
    assert any(line.startswith("First difference at step 10") for line in found.lines())
    assert f"A: {one}: net, 10 steps, loss 2 to 0.5. Told." in found.lines()


def test_what_changed_with_it_and_what_only_one_has_is_named(tmp_path):
    one = run_in(tmp_path / "one", {0: 2.0}, lr=0.1, findings=("overfits", "step-too-large"))
    other = run_in(tmp_path / "other", {0: 3.0}, lr=0.3, findings=("overfits",))
    found = compared_runs(one, other / "run.json")
    assert found.first.quantity == LOSS  # of one step the loss is told first, though the step size differs by more
    assert [(d.quantity, d.one, d.other) for d in found.beside] == [("learning rate", 0.1, 0.3)]
    assert found.document()["only"] == [["step-too-large"], []]
    assert "Only A: step-too-large: step-too-large is so." in found.lines()


def test_runs_that_agree_and_values_that_are_none_have_no_difference(tmp_path):
    one = run_in(tmp_path / "one", {0: 2.0, 5: math.nan})
    other = run_in(tmp_path / "other", {0: 2.001, 5: 4.0})
    found = compared_runs(one, other)
    assert found.first is None and found.beside == ()
    assert found.lines()[2].startswith("No difference")


def test_a_script_of_which_only_losses_are_known_is_compared(tmp_path):
    for name, loss in (("one", 1.0), ("other", 2.0)):
        (tmp_path / name).mkdir()
        rows = [{"step": 0, "loss": 3.0}, {"step": 4, "loss": loss}, {"step": 5, "loss": None}]
        (tmp_path / name / "run.json").write_text(json.dumps({"losses": rows}))
    found = compared_runs(tmp_path / "one", tmp_path / "other")
    assert (found.first.step, found.first.one, found.first.other) == (4, 1.0, 2.0)


def test_two_checkpoints_show_what_changed(tmp_path, capsys):
    one, other = tmp_path / "one.pt", tmp_path / "other.pt"
    weight = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    torch.save({"weight": weight}, one)
    torch.save({"weight": 2 * weight}, other)
    assert main(["compare", str(one), str(other), "--json"]) == 0
    rows = {row["quantity"]: row["measured"] for row in json.loads(capsys.readouterr().out)["readings"]}
    assert rows["size of the change, relative to the start"] == pytest.approx(1)
    run = run_in(tmp_path / "run", {0: 2.0})
    assert main(["compare", str(run), str(one)]) == 2
    assert f"expected a run that left run.json, got {one}" in capsys.readouterr().err


def test_a_folder_without_a_run_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"^expected a run that left run.json"):
        compared_runs(tmp_path, tmp_path)


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


BY_HAND = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
x = torch.randn(64, 3)
for step in range(40):
    model.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), x[:, :1])
    loss.backward()
    STEP
print(loss.item())
"""


def test_two_runs_are_laid_side_by_side(tmp_path, warm):
    for name, lr in (("small", "0.1"), ("large", "0.2")):
        (tmp_path / "hand.py").write_text(
            BY_HAND.replace("STEP", "for p in model.parameters(): p.data.add_(p.grad, alpha=-0.1)").replace(
                "-0.1", f"-{lr}"
            )
        )
        warm.ran(["-m", "theodolite", "run", "--every", "5", "--no-diagnosis", "--out", name, "hand.py"], tmp_path)
    told = warm.ran(["-m", "theodolite", "compare", "small", "large"], tmp_path)
    assert (
        told.returncode == 0
        and "First difference at step " in told.stdout
        and "learning rate 0.1 and 0.2" in told.stdout
    )
    same = warm.ran(["-m", "theodolite", "compare", "small", "small"], tmp_path)
    assert "No difference" in same.stdout
    assert warm.ran(["-m", "theodolite", "compare", "small", "none"], tmp_path).returncode == 2
