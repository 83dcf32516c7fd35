"""Do all workers of the data loader draw the same random numbers?"""

import numpy as np
import pytest
import torch

from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not
from theodolite.measure.dynamics._silent_facts import generator_shared


@pytest.mark.parametrize("case", cases_of("workers-alike"))
def test_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)


class Split(torch.utils.data.Dataset):
    """It keeps the generator that it has drawn its order with."""

    def __init__(self):
        self.noise = np.random.default_rng(0)
        self.order = self.noise.permutation(8)

    def __len__(self):
        return len(self.order)

    def __getitem__(self, index):
        return torch.tensor([float(self.order[index])])


class Noisy(Split):
    def __getitem__(self, index):
        return self.noised(super().__getitem__(index))

    def noised(self, sample):
        return sample + float(self.noise.normal())


@pytest.mark.parametrize("kind", [Split, Noisy])
def test_a_generator_that_no_sample_is_drawn_with_does_no_harm(kind):
    assert bool(generator_shared(torch.utils.data.DataLoader(kind(), num_workers=2))) == (kind is Noisy)
