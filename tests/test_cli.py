"""What a person types, what they see, and what comes back to the shell."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from theodolite import catalogue
from theodolite.cli import main


def run(capsys, *arguments):
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def document(capsys, *arguments):
    status, out, err = run(capsys, *arguments, "--json")
    assert status == 0, err
    return json.loads(out)


def test_survey_without_a_target(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, "survey", "--cost", "forward")  # tests/verbs/test_surveying.py reads all
    assert status == 0
    assert "survey/report.html" in out
    assert all(name in out for name in catalogue.instrument_names())
    page = (tmp_path / "survey" / "report.html").read_text()
    assert "<svg" in page
    assert json.loads((tmp_path / "survey" / "readings.json").read_text())["readings"]


def test_survey_json_is_one_document_and_writes_nothing_unasked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert document(capsys, "survey", "--cost", "free")["subject"] == "built-in digits network"
    assert list(tmp_path.iterdir()) == []


def test_survey_of_a_checkpoint_and_of_a_function(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    save_file({n: p.detach() for n, p in model.named_parameters()}, "m.safetensors")
    names = [row["where"] for row in document(capsys, "survey", "m.safetensors", "--activation", "relu")["readings"]]
    assert any("2.weight" in name for name in names)
    Path("shop_for_test.py").write_text("from torch import nn\ndef model():\n    return nn.Linear(64, 10)\n")
    found = document(capsys, "survey", "shop_for_test:model", "--data", "digits", "--instrument", "signal")
    assert {row["instrument"] for row in found["readings"]} == {"signal"}


def test_two_checkpoints_are_compared(capsys, tmp_path):
    base = {"a.weight": torch.randn(40, 30, generator=torch.Generator().manual_seed(0))}
    save_file(base, tmp_path / "base.safetensors")
    save_file(
        {"a.weight": base["a.weight"] + torch.outer(torch.ones(40), torch.ones(30))}, tmp_path / "tuned.safetensors"
    )
    found = document(
        capsys, "survey", str(tmp_path / "tuned.safetensors"), "--against", str(tmp_path / "base.safetensors")
    )
    ranks = [row["measured"] for row in found["readings"] if row["quantity"] == "rank of the change"]
    assert ranks == [1.0]


def test_a_mask_without_end_is_no_fault(capsys, tmp_path):
    mask = torch.full((9, 9), -torch.inf).triu(1)
    save_file({"a.weight": torch.eye(20), "attn.mask": mask}, tmp_path / "m.safetensors")
    status, out, err = run(capsys, "survey", str(tmp_path / "m.safetensors"), "--out", str(tmp_path / "out"))
    assert (status, err) == (0, "")
    assert "weights attn.mask: nothing in it that these instruments can measure" in out


def test_what_cannot_be_read_is_named_and_the_rest_is_surveyed(capsys, tmp_path):
    save_file({"a.weight": torch.eye(20), "b.weight": torch.full((9, 9), float("nan"))}, tmp_path / "m.safetensors")
    status, out, err = run(capsys, "survey", str(tmp_path / "m.safetensors"), "--out", str(tmp_path / "out"), "--all")
    assert status == 2
    assert out.startswith("✖ Critical: weights are NaN or infinite in 1 of 2 tensors.")
    assert "a.weight" in out
    assert "b.weight" in out
    assert err.startswith("theodolite: 1 tensor could not be read: b.weight")
    assert err.count("\n") == 1
    assert "a.weight" in (tmp_path / "out" / "readings.csv").read_text()


CRITICAL = {
    "gelu": ((3 + math.sqrt(17)) / 2, 1.983058, 0.172922, "half-stable"),
    "silu": (14.3202, 1.988005, 0.555143, "half-stable"),
    "relu": (None, 2.0, 0.0, "scale-invariant"),
    "tanh": (0.0, 1.0, 0.0, "zero fixed point"),
    "sigmoid": (None, None, None, "none"),
    "softplus": (None, None, None, "none"),
}


@pytest.mark.parametrize("activation", CRITICAL)
def test_design_gives_the_exact_critical_point(capsys, activation):
    # the critical point does not depend on the size
    found = document(capsys, "design", "--activation", activation, "--depth", "3", "--width", "32")["criticality"]
    point, weight, bias, kind = CRITICAL[activation]
    assert found["kind"] == kind
    for key, value, tolerance in [
        ("fixed_point", point, 1e-4 if activation == "silu" else 1e-7),
        ("weight_variance", weight, 1e-6),
        ("bias_variance", bias, 1e-6),
    ]:
        assert found[key] == (None if value is None else pytest.approx(value, abs=tolerance))
    assert found["reason"].endswith(".")


def test_design_reads_as_a_table_and_a_page(capsys, tmp_path):
    size = ("--depth", "4", "--width", "64")
    status, out, _ = run(capsys, "design", "--activation", "tanh", *size, "--data", "digits", "--out", str(tmp_path))
    assert status == 0
    assert "critical" in out
    assert "He" in out
    assert "<svg" in (tmp_path / "design.html").read_text()


def test_check_by_name_and_by_topic(capsys, tmp_path):
    status, out, _ = run(capsys, "check", "relu-critical", "--out", str(tmp_path))
    assert status == 0
    assert "relu-critical" in out
    assert "atlas.html" in out
    (record,) = document(capsys, "check", "deep_linear_critical", "--break-assumptions")
    assert record["holds"] is True
    assert all(record["breaks"].values())


def test_a_broken_law_is_status_1(capsys, monkeypatch):
    law = catalogue.law("relu-critical")
    from dataclasses import replace

    monkeypatch.setattr(catalogue, "law", lambda name: replace(law, predict=lambda **_: 1e9))
    status, out, _ = run(capsys, "check", "relu-critical")
    assert status == 1
    assert "broken" in out


def test_list_and_explain(capsys):
    listed = document(capsys, "list")
    assert {row["name"] for row in listed} == {entry.name for entry in catalogue.entries()}
    assert all(row["summary"] for row in listed)
    status, out, _ = run(capsys, "list")
    assert status == 0
    assert all(row["name"] in out for row in listed)
    for name in ("deep-linear-critical", "signal"):
        status, out, _ = run(capsys, "explain", name)
        assert status == 0
        assert name in out
    assert document(capsys, "explain", "deep-linear-critical")["erratum"]
    assert document(capsys, "explain", "signal")["question"]


def nonsense(folder):
    (folder / "nonsense.txt").write_text("hello")
    return ["survey", str(folder / "nonsense.txt")]


def truncated(folder):
    save_file({"a": torch.ones(50)}, folder / "m.safetensors")
    (folder / "m.safetensors").write_bytes((folder / "m.safetensors").read_bytes()[:-9])
    return ["survey", str(folder / "m.safetensors")]


def shards(folder):
    save_file({"a": torch.ones(5, 5)}, folder / "m.safetensors")
    return folder


def not_a_number(folder):
    save_file({"a": torch.tensor([1.0, float("nan")])}, folder / "m.safetensors")
    return ["survey", str(folder / "m.safetensors")]


def pickled(folder):
    torch.save({"a": print}, folder / "m.pt")  # no tensor in it, and nothing of it is run
    return ["survey", str(folder / "m.pt")]


def needs_an_argument(folder):
    return ["survey", "torch.nn:Linear"]


def wrong_shape(folder):
    (folder / "narrow_for_test.py").write_text("from torch import nn\ndef model():\n    return nn.Linear(63, 10)\n")
    return ["survey", "narrow_for_test:model", "--data", "digits"]


BAD = [
    nonsense,
    truncated,
    not_a_number,
    pickled,
    needs_an_argument,
    wrong_shape,
    lambda _: ["survey", "--data", "digits"],
    lambda _: ["survey", "--instrument", "sharpnes"],
    lambda _: ["survey", "--jobs", "0"],
    lambda folder: ["survey", str(shards(folder)), "--device", "warp"],
    lambda _: ["design", "--activation", "reluu"],
    lambda _: ["design", "--activation", "softmax"],
    lambda _: ["design", "--depth", "0"],
    lambda _: ["design", "--depth", "deep"],
    lambda _: ["design", "--data", "nowhere.npz"],
    lambda _: ["check", "no-such-law"],
    lambda _: ["explain", "nothing"],
    lambda _: ["explain"],
    lambda _: ["frobnicate"],
]


@pytest.mark.parametrize("make", BAD)
def test_wrong_input_is_one_line_and_status_2(make, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(make(tmp_path))
    except SystemExit as stop:  # argparse's own
        status = stop.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.startswith("theodolite: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_a_real_process_gives_the_same(tmp_path):
    (tmp_path / "nonsense.txt").write_text("hello")
    done = subprocess.run(
        [sys.executable, "-m", "theodolite", "survey", "nonsense.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(("given", "then"), [("", "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_of_a_survey_sleep_while_they_wait_unless_the_user_says_otherwise(given, then):
    script = (
        "import os; from theodolite.cli import main; main(['survey', 'none']); print(os.environ['OMP_WAIT_POLICY'])"
    )
    others = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    own = others | ({"OMP_WAIT_POLICY": given} if given else {})
    done = subprocess.run([sys.executable, "-c", script], env=own, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == then


def test_a_closed_pipe_is_no_error():
    script = f"{sys.executable} -m theodolite list | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(command in out for command in ("survey", "design", "dimension", "memorize", "check", "list", "explain"))
    assert main([]) == 0


def test_memorize_writes_a_network_that_answers_the_data(capsys, tmp_path):
    from theodolite.construct.capacity import load

    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((80, 3)), generator.uniform(-5, 5, 80)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    out = tmp_path / "net.safetensors"
    found = document(capsys, "memorize", str(tmp_path / "data.npz"), "--out", str(out), "--activation", "hardtanh")
    assert found["points"] == 80
    assert found["error"] < 1e-8
    with torch.no_grad():
        assert np.abs(load(out)(torch.from_numpy(x)).numpy()[:, 0] - y).max() < 1e-8
    status, words, _ = run(capsys, "memorize", str(tmp_path / "data.npz"), "--out", str(out), "--float32")
    assert status == 0
    assert "float32" in words


@pytest.mark.parametrize("keep", [{"x": 2}, {"x": 2, "y": 1}])
def test_memorize_refuses_in_one_line(capsys, tmp_path, keep):
    arrays = {"x": np.ones((2, 3)), "y": np.array([0.0, 1.0])}  # without y; with two targets for one row
    np.savez(tmp_path / "data.npz", **{key: arrays[key] for key in keep})
    status, out, err = run(capsys, "memorize", str(tmp_path / "data.npz"), "--out", str(tmp_path / "net.safetensors"))
    assert status == 2
    assert out == ""
    assert err.startswith("theodolite: expected")
    assert err.count("\n") == 1
    assert not (tmp_path / "net.safetensors").exists()


def test_a_pipe_gets_plain_lines_as_wide_as_columns_says(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, narrow, _ = run(capsys, "check", "commuting-quadratic-divergence", "zaslavsky")
    assert status == 0
    assert max(map(len, narrow.splitlines())) <= 80
    assert "commuting-quadratic-divergence" in narrow
    assert "\x1b" not in narrow
    assert all(line == line.rstrip() for line in narrow.splitlines())
    monkeypatch.delenv("COLUMNS")
    _, wide, _ = run(capsys, "check", "zaslavsky")
    assert "✓ holds" in wide and "✓ holds" not in narrow


def test_help_begins_with_what_it_is_for_and_fits_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], ["survey"], ["diagnose"], ["check"]):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        told = capsys.readouterr().out
        assert max(map(len, told.splitlines())) <= 80
    assert "Run the laws: compare each theorem's prediction with an experiment." in told
