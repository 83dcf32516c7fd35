"""ONNX of its own library."""

import numpy as np
import pytest
import torch

import theodolite as th
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


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("INT64", [0, 1, -1, 127, 128, 2**62, -(2**63)]),
        ("INT32", [0, 300, -300, 2**31 - 1]),
        ("UINT8", [0, 128, 255]),
        ("INT8", [-128, 127]),
        ("BOOL", [True, False]),
        ("UINT64", [2**63, 2**64 - 1]),
        ("FLOAT16", [0.5, -3.25, 65504.0]),
        ("BFLOAT16", [0.5, -3.25, 1e30]),
    ],
)
def test_onnx_numbers_one_by_one(tmp_path, kind, numbers):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    tensor = helper.make_tensor("v", getattr(TensorProto, kind), (len(numbers),), numbers)
    assert not tensor.raw_data
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], initializer=[tensor])), str(tmp_path / "m.onnx"))
    expected = numpy_helper.to_array(tensor)
    found = checkpoint(tmp_path / "m.onnx")["v"].read()
    known = found.float().tolist() if found.is_floating_point() else found.tolist()
    assert known == (expected.astype(np.float32) if found.is_floating_point() else expected).tolist()


def test_onnx_fewer_numbers_than_the_shape_asks_for(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    tensor = helper.make_tensor("v", TensorProto.INT64, (3,), [1, 2, 3])
    del tensor.int64_data[2:]
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], initializer=[tensor])), str(tmp_path / "m.onnx"))
    with pytest.raises(ValueError, match="expected 3 numbers, got 2"):
        checkpoint(tmp_path / "m.onnx")["v"].read()


def test_onnx_constants_and_graphs_inside_graphs_are_read(tmp_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight, lowest = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32), np.float32(-np.inf)

    def branch(name, factor):
        value = numpy_helper.from_array(np.asarray(factor * weight, dtype=np.float32), "v")
        made = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph(
            [helper.make_node("MatMul", ["x", "v"], [name])], name, [], [made], initializer=[value]
        )

    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight, "another name")),
        helper.make_node("Constant", [], ["lowest"], value=numpy_helper.from_array(np.array(lowest))),
        helper.make_node("If", ["c"], ["z"], then_branch=branch("a", 2.0), else_branch=branch("b", 3.0)),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", given, [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph), str(tmp_path / "m.onnx"))
    found = checkpoint(tmp_path / "m.onnx")
    assert {"w", "lowest", "v", "v (2)"} == set(found)
    seen = sorted(round(float((one.read() / found["w"].read()).mean()), 5) for one in found.values() if one.shape)
    assert seen == [1.0, 2.0, 3.0]
    assert np.array_equal(found["w"].read().numpy(), weight)
    diagnosis = th.diagnose(str(tmp_path / "m.onnx"))
    assert "weights-not-finite" not in {finding.name for finding in diagnosis.findings}  # a constant, not a weight
