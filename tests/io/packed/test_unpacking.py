"""Packed weights on their way into a survey, and what no scheme knows."""

from pathlib import Path

import torch
from safetensors.torch import save_file

import theodolite as th
from theodolite.io.checkpoints import checkpoint

FILES = Path(__file__).parents[1] / "files"
FOLDERS = sorted(path.parent.name for path in FILES.glob("*/expected.safetensors"))


def test_there_are_files_of_every_scheme():
    kinds = {name.split("-")[0].rstrip("248") for name in FOLDERS}
    assert kinds == {"gptq", "awq", "bitsandbytes", "compressed"}


def weight(rows, columns):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(1))


def test_the_survey_of_a_quantized_file_is_that_of_its_weights(tmp_path):
    quantized = th.survey(FILES / "bitsandbytes-nf4" / "model.safetensors", cost="free")
    plain = th.survey(FILES / "bitsandbytes-nf4" / "expected.safetensors", cost="free")
    rows = [
        [{k: v for k, v in row.items() if k != "meaning"} for row in result.rows()] for result in (quantized, plain)
    ]
    assert rows[0] == rows[1]
    assert any("equantized from bitsandbytes nf4" in row["meaning"] for row in quantized.rows())


def test_tensors_of_an_unknown_scheme_stay_and_are_named(tmp_path):
    tensors = {"a.qweight": torch.ones(8, 9, dtype=torch.int32), "a.scales": torch.ones(2, 5), "a.weight": weight(9, 8)}
    save_file(tensors, tmp_path / "m.safetensors")
    assert sorted(checkpoint(tmp_path / "m.safetensors")) == ["a.qweight", "a.scales", "a.weight"]
    meanings = {row["where"]: row["meaning"] for row in th.survey(tmp_path / "m.safetensors", cost="free").rows()}
    assert "packed weights; unpack them first" in meanings["a.qweight"]
