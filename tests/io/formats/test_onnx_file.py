"""ONNX of its own library."""

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


def test_onnx_of_its_own_library(tmp_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    made = [numpy_helper.from_array(t.numpy(), name) for name, t in TENSORS.items()]
    made.append(helper.make_tensor("by numbers", TensorProto.FLOAT, (2, 3), list(range(6))))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [], initializer=made)
    onnx.save(helper.make_model(graph), str(tmp_path / "model"), format="protobuf")
    expected = TENSORS | {"by numbers": torch.arange(6.0).reshape(2, 3)}
    same(checkpoint(tmp_path / "model"), tensors=expected)
    outside = {"save_as_external_data": True, "location": "data.bin", "size_threshold": 0}
    onnx.save(helper.make_model(graph), str(tmp_path / "apart.onnx"), **outside)
    same(checkpoint(tmp_path / "apart.onnx"), tensors=expected)
