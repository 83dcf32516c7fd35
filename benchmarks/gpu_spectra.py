"""Spectra on a GPU: one large matrix, an estimate for a checkpoint of 70 billion parameters, a survey of a model in bf16.

    python benchmarks/gpu_spectra.py

The estimate adds up the matrices of a Llama-like 70B checkpoint (80 layers, width 8192, 28672 in the feed-forward, grouped
keys and values of 1024), each timed here once at its own shape. The survey itself is
``theodolite survey FOLDER --device cuda --instrument weight-spectrum``.
"""

from __future__ import annotations

import time

import torch

import theodolite as th
from theodolite.measure.spectra import gram_eigenvalues, marchenko_pastur_bulk, power_law

SHAPES = {(8192, 8192): 160, (1024, 8192): 160, (28672, 8192): 240, (128256, 8192): 2}
"""Shapes of the matrices of a 70B checkpoint and how many there are of each."""


def timed(function):
    torch.cuda.synchronize()
    start = time.perf_counter()
    value = function()
    torch.cuda.synchronize()
    return value, time.perf_counter() - start


def matrices() -> None:
    generator = torch.Generator(device="cuda").manual_seed(0)
    gram_eigenvalues(torch.randn(512, 512, device="cuda", generator=generator))  # handles are made here
    total = 0.0
    print(f"{'shape':>16} {'count':>6} {'eigenvalues, s':>15} {'fits, s':>8} {'peak GiB':>9} {'largest / edge':>15}")
    for (rows, columns), count in SHAPES.items():
        torch.cuda.reset_peak_memory_stats()
        matrix = torch.randn(rows, columns, device="cuda", generator=generator, dtype=torch.float32).to(torch.bfloat16)
        values, seconds = timed(lambda m=matrix: gram_eigenvalues(m))
        values, again = timed(lambda m=matrix: gram_eigenvalues(m))
        seconds = min(seconds, again)
        found = values.cpu().numpy()
        start = time.perf_counter()
        power_law(found)
        bulk = marchenko_pastur_bulk(found, rows, columns)
        fits = time.perf_counter() - start
        total += count * (seconds + fits)
        peak = torch.cuda.max_memory_allocated() / 2**30
        ratio = found[-1] / bulk.high
        print(f"{rows:>8} x {columns:<5} {count:>6} {seconds:>15.3f} {fits:>8.3f} {peak:>9.2f} {ratio:>15.4f}")
        del matrix, values
    print(f"all {sum(SHAPES.values())} matrices of a 70B checkpoint, reading aside: {total / 60:.1f} minutes")


def survey() -> None:
    torch.manual_seed(0)
    layers = [m for _ in range(6) for m in (torch.nn.Linear(512, 512), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(512, 10)).to("cuda", torch.bfloat16).train()
    th.initialize_(model, "gelu")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    x, y = torch.randn(256, 512), torch.arange(256) % 10
    random = torch.cuda.get_rng_state(), torch.get_rng_state()
    result = th.survey(model, data=(x, y), loss=torch.nn.functional.cross_entropy, lr=0.1)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(random[0], torch.cuda.get_rng_state())
    assert torch.equal(random[1], torch.get_rng_state())
    assert model.training
    print(result.text(width=130))


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), torch.__version__)
    matrices()
    survey()
