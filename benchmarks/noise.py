"""How often noise of ten kinds is called structured, and planted directions are found: 200 matrices of each.

    python benchmarks/noise.py [--matrices 200] [KIND ...]

At 5 % a matrix, at most 5 % of noise may be called so. Planted are one, two or four directions at 1.2, 1.5 and 2 times the
strength from which on a Gaussian matrix shows them (Baik, Ben Arous, Péché), under Gaussian entries and under Student's t of 5
degrees. Beside it what the band of heavy-tailed self-regularisation (alpha in 2 to 6) would call trained.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import torch

from theodolite.instruments._common import tails
from theodolite.instruments._common.tails import tail_of
from theodolite.measure.spectra import gram_eigenvalues, power_law

SHAPES = ((160, 96), (96, 160), (256, 64), (128, 128))


def quantised(w, levels):
    scale = np.abs(w).max() / levels
    return np.round(w / scale) * scale


def shuffled(random, shape):
    """Entries as training leaves them, a few directions and all, in random places."""
    w = random.normal(size=shape) + 0.75 * np.outer(random.normal(size=shape[0]) ** 3, random.normal(size=shape[1]))
    return random.permutation(w.ravel()).reshape(shape)


KINDS = {
    "Gaussian": lambda random, shape: random.normal(size=shape),
    "uniform": lambda random, shape: random.uniform(-1, 1, size=shape),
    "nn.Linear": lambda random, shape: random.uniform(-1, 1, size=shape) / math.sqrt(shape[1]),
    "Student t, 5 degrees": lambda random, shape: random.standard_t(5, size=shape),
    "Student t, 3 degrees": lambda random, shape: random.standard_t(3, size=shape),
    "sparse, 10 %": lambda random, shape: random.normal(size=shape) * (random.random(shape) < 0.1),
    "bfloat16": lambda random, shape: torch.from_numpy(random.normal(size=shape)).bfloat16().double().numpy(),
    "8 bits": lambda random, shape: quantised(random.normal(size=shape), 127),
    "4 bits": lambda random, shape: quantised(random.normal(size=shape), 7),
    "trained, shuffled": shuffled,
}


def called(matrix, name):
    values = gram_eigenvalues(matrix)
    tail = tail_of(matrix, values.numpy(), name=name)
    usual = power_law(values, rule="weightwatcher").alpha
    return tail.p_value <= 0.05, 2 <= usual <= 6


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
    options = parser.parse_args()
    tails.REFITS = 0  # the goodness of a power law is no part of the verdict
    wanted = options.kinds or [*KINDS, "planted"]
    print(f"{'noise':22} called structured  WeightWatcher: alpha in 2 to 6")
    for name in [kind for kind in wanted if kind in KINDS]:
        ours, usual = shares(KINDS[name], options.matrices, name)
        print(f"{name:22} {ours:17.1%}  {usual:.1%}", flush=True)
    if "planted" in wanted:
        print("\nplanted directions     strength  called structured")
        for heavy in (False, True):
            for directions in (1, 2, 4):
                for strength in (1.2, 1.5, 2.0):

                    def draw(random, shape, d=directions, s=strength, h=heavy):
                        return planted(random, shape, d, s, h)

                    share, _ = shares(draw, options.matrices // 4, f"planted {directions} {strength} {heavy}")
                    entries = "Student t" if heavy else "Gaussian"
                    print(f"{directions} in {entries:17} {strength:8}  {share:.1%}", flush=True)


if __name__ == "__main__":
    main()
