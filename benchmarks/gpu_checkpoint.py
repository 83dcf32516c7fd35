"""A survey of a checkpoint of 8 billion parameters in bf16 on a GPU, and an estimate for 70 billion from one shard.

    python benchmarks/gpu_checkpoint.py [--folder FOLDER] [--threads 6] [--layers 32] [--device cuda]

Made on the fly: the shapes of Llama 3 (8B), random weights with a few planted directions, in safetensors shards of eight
layers. Each survey runs in a process of its own, so that its peak memory is its own: first one tensor at a time, where every
part is timed by itself (reading, products, eigenvalues, entries, fits), then several at once, as a survey does. The 70B
estimate is one shard of two of its layers, times forty, with its two tables of 128,256 rows measured beside it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

import theodolite as th
from theodolite.instruments._common import spectra, tails
from theodolite.io import checkpoints, overlapped_work
from theodolite.measure.spectra import eigenvalues

WIDTHS = {"8B": (4096, 1024, 14336), "70B": (8192, 1024, 28672)}
"""Width of the model, of keys and values, and of the feed-forward."""

WORDS, LAYERS_A_SHARD, LAYERS_70B = 128_256, 8, 80


def peak_of_this_process() -> float:
    """Gigabytes of memory at the peak. getrusage would count what the parent held when it made this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1e6


def matrices(kind: str, layer: int) -> dict[str, tuple[int, int]]:
    """The matrices of one layer."""
    d, k, f = WIDTHS[kind]
    own = {"q": (d, d), "k": (k, d), "v": (k, d), "o": (d, d)}
    shapes = {f"model.layers.{layer}.self_attn.{name}_proj.weight": shape for name, shape in own.items()}
    inner = {"gate": (f, d), "up": (f, d), "down": (d, f)}
    return shapes | {f"model.layers.{layer}.mlp.{name}_proj.weight": shape for name, shape in inner.items()}


def drawn(shape: tuple[int, int], generator: torch.Generator, device: str) -> torch.Tensor:
    """Noise of the usual size with four directions on top, in bf16."""
    noise = torch.randn(*shape, generator=generator, device=device) * 0.02
    left, right = (torch.randn(size, 4, generator=generator, device=device) for size in shape)
    return (noise + 0.002 * left @ right.T).to(torch.bfloat16).cpu()


def write(folder: Path, kind: str, layers: int, *, tables: bool, words: int, device: str) -> int:
    """Shards of some layers each; the number of parameters."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator(device=device).manual_seed(0)
    width, total = WIDTHS[kind][0], 0
    shards = [range(start, min(layers, start + LAYERS_A_SHARD)) for start in range(0, layers, LAYERS_A_SHARD)]
    for number, chosen in enumerate(shards):
        shapes = {name: shape for layer in chosen for name, shape in matrices(kind, layer).items()}
        if tables and number == 0:
            shapes = {"model.embed_tokens.weight": (words, width)} | shapes
        if tables and number == len(shards) - 1:
            shapes |= {"lm_head.weight": (words, width)}
        held = {name: drawn(shape, generator, device) for name, shape in shapes.items()}
        held |= {f"model.layers.{layer}.input_layernorm.weight": torch.ones(width).bfloat16() for layer in chosen}
        save_file(held, folder / f"model-{number:05d}.safetensors")
        total += sum(tensor.numel() for tensor in held.values())
    return total


class Clock:
    """Seconds by part, summed over threads; the device is waited for before and after each."""

    def __init__(self, device: str) -> None:
        self.device, self.seconds = device, defaultdict[str, float](float)

    def timing(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed."""

        def timed(*args: Any, **keywords: Any) -> Any:
            started = self._waited()
            try:
                return function(*args, **keywords)
            finally:
                self.seconds[part] += self._waited() - started

        return timed

    def _waited(self) -> float:
        if self.device.startswith("cuda"):
            torch.cuda.current_stream().synchronize()
        return time.perf_counter()


def watched(clock: Clock) -> None:
    """Put the clock around reading, products, eigenvalues, entries and fits; these do not contain each other."""
    read = checkpoints._OnDevice.__call__
    checkpoints._OnDevice.__call__ = lambda self: clock.timing("reading", lambda: read(self))()  # type: ignore[method-assign]
    eigenvalues._gram = clock.timing("products", eigenvalues._gram)
    torch.linalg.eigvalsh = clock.timing("eigenvalues", torch.linalg.eigvalsh)
    tails.entry_kurtosis = clock.timing("entries", tails.entry_kurtosis)
    tails.power_law = clock.timing("fits", tails.power_law)
    tails.marchenko_pastur_bulk = clock.timing("fits", tails.marchenko_pastur_bulk)
    tails.structure = clock.timing("fits", tails.structure)
    spectra.weight_matrices = clock.timing("cutting", spectra.weight_matrices)


def surveyed(folder: Path, device: str, threads: int, *, split: bool) -> dict[str, Any]:
    """One survey with its page in this process."""
    overlapped_work.THREADS = threads
    torch.linalg.eigvalsh(torch.eye(64, dtype=torch.float64, device=device))  # handles are made here
    clock = Clock(device)
    if split:
        watched(clock)
    started = time.perf_counter()
    found = th.survey(folder, device=device, budget=None)
    read = time.perf_counter()
    page = folder.parent / "page.html"
    found.html(page)
    done = time.perf_counter()
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.startswith("cuda") else 0.0
    return {
        "survey": read - started,
        "page": done - read,
        "page_mb": page.stat().st_size / 1e6,
        "host_gb": peak_of_this_process(),
        "device_gib": peak,
        "readings": len(found.readings),
        "faults": len(found.faults),
        "split": {part: round(seconds, 2) for part, seconds in clock.seconds.items()},
    }


def apart(folder: Path, options: argparse.Namespace, threads: int, *, split: bool = False) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", str(folder), "--device", options.device, "--threads", str(threads)]
    done = subprocess.run([*command, *(["--split"] if split else [])], stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{folder.name}, {threads} at once: survey {row['survey']:.1f} s, page {row['page']:.1f} s ({row['page_mb']:.2f} MB), "
        f"{row['readings']} readings, host {row['host_gb']:.2f} GB, device {row['device_gib']:.1f} GiB"
        + (f"\n  split, s: {row['split']}" if split else ""),
        flush=True,
    )
    return row


def main() -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=overlapped_work.THREADS)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--words", type=int, default=WORDS)
    parser.add_argument("--shrink", type=int, default=1, help="divide widths, for a rehearsal")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--split", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(surveyed(options.one, options.device, options.threads, split=options.split)))
        return 0
    for kind, widths in WIDTHS.items():
        WIDTHS[kind] = tuple(width // options.shrink for width in widths)  # type: ignore[assignment]
    root = Path(tempfile.mkdtemp(dir=options.folder))
    made = {"words": options.words, "device": options.device}
    try:
        started = time.perf_counter()
        total = write(root / "8B", "8B", options.layers, tables=True, **made)
        print(f"{total / 1e9:.2f} billion parameters written in {time.perf_counter() - started:.0f} s", flush=True)
        apart(root / "8B", options, 1, split=True)
        apart(root / "8B", options, options.threads)
        shutil.rmtree(root / "8B")
        layers = write(root / "70B shard", "70B", 2, tables=False, **made)
        shard = apart(root / "70B shard", options, options.threads)
        whole = write(root / "70B tables", "70B", 1, tables=True, **made)
        tables = apart(root / "70B tables", options, options.threads)
        seconds = {key: LAYERS_70B / 2 * shard[key] + tables[key] for key in ("survey", "page")}
        print(
            f"70B from {layers / 1e9:.2f} and {whole / 1e9:.2f} billion parameters: survey {seconds['survey'] / 60:.1f} min, "
            f"page {seconds['page'] / 60:.1f} min"
        )
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
