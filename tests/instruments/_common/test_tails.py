"""Noise of any law is not called trained, planted directions are."""

import math

import numpy as np
import pytest
import torch

from theodolite.instruments._common import tails
from theodolite.instruments._common.tails import tail_of
from theodolite.measure.spectra import gram_eigenvalues

MATRICES, SHAPE = 40, (160, 96)


def quantized(w, levels):
    scale = np.abs(w).max() / levels
    return np.round(w / scale) * scale


def shuffled(random):
    """Entries as training leaves them, a few directions and all, in random places."""
    w = random.normal(size=SHAPE) + 3 * np.outer(random.normal(size=SHAPE[0]) ** 3, random.normal(size=SHAPE[1])) / 4
    return random.permutation(w.ravel()).reshape(SHAPE)


LAWS = {
    "gauss": lambda random: random.normal(size=SHAPE),
    "uniform": lambda random: random.uniform(-1, 1, size=SHAPE),
    "t5": lambda random: random.standard_t(5, size=SHAPE),
    "t3": lambda random: random.standard_t(3, size=SHAPE),
    "sparse": lambda random: random.normal(size=SHAPE) * (random.random(SHAPE) < 0.1),
    "8 bits": lambda random: quantized(random.normal(size=SHAPE), 127),
    "4 bits": lambda random: quantized(random.normal(size=SHAPE), 7),
    "shuffled": shuffled,
}


def called(matrix, name):
    return tail_of(matrix, gram_eigenvalues(matrix).numpy(), name=name).p_value <= 0.05


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(tails, "REFITS", 0)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("law", LAWS)
def test_noise_of_any_law_is_called_structured_in_at_most_one_of_twenty(law):
    random = np.random.default_rng(7)
    matrices = [torch.from_numpy(LAWS[law](random)) for _ in range(MATRICES)]
    assert sum(called(matrix, f"{law} {k}") for k, matrix in enumerate(matrices)) <= MATRICES // 20


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("heavy", [False, True])
def test_planted_directions_are_found(heavy):
    """At three times the threshold in every matrix, also among heavy entries."""
    random = np.random.default_rng(8)
    n, p = SHAPE
    for k in range(10):
        noise = random.standard_t(5, size=SHAPE) / math.sqrt(5 / 3) if heavy else random.normal(size=SHAPE)
        u, v = random.normal(size=n), random.normal(size=p)
        size = math.sqrt(3 * math.sqrt(p / n) * n)
        assert called(torch.from_numpy(noise + size * np.outer(u / np.linalg.norm(u), v / np.linalg.norm(v))), str(k))
