"""GGUF of its own library, and blocks of few bits as it unpacks them."""

import numpy as np
import pytest
import torch

from theodolite.io.checkpoints import checkpoint

GENERATOR = torch.Generator().manual_seed(0)
TENSORS = {
    "a.weight": torch.randn(24, 64, generator=GENERATOR),
    "a.bias": torch.randn(24, generator=GENERATOR),
    "b.weight": torch.randn(32, 32, generator=GENERATOR),
}


def test_gguf_of_its_own_library(tmp_path):
    import gguf

    writer = gguf.GGUFWriter(tmp_path / "model", "test")
    writer.add_uint32("some.number", 3)
    writer.add_array("some.words", ["a", "b"])
    kinds = gguf.GGMLQuantizationType
    whole = TENSORS["a.weight"].numpy()
    writer.add_tensor("plain", whole)
    writer.add_tensor("half", whole.astype(np.float16))
    quantized = {
        k.name: gguf.quants.quantize(whole, k) for k in (kinds.Q8_0, kinds.Q4_0, kinds.Q4_1, kinds.Q5_0, kinds.BF16)
    }
    for name, raw in quantized.items():
        writer.add_tensor(name, raw, raw_dtype=kinds[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = checkpoint(tmp_path / "model")
    assert torch.equal(found["plain"].read(), TENSORS["a.weight"])
    assert torch.equal(found["half"].read(), TENSORS["a.weight"].half())
    for name, raw in quantized.items():
        assert found[name].shape == (24, 64)
        assert np.array_equal(found[name].read().float().numpy(), gguf.quants.dequantize(raw, kinds[name])), name


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"])
def test_blocks_of_few_bits_are_unpacked_as_by_the_library(name, tmp_path):
    import gguf

    from theodolite.io.formats.gguf import BLOCKS, Blocks

    kind = gguf.GGMLQuantizationType[name]
    entries, length, _ = BLOCKS[kind.value]
    raw = np.random.default_rng(0).integers(0, 256, size=(12, length), dtype=np.uint8)
    for place in {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}.get(name, (0,)):
        raw[:, place : place + 2] = np.frombuffer(np.linspace(-2, 2, 12, dtype=np.float16).tobytes(), np.uint8).reshape(
            12, 2
        )
    (tmp_path / "raw").write_bytes(raw.tobytes())
    found = Blocks(str(tmp_path / "raw"), 0, kind.value, (3, 4 * entries))()
    expected = gguf.quants.dequantize(raw, kind).reshape(3, 4 * entries)
    assert np.allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6)
