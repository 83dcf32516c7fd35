"""What a spectrum of weights is called: heavy entries, many matrices, large entries, masks and transposed ones."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import theodolite as th

MATRICES, SHAPE = 40, (160, 96)


def test_heavy_entries_are_told_as_such_and_not_as_training(tmp_path):
    w = torch.from_numpy(np.random.default_rng(1).standard_t(3, size=SHAPE)).float()
    save_file({"a.weight": w}, tmp_path / "m.safetensors")
    readings = {r.quantity: r for r in th.read("weight-spectrum", tmp_path / "m.safetensors")}
    assert readings["kurtosis of the entries"].status == "not random"
    assert readings["spikes above the edge of noise"].measured == 0
    assert "single large entries" in readings["spikes above the edge of noise"].meaning
    assert readings["p-value against noise"].status == "agrees"
    assert "correlations have grown" not in readings["alpha, exponent of the tail"].meaning


def test_p_values_are_corrected_over_the_matrices(tmp_path):
    generator = torch.Generator().manual_seed(3)
    save_file({f"{k}.weight": torch.randn(24, 24, generator=generator) for k in range(60)}, tmp_path / "m.safetensors")
    found = [r for r in th.read("weight-spectrum", tmp_path / "m.safetensors") if "p-value" in r.quantity]
    assert len(found) == 60
    assert all(reading.status == "agrees" for reading in found)


def test_entries_whose_squares_overflow_have_a_spectrum(tmp_path):
    w = torch.randn(24, 16, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    save_file({"huge.weight": w * 2.0**700, "tiny.weight": w * 2.0**-700, "a.weight": w}, tmp_path / "m.safetensors")
    result = th.survey(tmp_path / "m.safetensors", instruments=("weight-spectrum", "rank"))
    assert not result.faults
    alphas = {row["where"]: row["measured"] for row in result.rows() if row["quantity"].startswith("alpha")}
    assert alphas["huge.weight"] == alphas["tiny.weight"] == pytest.approx(alphas["a.weight"], rel=1e-9)


def test_masks_and_indices_are_not_called_quantized_weights(tmp_path):
    tensors = {
        "embeddings.position_ids": torch.arange(512)[None],
        "attn.bias": torch.tril(torch.ones(1, 1, 32, 32)),
        "attn.other.bias": torch.tril(torch.ones(1, 1, 32, 32, dtype=torch.uint8)),
        "attn.causal_mask": torch.tril(torch.ones(32, 32)).bool(),
        "a.weight": torch.randn(16, 16, generator=torch.Generator().manual_seed(6)),
    }
    save_file(tensors, tmp_path / "m.safetensors")
    told = {
        r.where: r.meaning for r in th.read("weight-spectrum", tmp_path / "m.safetensors") if "without" in r.quantity
    }
    assert "indices" in told["embeddings.position_ids"]
    assert all("mask, not weights" in told[name] for name in ("attn.bias", "attn.other.bias", "attn.causal_mask"))
    assert not any("dequantize" in words for words in told.values())


def test_a_transposed_matrix_is_known_by_its_bias(tmp_path):
    """GPT-2 keeps inputs by outputs: the fan-in is the number of rows."""
    import transformers

    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=11, n_positions=8)
    torch.manual_seed(0)
    model = transformers.GPT2Model(config)
    save_file({n: p.detach().contiguous() for n, p in model.named_parameters()}, tmp_path / "m.safetensors")
    weight = dict(model.named_parameters())["h.0.mlp.c_fc.weight"]
    expected = 32 * weight.double().square().mean().item()
    for subject in (th.Subject(model), tmp_path / "m.safetensors"):
        found = {r.where: r.measured for r in th.read("initialization", subject) if r.quantity.startswith("C_w")}
        assert found["h.0.mlp.c_fc.weight"] == pytest.approx(expected, rel=1e-9)


def test_names_cannot_break_a_spreadsheet(tmp_path):
    w = torch.randn(12, 12, generator=torch.Generator().manual_seed(6))
    save_file(
        {'=HYPERLINK("x").weight': w, "a\rb.weight": w.clone(), "c\x1b[2J.weight": w.clone()},
        tmp_path / "m.safetensors",
    )
    result = th.survey(tmp_path / "m.safetensors")
    text = result.csv(tmp_path / "r.csv").read_bytes().decode()
    assert "\r" not in text and "\x1b" not in text
    assert len(text.splitlines()) == 1 + len(result.rows())
    assert "'=HYPERLINK" in text
    assert "\x1b[2J" not in result.text()


def test_an_exponent_of_what_is_no_power_law_is_not_called_trained():
    from theodolite.core.reading import Band
    from theodolite.instruments.weight_spectrum import _against_null

    null = Band(low=5.0, high=9.0)
    assert "well trained" in _against_null(3.0, null)
    assert "trained" not in _against_null(3.0, null, lawful=False)
