"""Safetensors without the library, against the library."""

import json

import pytest
import torch
from safetensors.torch import _TYPES, save_file

from theodolite.io.formats.safetensors_file import DTYPES, weights

KINDS = [kind for name, kind in DTYPES.items() if name in _TYPES and (kind == "uint8" or not kind.startswith("uint"))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_is_read_as_the_library_wrote_it(kind, tmp_path):
    tensor = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 4.0]]).to(getattr(torch, kind))
    save_file({"a": tensor, "empty": tensor[:0].contiguous()}, tmp_path / "m.safetensors", metadata={"made": "here"})
    found = weights(tmp_path / "m.safetensors")
    assert set(found) == {"a", "empty"} and found["a"].kind == kind
    read = found["a"].read()
    assert read.dtype == tensor.dtype and torch.equal(read.view(torch.uint8), tensor.view(torch.uint8))
    assert found["empty"].read().shape == (0, 3)


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}, "after one that ends at 0"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}, "tensors of 4 bytes in 8"),
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}, "8 bytes for a of shape"),
        ({"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}, "shape that is not a list of sizes"),
    ],
)
def test_a_header_that_lies_is_refused(facts, word, tmp_path):
    header = json.dumps({"a": facts}).encode()
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ValueError, match=word):
        weights(tmp_path / "m.safetensors")
