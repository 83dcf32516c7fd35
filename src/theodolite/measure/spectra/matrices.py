"""How every parameter with two or more axes becomes matrices: layers as they act, gates and projections apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core.lazy_torch import is_tensor, kind_of, torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

Shapes = Mapping[str, Sequence[int]]

RECURRENT = re.compile(r"(?P<stem>.*?)weight_(?P<kind>ih|hh|hr)(?P<layer>(_l\d+)?(_reverse)?)$")
GATES = {1: ("",), 3: ("reset", "update", "new"), 4: ("input", "forget", "cell", "output")}
THIRDS = ("query", "key", "value")
FUSED = re.compile(
    r"(^|[._])(in_proj_weight|qkv|qkv_proj|wqkv|c_attn|to_qkv|attn_qkv|in_proj_qkv)([._]|$)", re.IGNORECASE
)
INTERLEAVED = re.compile(r"(^|[._])query_key_value([._]|$)")
PAIRED = re.compile(r"(^|[._])gate_up_proj([._]|$)")
MASK = re.compile(r"(^|[._])(bias|.*mask)$")
WHOLE = ("int64", "int32", "int16", "uint64", "uint32", "uint16")
EXPERTS = re.compile(r"(^|[._])experts?([._]|$)")


@dataclass(frozen=True, slots=True)
class WeightMatrix:
    """One matrix of a parameter; ``how`` says what was done to get it, ``reason`` why there is none."""

    name: str
    matrix: Tensor | NDArray[Any] | None
    how: str = ""
    reason: str = ""


def weight_matrices(
    name: str,
    tensor: Tensor | NDArray[Any],
    *,
    module: nn.Module | None = None,
    shapes: Shapes | None = None,
    heads: int | None = None,
    slices: bool = False,
) -> tuple[WeightMatrix, ...]:
    """The matrices of one parameter, a tensor or an array, each a view where storage allows; nothing for vectors and scalars.

    A convolution is matricised as outputs by (inputs times kernel), or with ``slices`` one matrix a kernel position.
    Recurrent weights are split by gate: the number of gates is told by the ``module``, or by the ``shapes`` of all
    tensors of the checkpoint (the sibling weight_hh), or by the weight's own shape. Fused query, key and value are split
    in three, also where keys and values are fewer (then queries are taken to be as many as inputs); a layout that
    interleaves heads needs ``heads``. Expert stacks give one matrix an expert, or its gate and its up. float8 is upcast, half
    and bfloat16 are left as they are with a note (on a 39-layer language model storage in bfloat16 moved exponents by up to
    0.01, by up to 0.07 under WeightWatcher's rule); integers, packed and complex tensors are refused with a reason.

    >>> import torch
    >>> [m.name for m in weight_matrices("attn.in_proj_weight", torch.zeros(12, 4))]
    ['attn.in_proj_weight[query]', 'attn.in_proj_weight[key]', 'attn.in_proj_weight[value]']
    >>> weight_matrices("conv.weight", torch.zeros(8, 3, 5, 5))[0].matrix.shape
    torch.Size([8, 75])
    >>> weight_matrices("layer.weight", torch.zeros(2, 2, dtype=torch.int8))[0].reason
    'stored as int8; quantized weights need their scales: dequantize first'
    """
    if tensor.ndim < 2:
        return ()
    reason = _no_weight(name, tensor) or _refusal(tensor)
    if reason:
        return (WeightMatrix(name, None, reason=reason),)
    tensor, note = _upcast(tensor.detach() if is_tensor(tensor) else tensor)
    found = _split(name, tensor, module, shapes or {}, heads) if tensor.ndim == 2 else ()
    found = found or _experts(name, tensor, shapes or {}) or _stacked(name, tensor, module, slices)
    return tuple(WeightMatrix(m.name, m.matrix, "; ".join(filter(None, (m.how, note))), m.reason) for m in found)


def _refusal(tensor: Any) -> str:
    kind = kind_of(tensor.dtype)
    if kind == "bool":
        return "stored as bool: a mask, not weights"
    if kind in WHOLE:
        return f"stored as {kind}: indices, counts or packed weights; unpack them first if they are weights"
    quantized = is_tensor(tensor) and tensor.is_quantized
    if quantized or not kind.startswith(("float", "bfloat", "complex")):
        return f"stored as {kind}; quantized weights need their scales: dequantize first"
    if kind.startswith(("complex", "float4")):
        return f"stored as {kind}, for which no spectrum is taken"
    if is_tensor(tensor) and tensor.is_meta:
        return "on the meta device, without values"
    if is_tensor(tensor) and tensor.layout != torch.strided:
        return "stored sparse; make it dense first"
    return "" if 0 not in tensor.shape else "empty"


def _no_weight(name: str, tensor: Any) -> str:
    """Attention masks are stored as buffers called bias, of zeros and ones, in the type of the weights."""
    if not MASK.search(name) or 0 in tensor.shape:
        return ""
    if is_tensor(tensor):
        if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized or tensor.is_complex():
            return ""
        tensor = tensor.detach().double().cpu().numpy()
    flat = tensor.reshape(-1)
    few = flat[:4096]
    if flat.dtype.kind == "c" or not ((few == 0) | (few == 1)).all():
        return ""
    return "zeros and ones: a mask, not weights" if bool(((flat == 0) | (flat == 1)).all()) else ""


def _upcast(tensor: Any) -> tuple[Any, str]:
    kind = kind_of(tensor.dtype)
    if "float8" in kind:
        return tensor.float(), "float8 upcast, its scale not applied"
    if kind in ("float16", "bfloat16"):
        return tensor, f"stored as {kind}, whose rounding moves exponents"
    return tensor, ""


def _stacked(name: str, tensor: Any, module: nn.Module | None, slices: bool) -> tuple[WeightMatrix, ...]:
    """Two axes as they are; more by position, by expert, or matricised."""
    if tensor.ndim == 2:
        return (WeightMatrix(name, tensor),)
    if slices:
        flat = tensor.reshape(*tensor.shape[:2], -1)
        parts = [flat[:, :, i] for i in range(flat.shape[2])]
        whole = [part.contiguous() if is_tensor(part) else np.ascontiguousarray(part) for part in parts]
        labels = [",".join(map(str, place)) for place in product(*map(range, tensor.shape[2:]))]
        return tuple(
            WeightMatrix(f"{name}[{label}]", whole[i], "one matrix a kernel position") for i, label in enumerate(labels)
        )
    transposed = module is not None and isinstance(
        module, (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
    )
    how = "matricised: inputs by outputs x kernel" if transposed else "matricised: outputs by inputs x kernel"
    groups = getattr(module, "groups", 1)
    if groups != 1:
        how += f", {groups} groups share it"
    return (WeightMatrix(name, tensor.reshape(len(tensor), -1), how),)


def _experts(name: str, tensor: Any, shapes: Shapes) -> tuple[WeightMatrix, ...]:
    """One matrix an expert; gate and up apart where the sibling ``down_proj`` tells along which axis they lie."""
    if tensor.ndim != 3 or not EXPERTS.search(name):
        return ()
    whole = tuple(WeightMatrix(f"{name}[{i}]", tensor[i], "one matrix an expert") for i in range(len(tensor)))
    down = tuple(shapes.get(name.replace("gate_up_proj", "down_proj"), ())) if PAIRED.search(name) else ()
    _, rows, columns = tensor.shape
    if down[1:] == (columns, rows // 2) and rows % 2 == 0:
        pairs, how = [(m[: rows // 2], m[rows // 2 :]) for m in tensor], "split in halves"
    elif down[1:] == (columns // 2, rows) and columns % 2 == 0 and f"{name}_bias" in shapes:
        pairs, how = [(m[:, ::2], m[:, 1::2]) for m in tensor], "every other column"
    elif down[1:] == (columns // 2, rows) and columns % 2 == 0:
        pairs, how = [(m[:, : columns // 2], m[:, columns // 2 :]) for m in tensor], "split in halves, by columns"
    else:
        return whole
    return tuple(
        WeightMatrix(f"{name}[{i}, {label}]", part, f"one matrix an expert, {how}")
        for i, pair in enumerate(pairs)
        for label, part in zip(("gate", "up"), pair, strict=True)
    )


def _split(
    name: str, tensor: Any, module: nn.Module | None, shapes: Shapes, heads: int | None
) -> tuple[WeightMatrix, ...]:
    """The parts of a fused matrix, or nothing where the name speaks of none."""
    recurrent = RECURRENT.match(name)
    if recurrent:
        return _gates(name, tensor, recurrent, module, shapes)
    if INTERLEAVED.search(name):
        return _interleaved(name, tensor, heads)
    if FUSED.search(name):
        return _thirds(name, tensor)
    if PAIRED.search(name) and tensor.shape[0] % 2 == 0:
        return _parts(name, tensor, ("gate", "up"), [tensor.shape[0] // 2] * 2, "split in halves")
    return ()


def _parts(
    name: str, tensor: Any, labels: Sequence[str], sizes: Sequence[int], how: str, axis: int = 0
) -> tuple[WeightMatrix, ...]:
    ends = list(accumulate(sizes))
    rows = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    pieces = [tensor[part] if axis == 0 else tensor[:, part] for part in rows]
    return tuple(WeightMatrix(f"{name}[{label}]", p, how) for label, p in zip(labels, pieces, strict=True))


def _thirds(name: str, tensor: Any) -> tuple[WeightMatrix, ...]:
    rows, columns = tensor.shape
    if rows == 3 * columns or (rows % 3 == 0 and rows > 3 * columns):
        return _parts(name, tensor, THIRDS, [rows // 3] * 3, "split in three")
    if columns == 3 * rows:
        return _parts(name, tensor, THIRDS, [rows] * 3, "split in three, by columns", axis=1)
    shared, odd = divmod(rows - columns, 2)
    if shared > 0 and not odd and columns % shared == 0:
        how = f"split in three: {columns} queries taken to be as many as inputs, {shared} keys and values"
        return _parts(name, tensor, THIRDS, [columns, shared, shared], how)
    return (WeightMatrix(name, tensor, "query, key and value kept together: their sizes are unknown"),)


def _interleaved(name: str, tensor: Any, heads: int | None) -> tuple[WeightMatrix, ...]:
    rows, columns = tensor.shape
    if heads is None or rows != 3 * columns or columns % heads:
        why = "pass heads=" if heads is None else "their sizes are unknown"
        return (WeightMatrix(name, tensor, f"query, key and value, interleaved by head, kept together: {why}"),)
    split = tensor.reshape(heads, 3, columns // heads, columns)
    how = f"split in three, {heads} heads disentangled"
    return tuple(WeightMatrix(f"{name}[{t}]", split[:, i].reshape(-1, columns), how) for i, t in enumerate(THIRDS))


def _gates(
    name: str, tensor: Any, recurrent: re.Match[str], module: nn.Module | None, shapes: Shapes
) -> tuple[WeightMatrix, ...]:
    rows, columns = tensor.shape
    stem, layer = recurrent["stem"], recurrent["layer"]
    if recurrent["kind"] == "hr":
        return (WeightMatrix(name, tensor, "projection of the hidden state"),)
    hidden, source = columns if recurrent["kind"] == "hh" else 0, "shape"
    for sibling, axis in ((f"{stem}weight_hh{layer}", 1), (f"{stem}weight_hr{layer}", 1)):
        if sibling in shapes:
            hidden, source = int(shapes[sibling][axis]), "shapes of the checkpoint"
    gates = rows // hidden if hidden and rows % hidden == 0 else 0
    if module is not None and isinstance(module, (torch.nn.RNNBase, torch.nn.RNNCellBase)):
        kind = type(module).__name__
        gates, source = 4 if "LSTM" in kind else 3 if "GRU" in kind else 1, "module"
    if gates == 1:
        return (WeightMatrix(name, tensor),)
    if gates not in GATES or rows % gates:
        return (WeightMatrix(name, tensor, "gates kept together: this tensor does not say how many"),)
    return _parts(name, tensor, GATES[gates], [rows // gates] * gates, f"split in {gates} gates (by its {source})")
