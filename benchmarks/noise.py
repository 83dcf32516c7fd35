"""How often noise of eleven kinds is called structured, and planted directions are found: 200 matrices of each.

    python benchmarks/noise.py [--matrices 200] [--peers .venv-peers] [KIND ...]

At 5 % a matrix, at most 5 % of noise may be called so. Planted are one, two or four directions at 1.2, 1.5 and 2 times the
strength from which on a Gaussian matrix shows them (Baik, Ben Arous, Péché), under Gaussian entries and under Student's t of 5
degrees. Beside it the test by the spectrum alone, as it was before the ranks of heavy entries came, on the same matrices, and
what the band of heavy-tailed self-regularization (WeightWatcher's alpha in 2 to 6) would call trained. Trained weights are those
of all-MiniLM-L6-v2 from the environment of the peers: blocks of its matrices, their entries in random places.
"""

from __future__ import annotations

import argparse
import math
from functools import cache
from pathlib import Path

import numpy as np
import torch
from checkpoints import ROOT, minilm

from theodolite.instruments._common import tails
from theodolite.instruments._common.tails import tail_of
from theodolite.measure.spectra import gram_eigenvalues, power_law
from theodolite.theory.spectra import structure

SHAPES = ((160, 96), (96, 160), (256, 64), (128, 128))


def quantized(w, levels):
    scale = np.abs(w).max() / levels
    return np.round(w / scale) * scale


def shuffled(random, shape):
    """Entries as training leaves them, a few directions and all, in random places."""
    w = random.normal(size=shape) + 0.75 * np.outer(random.normal(size=shape[0]) ** 3, random.normal(size=shape[1]))
    return random.permutation(w.ravel()).reshape(shape)


@cache
def trained_matrices(path):
    from safetensors.numpy import load_file

    return [w for w in load_file(path).values() if w.ndim == 2 and min(w.shape) >= 256]


def trained(path):
    def draw(random, shape):
        matrices = trained_matrices(path)
        w = matrices[int(random.integers(len(matrices)))]
        row, column = (int(random.integers(whole - part + 1)) for whole, part in zip(w.shape, shape, strict=True))
        block = w[row : row + shape[0], column : column + shape[1]].astype(np.float64)
        return random.permutation(block.ravel()).reshape(shape)

    return draw


KINDS = {
    "Gaussian": lambda random, shape: random.normal(size=shape),
    "uniform": lambda random, shape: random.uniform(-1, 1, size=shape),
    "nn.Linear": lambda random, shape: random.uniform(-1, 1, size=shape) / math.sqrt(shape[1]),
    "Student t, 5 degrees": lambda random, shape: random.standard_t(5, size=shape),
    "Student t, 3 degrees": lambda random, shape: random.standard_t(3, size=shape),
    "sparse, 10 %": lambda random, shape: random.normal(size=shape) * (random.random(shape) < 0.1),
    "bfloat16": lambda random, shape: torch.from_numpy(random.normal(size=shape)).bfloat16().double().numpy(),
    "8 bits": lambda random, shape: quantized(random.normal(size=shape), 127),
    "4 bits": lambda random, shape: quantized(random.normal(size=shape), 7),
    "directions, shuffled": shuffled,
}


def called(matrix, name):
    """Whether it is called structured, whether the spectrum alone would call it so, and whether WeightWatcher's band would."""
    values = gram_eigenvalues(matrix)
    tail = tail_of(matrix, values.numpy(), name=name)
    alone = structure(*matrix.shape, alpha=tail.fit.alpha, bulk_distance=tail.bulk.distance, excess=tail.bulk.excess)
    usual = power_law(values, rule="weightwatcher").alpha
    return tail.p_value <= 0.05, alone.at(0.05), 2 <= usual <= 6


def planted(random, shape, directions, strength, heavy):
    """Noise of unit variance, and directions whose singular value is so many times (nm)^(1/4), the threshold."""
    noise = random.standard_t(5, size=shape) / math.sqrt(5 / 3) if heavy else random.normal(size=shape)
    left = np.linalg.qr(random.normal(size=(shape[0], directions)))[0]
    right = np.linalg.qr(random.normal(size=(shape[1], directions)))[0]
    return noise + strength * (shape[0] * shape[1]) ** 0.25 * left @ right.T


def shares(draw, matrices, name):
    random = np.random.default_rng([len(name), *name.encode()])
    found = [
        called(torch.from_numpy(draw(random, SHAPES[place % len(SHAPES)])), f"{name} {place}")
        for place in range(matrices)
    ]
    return [sum(column) / matrices for column in zip(*found, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"among {', '.join(KINDS)}, planted; none: all".replace("%", "%%")
    )
    parser.add_argument("--matrices", type=int, default=200)
    parser.add_argument("--peers", type=Path, default=ROOT / ".venv-peers")
    options = parser.parse_args()
    tails.REFITS = 0  # the goodness of a power law is no part of the verdict
    kinds = dict(KINDS)
    if minilm(options.peers).exists():
        kinds["trained, shuffled"] = trained(minilm(options.peers))
    wanted = options.kinds or [*kinds, "planted"]
    print(f"{'noise':30} called structured  by the spectrum alone  alpha in 2 to 6")
    for name in [kind for kind in wanted if kind in kinds]:
        row(name, kinds[name], options.matrices)
    if "planted" in wanted:
        print(f"\n{'planted directions, strength':30} called structured  by the spectrum alone  alpha in 2 to 6")
        for heavy in (False, True):
            for directions in (1, 2, 4):
                for strength in (1.2, 1.5, 2.0):

                    def draw(random, shape, d=directions, s=strength, h=heavy):
                        return planted(random, shape, d, s, h)

                    row(f"{directions} in {'Student t' if heavy else 'Gaussian'}, {strength}", draw, options.matrices)


def row(name, draw, matrices):
    now, alone, usual = shares(draw, matrices, name)
    print(f"{name:30} {now:17.1%} {alone:22.1%} {usual:16.1%}", flush=True)


if __name__ == "__main__":
    main()
