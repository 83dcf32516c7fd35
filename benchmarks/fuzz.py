"""Damaged files for every reader of checkpoints and data: each must be read, or refused in one line, within 5 s and 1 GB.

    python benchmarks/fuzz.py [--cases 10000] [--seed 0] [READER ...]

Real files of each format are changed at random: bytes flipped, cut, repeated, swapped, numbers made huge, words made hostile.
Every case has its own seed, so that a failure is found again by its number. The short part runs with the tests.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch

from theodolite.core.lazy_torch import kind_of
from theodolite.core.subject import Subject
from theodolite.io.adapters import adapter
from theodolite.io.checkpoints import checkpoint
from theodolite.io.datasets import dataset, table
from theodolite.io.files import said
from theodolite.io.weights import readable
from theodolite.verbs.surveying import survey

SECONDS, MEGABYTES, LETTERS = 5, 1024, 400
HUGE = (0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 1 << 40, 0)
WORDS = (b"\x1b[2J", b"\r", b"\n", "\u202e".encode(), b"\xed\xa0\x80", b"../", b"[/b]", b"\0", b"'\"", b"=1+1")


def tensors():
    generator = torch.Generator().manual_seed(0)
    return {"a.weight": torch.randn(9, 8, generator=generator), "a.bias": torch.ones(9), "b": torch.arange(6)}


def packed(save):
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def safetensors_file():
    from safetensors.torch import save

    return save(tensors())


def zip_file():
    return packed(lambda file: torch.save({"state_dict": tensors(), "l": [1, (2, "x")]}, file))


def old_file():
    return packed(lambda file: torch.save(tensors(), file, _use_new_zipfile_serialization=False))


def pickle_file():
    """The pickle of a torch file alone is changed; the zip around it stays whole."""
    with zipfile.ZipFile(io.BytesIO(zip_file())) as file:
        return next(file.read(name) for name in file.namelist() if name.endswith("data.pkl"))


def around_pickle(changed):
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(zip_file())) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            new.writestr(name, changed if name.endswith("data.pkl") else old.read(name))
    return buffer.getvalue()


def npz_file():
    return packed(lambda file: np.savez(file, **{name: tensor.numpy() for name, tensor in tensors().items()}))


def npz_packed():
    return packed(lambda file: np.savez_compressed(file, a=np.ones((30, 20)), b=np.arange(5, dtype=">i4")))


def npy_inside():
    return packed(lambda file: np.save(file, np.ones((4, 5))))


def data_file():
    return packed(lambda file: np.savez(file, x=np.ones((40, 3)), y=np.arange(40)))


def around_npy(changed):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("a.npy", changed)
    return buffer.getvalue()


def gguf_file():
    def word(text):
        return struct.pack("<Q", len(text)) + text

    facts = word(b"general.name") + struct.pack("<I", 8) + word(b"x")
    facts += word(b"list") + struct.pack("<IIQ", 9, 8, 2) + word(b"a") + word(b"b")
    infos = (
        word(b"a.weight") + struct.pack("<IQQIQ", 2, 32, 2, 8, 0) + word(b"b") + struct.pack("<IQQIQ", 2, 4, 2, 0, 96)
    )
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 2) + facts + infos
    return head + bytes(-len(head) % 32) + bytes(range(96)) + bytes(32)


def onnx_file():
    def field(number, payload):
        return bytes([number << 3 | 2, len(payload)]) + payload

    tensor = b"\x08\x03\x08\x04\x10\x01" + field(8, b"w") + field(9, bytes(48))
    other = b"\x08\x02\x10\x01" + field(8, b"v") + field(4, bytes(8))
    return b"\x08\x07" + field(2, b"torch") + field(7, field(5, tensor) + field(5, other))


def flax_file():
    def array(shape, raw):
        inner = b"\x93" + bytes([0x90 | len(shape), *shape]) + b"\xa7float32" + b"\xc4" + bytes([len(raw)]) + raw
        return b"\xc7" + bytes([len(inner)]) + b"\x01" + inner

    return b"\x82\xa1a" + b"\x81\xa6kernel" + array((3, 4), bytes(48)) + b"\xa1b" + array((2,), bytes(8))


def hdf5_file():
    import h5py

    def save(file):
        with h5py.File(file, "w") as made:
            made["a/kernel"] = np.ones((4, 5), np.float32)

    return packed(save)


FILES = Path(__file__).resolve().parent.parent / "tests" / "io" / "files"


def gptq_file():
    """Whole numbers of four bits, their scales and zeros."""
    return (FILES / "gptq4" / "model.safetensors").read_bytes()


def nf4_file():
    return (FILES / "bitsandbytes-nf4-nested" / "model.safetensors").read_bytes()


def tensorflow_file():
    return (FILES / "tensorflow" / "model.ckpt.index").read_bytes()


def adapter_file():
    from safetensors.torch import save

    return save({"a.lora_A.weight": torch.ones(2, 9), "a.lora_B.weight": torch.ones(8, 2)})


def distributed_file():
    """The metadata of a folder of torch.distributed."""
    import torch.distributed.checkpoint as dcp

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own
        dcp.save({"a": torch.ones(3, 4), "b": torch.arange(5.0)}, checkpoint_id=folder)
        return (Path(folder) / ".metadata").read_bytes()


def whole(changed):
    return changed


NUMBERS = (np.nan, np.inf, -np.inf, 1e38, 1e-45, 0.0, 65504.0, 1e300)
SHAPES = ((60, 50), (1, 128), (128,), (3, 3, 3, 3), (200, 2), (1, 1), (0, 4), (10, 10), (40, 30))
KINDS = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn)


def odd_numbers(random):
    """A whole safetensors file of which the numbers are odd: not finite, huge, tiny, all alike."""
    from safetensors.torch import save

    found = {}
    for name in ("a.weight", "b.weight", "attn_mask", "c.bias")[: int(random.integers(1, 5))]:
        shape = SHAPES[int(random.integers(len(SHAPES)))]
        tensor = torch.from_numpy(
            random.standard_normal(shape) * 10.0 ** int(random.choice([0, 0, 0, -20, 20, -40, 37]))
        )
        for _ in range(int(random.integers(4)) if tensor.numel() else 0):
            number = NUMBERS[int(random.integers(len(NUMBERS)))]
            where = (int(random.integers(tensor.shape[0])), ...) if random.integers(2) else ...
            if random.integers(2):
                tensor.view(-1)[int(random.integers(tensor.numel()))] = number
            else:
                tensor[where] = number
        found[name] = tensor.to(KINDS[int(random.integers(len(KINDS)))])
    return save(found)


READERS = {
    "safetensors": (safetensors_file, whole),
    "torch": (zip_file, whole),
    "old-torch": (old_file, whole),
    "pickle": (pickle_file, around_pickle),
    "npz": (npz_file, whole),
    "npz-packed": (npz_packed, whole),
    "npy": (npy_inside, around_npy),
    "gguf": (gguf_file, whole),
    "onnx": (onnx_file, whole),
    "flax": (flax_file, whole),
    "hdf5": (hdf5_file, whole),
    "gptq": (gptq_file, whole),
    "nf4": (nf4_file, whole),
    "adapter": (adapter_file, whole),
    "tensorflow": (tensorflow_file, whole),
    "distributed": (distributed_file, whole),
    "data-npy": (npy_inside, whole),
    "data-npz": (data_file, whole),
    "numbers": (safetensors_file, whole),
}
NAMES = {"tensorflow": "m.index", "distributed": "folder/.metadata", "data-npy": "m.npy", "data-npz": "m.npz"}
"""Files that are known by their name too."""


def changed(data, random):
    """One to four changes."""
    data = bytearray(data)
    for _ in range(int(random.integers(1, 5))):
        place = int(random.integers(len(data))) if data else 0
        other = place + int(random.integers(1, 64))
        kind = int(random.integers(9))
        if kind == 0 and data:
            data[place] = int(random.integers(256))
        elif kind == 1 and data:
            data[place] ^= 1 << int(random.integers(8))
        elif kind == 2:
            del data[place:]
        elif kind == 3:
            del data[place:other]
        elif kind == 4:
            data[place:place] = data[place:other]
        elif kind == 5:
            size = int(random.choice([1, 2, 4, 8]))
            number = HUGE[int(random.integers(len(HUGE)))] & ((1 << 8 * size) - 1)
            data[place : place + size] = number.to_bytes(size, random.choice(["little", "big"]))
        elif kind == 6:
            data[place:place] = WORDS[int(random.integers(len(WORDS)))]
        elif kind == 7:
            word = WORDS[int(random.integers(len(WORDS)))]
            data[place : place + len(word)] = word
        else:
            data += bytes(random.integers(0, 256, size=int(random.integers(1, 64)), dtype=np.uint8))
    return bytes(data)


def complaint(path, *, surveyed):
    """What is wrong with how this file was met; nothing where it was read or refused as it should be."""
    try:
        weights = checkpoint(path)
    except ValueError as error:
        line = said(error, LETTERS)
        return "" if line.startswith("expected") and line.isprintable() else f"said {line!r}"
    faults = {}
    for weight, tensor in readable(weights, faults):
        if tuple(tensor.shape) != weight.shape or kind_of(tensor.dtype) != weight.kind:
            return f"{weight.name} was listed otherwise than read"
    if not all(name.isprintable() for name in weights):
        return "a name that cannot be printed"
    for module in adapter(weights, {}).values():
        try:
            module.change()
        except ValueError as error:
            faults[module.module] = said(error)
    bad = [line for line in faults.values() if not line.isprintable() or len(line) > LETTERS]
    if bad:
        return f"said {bad[0]!r}"
    signal.alarm(0)  # what follows is the survey's own time
    return shown(weights) if surveyed and len(faults) < len(weights) else ""


def data_complaint(path):
    """What is wrong with how these data were met."""
    for read in (dataset, table):
        try:
            read(str(path))
        except ValueError as error:
            line = said(error, LETTERS)
            if not (line.startswith("expected") and line.isprintable()):
                return f"said {line!r}"
    return ""


def shown(weights):
    try:
        result = survey(Subject(weights=weights, name="fuzz"))
    except ValueError as error:
        return "" if str(error).startswith("expected") else f"said {error!r}"
    text = result.text() + result.html()
    bad = [f"{name}: {why}" for name, why in result.diagnosis.unchecked.items() if "Error" in why]
    if bad:
        return f"an ailment that could not be judged: {bad[0]}"
    return "" if not set(text) & {"\x1b", "\r", "\u202e", "\0"} else "raw letters in the page"


def fuzzed(name, cases, seed=0, *, surveys=50):
    """The complaints about one reader, by case; every ``surveys``-th case is surveyed and shown too."""
    make, around = READERS[name]
    base, found = make(), {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAMES.get(name, "m")
        path.parent.mkdir(exist_ok=True)
        for case in range(cases):
            random = np.random.default_rng([seed, case])
            path.write_bytes(odd_numbers(random) if name == "numbers" else around(changed(base, random)))
            signal.alarm(SECONDS)
            try:
                asked = path.parent if path.name == ".metadata" else path
                words = (
                    data_complaint(path)
                    if name.startswith("data-")
                    else complaint(asked, surveyed=name == "numbers" or case % surveys == 0)
                )
            except Exception as error:
                words = f"{type(error).__name__}: {error}"
            finally:
                signal.alarm(0)
            if words:
                found[case] = words
    return found


def late(*_):
    raise TimeoutError(f"longer than {SECONDS} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"among {', '.join(READERS)}; none: all")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, late)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bad = 0
    for name in options.readers or READERS:
        started = time.perf_counter()
        found = fuzzed(name, options.cases, options.seed)
        print(f"{name}: {len(found)} of {options.cases} wrong, {time.perf_counter() - started:.0f} s", flush=True)
        for case, words in list(found.items())[:5]:
            print(f"  case {case}: {json.dumps(words)[:300]}")
        bad += len(found)
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory: {taken:.0f} MB above the start, of {MEGABYTES} at most")
    return 1 if bad or taken > MEGABYTES else 0


if __name__ == "__main__":
    sys.exit(main())
