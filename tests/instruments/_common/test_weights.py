"""Silence is never right: what of a checkpoint is not surveyed is named, and nothing read is no success."""

import json

import pytest
import torch
from safetensors.torch import save_file

import theodolite as th
from theodolite.cli import main
from theodolite.measure.spectra import weight_matrices


def test_every_tensor_is_in_a_reading_or_named_with_a_reason(tmp_path, capsys):
    generator = torch.Generator().manual_seed(0)
    tensors = {
        "a.weight": torch.randn(20, 12, generator=generator),
        "a.bias": torch.randn(20, generator=generator),
        "norm.weight": torch.ones(12),
        "steps": torch.tensor(3),
        "position_ids": torch.arange(9),
        "empty": torch.zeros(0, 4),
        "scale": torch.tensor(0.5),
        "bad.weight": torch.full((3, 3), float("nan")),
    }
    save_file(tensors, tmp_path / "m.safetensors")
    assert main(["survey", str(tmp_path / "m.safetensors"), "--json"]) == 2  # one of them is not finite
    document = json.loads(capsys.readouterr().out)
    told = {row["where"] for row in document["readings"]}
    named = {name for names in document["unsurveyed"].values() for name in names}
    faults = {skip["instrument"].removeprefix("weights ") for skip in document["skipped"]}
    assert "a.bias" not in named  # its variance stands beside that of its weight
    for name in tensors.keys() - {"a.bias"}:
        assert name in told | named or name in faults, name
    assert any(why.startswith("stored as int64") for why in document["unsurveyed"])


@pytest.mark.parametrize(
    "tensors",
    [
        {"ids": torch.arange(4)},
        {"a.bias": torch.ones(4)},
        {"x": torch.tensor(1.0), "y": torch.zeros(0, 3)},
        {"a.weight": torch.ones(9, 9, dtype=torch.int64)},
    ],
    ids=["indices", "a vector", "a number and nothing", "whole numbers"],
)
def test_a_file_in_which_nothing_can_be_read_is_no_success(tensors, tmp_path, capsys):
    save_file(tensors, tmp_path / "m.safetensors")
    assert main(["survey", str(tmp_path / "m.safetensors"), "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("theodolite: expected weights that an instrument reads")
    assert captured.err.count("\n") == 1


def test_stacked_experts_are_matrices_of_their_own_as_transformers_uses_them():
    """Rows in halves (Mixtral), columns in halves (Llama 4), every other column where there is a bias (gpt-oss)."""
    generator = torch.Generator().manual_seed(0)
    gate, up = torch.randn(2, 3, 8, 5, generator=generator)
    name = "mlp.experts.gate_up_proj"
    layouts = {
        "rows": ((3, 5, 8), torch.cat([gate, up], 1), {}),
        "columns": ((3, 8, 5), torch.cat([gate, up], 1).transpose(1, 2), {}),
        "every other": ((3, 8, 5), torch.stack([gate, up], 2).flatten(1, 2).transpose(1, 2), {f"{name}_bias": (3, 16)}),
    }
    for layout, (down, tensor, beside) in layouts.items():
        found = weight_matrices(
            name, tensor, shapes={"mlp.experts.down_proj": down, name: tuple(tensor.shape), **beside}
        )
        matrices = {part.name: part.matrix for part in found}
        assert len(matrices) == 6, layout
        for expert in range(3):
            for label, whole in (("gate", gate), ("up", up)):
                part = matrices[f"{name}[{expert}, {label}]"]
                part = part if layout == "rows" else part.T
                assert torch.equal(part, whole[expert]), (layout, expert, label)


@pytest.mark.filterwarnings("ignore")
def test_the_experts_of_a_real_mixtral(tmp_path):
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        num_local_experts=3,
    )
    torch.manual_seed(0)
    model = MixtralForCausalLM(config)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    save_file(state, tmp_path / "m.safetensors")
    rows = th.survey(tmp_path / "m.safetensors", cost="free", instruments=("rank",)).rows()
    places = {row["where"] for row in rows}
    stacks = [name for name in state if state[name].ndim == 3]
    apart = [name for name in state if ".experts." in name and state[name].ndim == 2]  # as older versions keep them
    assert (stacks or apart) and set(apart) <= places
    for name in stacks:
        ends = ("0, gate]", "2, up]") if "gate_up" in name else ("0]", "2]")
        assert all(f"{name}[{end}" in places for end in ends), name
