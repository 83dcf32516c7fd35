"""Flax's trees in msgpack."""

import numpy as np
import torch

from theodolite.io.checkpoints import checkpoint

GENERATOR = torch.Generator().manual_seed(0)
TENSORS = {
    "a.weight": torch.randn(24, 64, generator=GENERATOR),
    "a.bias": torch.randn(24, generator=GENERATOR),
    "b.weight": torch.randn(32, 32, generator=GENERATOR),
}


def same(weights, *, tensors=TENSORS, prefix=""):
    found = {name: weight.read() for name, weight in weights.items()}
    assert set(found) == {prefix + name for name in tensors}
    for name, tensor in tensors.items():
        assert weights[prefix + name].shape == tuple(tensor.shape)
        assert torch.equal(found[prefix + name].float(), tensor.float())


def flax_bytes(tree):
    """As flax.serialization.msgpack_serialize writes it."""
    import msgpack

    def packed(array):
        array = np.asarray(array)
        raw = msgpack.packb((array.shape, array.dtype.name, array.tobytes()), use_bin_type=True)
        return msgpack.ExtType(1, raw)

    return msgpack.packb(tree, default=packed, strict_types=True)


def test_flax(tmp_path):
    tree = {"a": {"weight": TENSORS["a.weight"].numpy(), "bias": TENSORS["a.bias"].numpy()}}
    flat = TENSORS["b.weight"].numpy().ravel()
    chunks = {"0": flat[:700], "1": flat[700:]}
    tree["b"] = {"weight": {"__msgpack_chunked_array__": True, "shape": {"0": 32, "1": 32}, "chunks": chunks}}
    (tmp_path / "model").write_bytes(flax_bytes({**tree, "step": 3, "name": "x", "rate": 0.5}))
    same(checkpoint(tmp_path / "model"))
