"""Spectra of checkpoints and models: nothing left out, nothing called trained that noise could be, runs that go on."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import theodolite as th
from theodolite.instruments._common import spectra as _spectra
from theodolite.instruments._common.spectra import layer_spectra
from theodolite.io.store import Store


def noise(*shape, seed=0, scale=0.05):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def spiked(rows, columns, *, strength=3.0):
    a, b = noise(rows, 1, seed=1, scale=1.0), noise(1, columns, seed=2, scale=1.0)
    size = 0.05 * (rows * columns) ** 0.25 * strength * (rows**0.5 + columns**0.5) / (rows + columns) ** 0.5
    return noise(rows, columns) + size * (a / a.norm()) @ (b / b.norm())


def by_quantity(readings, quantity):
    return {reading.where: reading for reading in readings if quantity in reading.quantity}


@pytest.fixture
def mixed(tmp_path):
    tensors = {
        "noise.weight": noise(96, 64),
        "spiked.weight": spiked(96, 64),
        "conv.weight": noise(32, 8, 3, 3),
        "bias": noise(5),
        "attn.in_proj_weight": noise(96, 32),
        "lstm.weight_ih_l0": noise(64, 24),
        "lstm.weight_hh_l0": noise(64, 16),
        "zero.weight": torch.zeros(10, 10),
        "one.weight": torch.ones(12, 12),
        "row.weight": noise(1, 40),
        "codes.weight": torch.ones(8, 8, dtype=torch.int8),
        "half.weight": noise(64, 64).to(torch.bfloat16),
        "bad.weight": torch.full((9, 9), float("nan")),
    }
    save_file(tensors, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_every_tensor_is_in_the_table_or_named(mixed):
    survey = th.survey(mixed, instruments=("weight-spectrum",))
    seen = {reading.where for reading in survey.readings}
    parts = {f"attn.in_proj_weight[{part}]" for part in ("query", "key", "value")}
    assert seen >= parts | {"noise.weight", "spiked.weight", "conv.weight", "zero.weight", "one.weight", "row.weight"}
    assert {name for name in seen if name.startswith("lstm.weight_ih_l0")} != set()
    assert {"codes.weight", "half.weight"} <= seen
    assert set(survey.faults) == {"bad.weight"}
    assert any("bad.weight" in skip.instrument for skip in survey.skipped)
    unread = by_quantity(survey.readings, "without a spectrum")
    assert "all zeros" in unread["zero.weight"].meaning
    assert "rank one" in unread["one.weight"].meaning
    assert "int8" in unread["codes.weight"].meaning


def test_noise_is_not_called_trained_and_a_spike_is(mixed):
    readings = th.read("weight-spectrum", mixed)
    spikes, surprise = by_quantity(readings, "spikes"), by_quantity(readings, "p-value")
    assert spikes["noise.weight"].measured == 0
    assert spikes["spiked.weight"].measured == 1
    assert surprise["noise.weight"].status == "agrees"
    assert surprise["spiked.weight"].status == "not random"
    for reading in by_quantity(readings, "alpha").values():
        if reading.expected is not None and reading.measured >= reading.expected.low:
            assert "well trained" not in reading.meaning


def test_a_survey_of_a_checkpoint_goes_on_where_it_stopped(mixed, tmp_path, monkeypatch):
    first = th.survey(mixed, instruments=("weight-spectrum", "rank"), out=tmp_path / "out")
    assert "answer rank" in Store(tmp_path / "out")
    monkeypatch.setattr(_spectra, "gram_eigenvalues", lambda matrix: pytest.fail("computed again"))
    second = th.survey(mixed, instruments=("weight-spectrum", "rank"), out=tmp_path / "out")
    assert json.loads(first.json())["readings"] == json.loads(second.json())["readings"]


def test_a_checkpoint_that_has_changed_is_read_anew(mixed, tmp_path):
    before = by_quantity(th.survey(mixed, instruments=("rank",), out=tmp_path / "out").readings, "stable rank")
    save_file({"noise.weight": torch.eye(96, 64)}, mixed)
    after = by_quantity(th.survey(mixed, instruments=("rank",), out=tmp_path / "out").readings, "stable rank")
    assert after["noise.weight"].measured == pytest.approx(64)
    assert before["noise.weight"].measured < 50


def test_a_model_changed_in_place_is_read_anew():
    model = nn.Linear(16, 16, bias=False)
    subject = th.Subject(model)
    first = layer_spectra(subject)[0].spectrum.largest
    with torch.no_grad():
        model.weight.mul_(2)
    assert layer_spectra(subject)[0].spectrum.largest == pytest.approx(4 * first, rel=1e-5)


def test_masks_and_indices_are_not_counted_as_parameters(tmp_path):
    state = {"a.weight": noise(20, 30), "mask": torch.ones(9, 9, dtype=torch.uint8), "places": torch.arange(7)}
    save_file(state, tmp_path / "m.safetensors")
    assert th.survey(str(tmp_path / "m.safetensors")).facts["parameters"] == "600 in 1 tensors (float32)"
