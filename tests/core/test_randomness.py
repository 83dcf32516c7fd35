"""Randomness by seed and case alone."""

import numpy as np
import torch

from theodolite.core.randomness import case_generator, case_random, case_seed, numpy_random


def test_order_of_the_keywords_does_not_matter_and_everything_else_does():
    seed = case_seed(0, {"n": 3, "p": 0.5})
    assert seed == case_seed(0, {"p": 0.5, "n": 3})
    others = [case_seed(1, {"n": 3, "p": 0.5}), case_seed(0, {"n": 4, "p": 0.5}), case_seed(0, {"n": "3", "p": 0.5})]
    assert len({seed, *others}) == 4 and all(0 <= s < 2**56 for s in others)


def test_numpy_s_generator_is_the_one_that_torch_s_would_make():
    for case in ({"a": 1}, {"a": 2}, {"name": "x", "size": (3, 4)}):
        alone, through = case_random(7, case), numpy_random(case_generator(7, case))
        assert np.array_equal(alone.random(5), through.random(5))


def test_numpy_s_own_generator_is_handed_through():
    own = np.random.default_rng(0)
    assert numpy_random(own) is own
    generator = torch.Generator().manual_seed(0)
    assert numpy_random(generator).random() != numpy_random(generator).random()
