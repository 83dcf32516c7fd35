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


def test_an_adapter_shows_its_rank(tmp_path):
    base = noise(80, 60)
    adapter = noise(80, 4, seed=3, scale=0.1) @ noise(4, 60, seed=4, scale=0.1)
    save_file({"a.weight": base, "b.weight": base.clone()}, tmp_path / "base.safetensors")
    save_file({"a.weight": base + adapter, "b.weight": base.clone()}, tmp_path / "tuned.safetensors")
    from theodolite.io.checkpoints import checkpoint

    readings = th.read(
        "training-change", tmp_path / "tuned.safetensors", origin=checkpoint(tmp_path / "base.safetensors")
    )
    assert by_quantity(readings, "rank of the change")["a.weight"].measured == 4
    assert by_quantity(readings, "size of the change")["b.weight"].measured == 0
    assert by_quantity(readings, "spikes in the change")["a.weight"].measured >= 1


def test_the_bridge_is_exact_and_knows_where_its_bound_fails():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(100, 20), nn.ReLU(), nn.Linear(20, 20))
    readings = th.read("bridge", model, data=torch.randn(30, 100))
    slack = by_quantity(readings, "slack")
    assert all(reading.status == "agrees" for reading in slack.values())
    condition = by_quantity(readings, "condition number")
    assert condition["0"].status == "no reference"  # 30 rows in 100 dimensions into 20: no bound
    assert condition["2"].status == "agrees"


def test_the_gain_of_steering_in_a_linear_network_is_exact():
    """|W v| / |v| for directions v drawn as the instrument draws them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 24), nn.Linear(24, 8)).double()
    (reading,) = th.read("steering", model, data=torch.randn(12, 10))
    directions = torch.randn(8, 24, generator=torch.Generator().manual_seed(0)).double()
    gains = (directions @ model[1].weight.T).norm(dim=1) / directions.norm(dim=1)
    assert reading.measured == pytest.approx(gains.mean().item(), rel=1e-6)
    assert reading.status == "agrees"


def test_feature_spectra_of_a_planted_decay():
    """Features whose covariance has eigenvalues k^-1.5 by construction, 3,000 of them in 120 dimensions."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3000, 120, generator=generator) * torch.arange(1, 121) ** -0.75
    model = nn.Linear(120, 120, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.eye(120))
    readings = th.read("feature-spectrum", model, data=x)
    assert by_quantity(readings, "alpha-ReQ")[""].measured == pytest.approx(1.5, abs=0.1)


def test_sequences_and_images_are_pooled():
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 12, 3), nn.Flatten(), nn.Linear(12 * 16, 4))
    readings = th.read(
        "feature-spectrum", model, data=torch.randn(64, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    )
    assert by_quantity(readings, "participation")["2"].expected.high == 12


def test_an_exponent_of_what_is_no_power_law_is_not_called_trained():
    from theodolite.core.reading import Band
    from theodolite.instruments.weight_spectrum import _against_null

    null = Band(low=5.0, high=9.0)
    assert "well trained" in _against_null(3.0, null)
    assert "trained" not in _against_null(3.0, null, lawful=False)


@pytest.mark.parametrize(
    ("before", "after", "words"), [(2.0, 2.0, "as it was"), (2.0, 1.5, "heavier"), (1.5, 2.0, "lighter")]
)
def test_the_tail_is_said_to_change_the_way_it_does(before, after, words):
    from theodolite.instruments._common.changes import Change
    from theodolite.instruments.training_change import _way

    assert words in _way(Change("a", 0.1, 5, 5, 2.0, 3.0, 0, before, after))


def test_masks_and_indices_are_not_counted_as_parameters(tmp_path):
    state = {"a.weight": noise(20, 30), "mask": torch.ones(9, 9, dtype=torch.uint8), "places": torch.arange(7)}
    save_file(state, tmp_path / "m.safetensors")
    assert th.survey(str(tmp_path / "m.safetensors")).facts["parameters"] == "600 in 1 tensors (float32)"
