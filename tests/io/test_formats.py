"""Every format written by the library that owns it: the same numbers as the safetensors of the same model, by content alone."""

import argparse
import json
import pickle
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 24), nn.Linear(32, 32, bias=False)
        self.load_state_dict(TENSORS)

    def forward(self, x):
        return self.a(x).relu()


class Config:
    def __init__(self):
        self.lr = 0.1


def wrapped(path):
    torch.save(
        {"state_dict": TENSORS, "args": argparse.Namespace(lr=0.1), "config": Config(), "n": np.float64(3)}, path
    )


def module(path):
    torch.save(Net(), path)


def script(path):
    torch.jit.save(torch.jit.trace(Net(), torch.zeros(2, 64), check_trace=False), path)


def with_b(path):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Net()

        def forward(self, x):
            return self.inner.b(self.inner.a(x).sum() + torch.zeros(2, 32))

    torch.jit.script(Both()).save(path)


def arrays(path, save):
    with path.open("wb") as file:
        save(file, **{name: tensor.numpy() for name, tensor in TENSORS.items()})


WRITERS = {
    "safetensors": lambda path: save_file(TENSORS, path),
    "torch": lambda path: torch.save(TENSORS, path),
    "old torch": lambda path: torch.save(TENSORS, path, _use_new_zipfile_serialization=False),
    "wrapped": wrapped,
    "module": module,
    "npz": lambda path: arrays(path, np.savez),
    "npz packed": lambda path: arrays(path, np.savez_compressed),
}


@pytest.mark.parametrize("suffix", ["", ".best", ".pth.tar", ".weights"])
@pytest.mark.parametrize("kind", WRITERS)
def test_known_by_content_whatever_the_name(kind, suffix, tmp_path):
    WRITERS[kind](tmp_path / f"model{suffix}")
    same(checkpoint(tmp_path / f"model{suffix}"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_gives_its_tensors_and_runs_nothing(tmp_path):
    script(tmp_path / "m.pt")
    found = checkpoint(tmp_path / "m.pt")
    assert torch.equal(found["a.weight"].read(), TENSORS["a.weight"])
    with_b(str(tmp_path / "n.pt"))
    same(checkpoint(tmp_path / "n.pt"), prefix="inner.")


def test_tensors_inside_lists_are_named_by_their_place(tmp_path):
    torch.save({"layers": [TENSORS["a.weight"], {"bias": TENSORS["a.bias"]}], "step": 3}, tmp_path / "m.pt")
    assert list(checkpoint(tmp_path / "m.pt")) == ["layers.0", "layers.1.bias"]


def test_arrays_inside_pickles(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))}
    torch.save(arrays, tmp_path / "m.pt")
    found = checkpoint(tmp_path / "m.pt")
    assert all(np.array_equal(found[name].read().numpy(), arrays[name]) for name in arrays)


def test_views_parameters_and_types(tmp_path):
    whole = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "transposed": whole.T,
        "sliced": whole[1:3, ::2],
        "parameter": nn.Parameter(whole.clone()),
        "half": whole.half(),
        "float8": whole.to(torch.float8_e4m3fn),
        "scalar": torch.tensor(3.0),
        "empty": torch.zeros(0, 5),
        "words": torch.arange(4).to(torch.uint16),
    }
    for old in (True, False):
        torch.save(tensors, tmp_path / "m.pt", _use_new_zipfile_serialization=not old)
        found = checkpoint(tmp_path / "m.pt")
        for name, tensor in tensors.items():
            assert torch.equal(found[name].read().double(), tensor.detach().double()), name


def test_a_trap_in_a_pickle_does_not_spring(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"model": {"a": torch.ones(2, 2)}, "trap": Trap(), "more": [Trap()]}, tmp_path / "m.pt")
    assert list(checkpoint(tmp_path / "m.pt")) == ["a"]
    assert not (tmp_path / "ran").exists()


def test_sharded_torch_folders(tmp_path):
    torch.save({"a.weight": TENSORS["a.weight"]}, tmp_path / "pytorch_model-00001-of-00002.bin")
    torch.save({k: TENSORS[k] for k in ("a.bias", "b.weight")}, tmp_path / "pytorch_model-00002-of-00002.bin")
    same(checkpoint(tmp_path))
    where = {name: f"pytorch_model-0000{1 if name == 'a.weight' else 2}-of-00002.bin" for name in TENSORS}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
    same(checkpoint(tmp_path))


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


def test_hdf5_of_its_own_library(tmp_path):
    import h5py

    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        for name, tensor in TENSORS.items():
            file[name.replace(".", "/")] = tensor.numpy()
        file["words"] = "a word"
    found = checkpoint(tmp_path / "model.weights.h5")
    same({name: weight for name, weight in found.items() if name != "words"})
    with pytest.raises(ValueError, match="^expected numbers in words"):
        found["words"].read()
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", "{}")
        archive.write(tmp_path / "model.weights.h5", "model.weights.h5")
    same({name: weight for name, weight in checkpoint(tmp_path / "model.keras").items() if name != "words"})


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


def test_an_adapter_folder(tmp_path):
    import peft

    model = peft.get_peft_model(Net(), peft.LoraConfig(r=2, target_modules=["a"]))
    model.save_pretrained(tmp_path)
    shapes = {name: weight.shape for name, weight in checkpoint(tmp_path).items()}
    assert sorted(shapes.values()) == [(2, 64), (24, 2)]


def test_a_survey_says_the_same_of_every_format(tmp_path):
    rows = {}
    for kind, write in WRITERS.items():
        write(tmp_path / kind)
        rows[kind] = sorted(str(row) for row in th.survey(tmp_path / kind, cost="free").rows())
    assert all(found == rows["safetensors"] for found in rows.values())


def test_a_bare_pickle_is_named_as_such(tmp_path):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="torch did not write"):
        checkpoint(tmp_path / "m.pkl")


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


def _trained_with_an_untrained_head(reverse):
    generator = torch.Generator().manual_seed(0)
    state = {f"layer{k}.weight": torch.randn(32, 32, generator=generator) * 0.3 for k in range(4)}
    state["a_head.weight"] = (torch.rand(10, 32, generator=generator) * 2 - 1) / 32**0.5
    return dict(sorted(state.items(), reverse=reverse))


def test_the_same_weights_are_judged_alike_in_every_format_and_order_of_keys(tmp_path):
    from safetensors.torch import save_file

    said = set()
    for reverse in (False, True):
        state = _trained_with_an_untrained_head(reverse)
        save_file(state, tmp_path / "m.safetensors")
        torch.save(state, tmp_path / "m.pt")
        np.savez(tmp_path / "m.npz", **{name: tensor.numpy() for name, tensor in state.items()})
        for name in ("m.safetensors", "m.pt", "m.npz"):
            result = th.survey(str(tmp_path / name))
            rows = sorted((r.quantity, r.where, r.measured, r.stderr, r.status, r.meaning) for r in result.readings)
            said.add((repr(rows), repr([(f.name, f.severity, f.where, f.says) for f in result.diagnosis.findings])))
    assert len(said) == 1
