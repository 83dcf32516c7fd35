"""The same weights in every format and order of keys: are they given the same rows and findings?

    python benchmarks/formats.py CHECKPOINT ...

Each checkpoint is written again as safetensors, torch (both of its formats) and npz, with its keys in order and in reverse, in a
folder of its own, and surveyed. Whatever differs from the first is named.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

import theodolite as th
from theodolite.io.checkpoints import checkpoint
from theodolite.io.weights import readable


def tensors(path):
    """What can be read, in types that all formats have."""
    found = {}
    for weight, tensor in readable(checkpoint(path), {}):
        plain = torch.as_tensor(tensor)
        found[weight.name] = (
            (plain.float() if plain.dtype in (torch.bfloat16, torch.float16) else plain).contiguous().clone()
        )
    return found


def written(state, folder):
    """A path for each format."""
    save_file(state, folder / "m.safetensors")
    torch.save(state, folder / "m.pt")
    torch.save(state, folder / "old.pt", _use_new_zipfile_serialization=False)
    np.savez(folder / "m.npz", **{name: tensor.numpy() for name, tensor in state.items()})
    return [folder / name for name in ("m.safetensors", "m.pt", "old.pt", "m.npz")]


def told(path):
    """The rows and findings, in an order of their own."""
    result = th.survey(str(path))
    rows = sorted((r.quantity, r.where, f"{r.measured:.9g}", f"{r.stderr:.6g}", r.status) for r in result.readings)
    findings = sorted((f.name, f.severity, f.where, f.says) for f in result.diagnosis.findings)
    return rows, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkpoints", nargs="+", type=Path)
    bad = 0
    for path in parser.parse_args().checkpoints:
        began, first = time.perf_counter(), None
        state = tensors(path)
        for reverse in (False, True):
            ordered = dict(sorted(state.items(), reverse=reverse))
            with tempfile.TemporaryDirectory() as folder:
                for file in written(ordered, Path(folder)):
                    here = told(file)
                    first = first or here
                    for part, mine, other in zip(("row", "finding"), here, first, strict=True):
                        for line in sorted(set(mine) ^ set(other))[:3]:
                            bad += 1
                            print(f"{path.name}, {file.name}{' reversed' if reverse else ''}: {part} {line}")
        rows, findings = first
        print(
            f"{path.name}: {len(state)} tensors, {len(rows)} rows, {len(findings)} findings "
            f"({', '.join(sorted({f'{n}: {s}' for n, s, *_ in findings})) or 'none'}), 8 files, "
            f"{time.perf_counter() - began:.0f} s",
            flush=True,
        )
    print(f"{bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
