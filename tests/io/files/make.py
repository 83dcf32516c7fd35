"""The files of this folder, made by the libraries that own their formats; each beside `expected.safetensors`.

    python make.py gptq awq bitsandbytes compressed     where auto-gptq 0.7.1, autoawq 0.2.9, bitsandbytes 0.50.2 and
                                                        compressed-tensors 0.20.0 are installed (the first two unpacked)
    python make.py tensorflow                           where tensorflow 2.21.0 is

They are kept because these libraries are large, or want others of their own age, and the tests should need neither.
"""

import importlib
import json
import sys
import types
from pathlib import Path

HERE = Path(__file__).parent
OUT, IN, GROUP = 32, 64, 32


def matrix():
    import torch

    return torch.randn(OUT, IN, generator=torch.Generator().manual_seed(0)) * 0.02


def kept(folder, tensors, expected, config=None):
    from safetensors.torch import save_file

    (HERE / folder).mkdir(exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, HERE / folder / "model.safetensors")
    save_file({"a.weight": expected.float().contiguous()}, HERE / folder / "expected.safetensors")
    if config:
        (HERE / folder / "config.json").write_text(json.dumps({"quantization_config": config}) + "\n")


def without_init(package):
    """The modules of a package whose __init__ asks for much more than is needed here."""
    path = next(Path(folder) / package for folder in sys.path if (Path(folder) / package).is_dir())
    made = types.ModuleType(package)
    made.__path__ = [str(path)]
    sys.modules[package] = made


def grid(bits):
    """Scales and zeros of groups of inputs, and the weights on that grid."""
    parts = matrix().reshape(OUT, -1, GROUP)
    scale = ((parts.amax(-1) - parts.amin(-1)) / (2**bits - 1)).half().float()
    zero = (-parts.amin(-1) / scale).round().clamp(1, 2**bits - 1)
    numbers = ((parts / scale[..., None]).round() + zero[..., None]).clamp(0, 2**bits - 1)
    return scale, zero, ((numbers - zero[..., None]) * scale[..., None]).reshape(OUT, IN)


def linear(weight):
    import torch

    made = torch.nn.Linear(IN, OUT, bias=False)
    made.weight.data = weight.clone()
    return made


def gptq():
    without_init("auto_gptq")
    module = importlib.import_module("auto_gptq.nn_modules.qlinear.qlinear_cuda_old")
    for bits in (2, 4, 8):
        scale, zero, weight = grid(bits)
        made = module.QuantLinear(bits, GROUP, IN, OUT, False)
        made.pack(linear(weight), scale, zero, None)
        state = {f"a.{name}": tensor for name, tensor in made.state_dict().items()}
        kept(f"gptq{bits}", state, weight, {"quant_method": "gptq", "bits": bits, "group_size": GROUP})


def awq():
    import torch

    without_init("awq")
    module = importlib.import_module("awq.modules.linear.gemm")
    scale, zero, weight = grid(4)
    made = module.WQLinear_GEMM.from_linear(linear(weight).half(), 4, GROUP, False, scale.T.half(), zero.T)
    state = {f"a.{name}": tensor for name, tensor in made.state_dict().items()}
    assert state["a.qweight"].dtype == torch.int32
    kept("awq4", state, weight, {"quant_method": "awq", "bits": 4, "group_size": GROUP})


def bitsandbytes():
    import bitsandbytes as bnb

    for kind, nested in (("nf4", False), ("nf4", True), ("fp4", True)):
        made = bnb.nn.Linear4bit(IN, OUT, bias=False, quant_type=kind, compress_statistics=nested)
        made.weight = bnb.nn.Params4bit(matrix(), requires_grad=False, quant_type=kind, compress_statistics=nested)
        made = made.to("cpu")
        expected = bnb.functional.dequantize_4bit(made.weight.data, made.weight.quant_state)
        state = {f"a.{name}": tensor for name, tensor in made.state_dict().items()}
        kept(f"bitsandbytes-{kind}{'-nested' if nested else ''}", state, expected)
    made = bnb.nn.Linear8bitLt(IN, OUT, bias=False, has_fp16_weights=False)
    made.weight = bnb.nn.Int8Params(matrix(), requires_grad=False, has_fp16_weights=False)
    made = made.to("cpu")
    state = {f"a.{name}": tensor for name, tensor in made.state_dict().items()}
    expected = bnb.functional.int8_vectorwise_dequant(made.state_dict()["weight"], made.state_dict()["SCB"])
    kept("bitsandbytes-int8", state, expected)


def compressed():
    import torch
    from compressed_tensors.compressors import (
        NVFP4PackedCompressor,
        PackedQuantizationCompressor,
        compress_module,  # noqa: F401  the library is there
    )
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    for symmetric in (True, False):
        scale, zero, _ = grid(4)
        args = QuantizationArgs(num_bits=4, type="int", symmetric=symmetric, strategy="group", group_size=GROUP)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        state = {"weight": matrix(), "weight_scale": scale if not symmetric else 2 * scale}
        if not symmetric:
            state["weight_zero_point"] = (zero - 8).to(torch.int8)
        found = PackedQuantizationCompressor.compress(dict(state), scheme)
        expected = PackedQuantizationCompressor.decompress(dict(found), scheme)["weight"]
        kept(f"compressed-int4{'' if symmetric else '-zeros'}", {f"a.{k}": v for k, v in found.items()}, expected)
    args = QuantizationArgs(num_bits=4, type="float", symmetric=True, strategy="tensor_group", group_size=16)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    whole = torch.tensor([6.0 * 448 / matrix().abs().max().item()])
    scale = (whole * matrix().reshape(OUT, -1, 16).abs().amax(-1) / 6).to(torch.float8_e4m3fn).float()
    found = NVFP4PackedCompressor.compress(
        {"weight": matrix(), "weight_scale": scale, "weight_global_scale": whole}, scheme
    )
    found["weight_scale"] = found["weight_scale"].data.to(torch.float8_e4m3fn)
    expected = NVFP4PackedCompressor.decompress(dict(found), scheme)["weight"]
    kept("compressed-float4", {f"a.{name}": tensor for name, tensor in found.items()}, expected)


def tensorflow():
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    kernel, bias = random.normal(size=(24, 10)).astype(np.float32), np.arange(10, dtype=np.float32)
    (HERE / "tensorflow").mkdir(exist_ok=True)
    layer = tf.Module()
    layer.kernel, layer.bias = tf.Variable(kernel), tf.Variable(bias)
    layer.half = tf.Variable(tf.cast(kernel, tf.bfloat16))
    layer.names = tf.Variable(["a", "b"])
    optimizer = tf.Module()
    optimizer.momentum = tf.Variable(kernel)
    tf.train.Checkpoint(dense=layer, optimizer=optimizer).write(str(HERE / "tensorflow" / "model.ckpt"))
    np.savez(HERE / "tensorflow" / "expected.npz", kernel=kernel, bias=bias)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
