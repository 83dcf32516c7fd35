"""A tensor in hand is a tensor, whether it was read as one or as an array."""

import numpy as np
import torch

from theodolite.io.weight_parts import InHand, WeightPart


def test_arrays_become_tensors_of_the_same_numbers():
    held = InHand("w", np.arange(6.0).reshape(2, 3), None, None, {"w": (2, 3)})
    assert torch.equal(held.tensor, torch.arange(6.0, dtype=torch.float64).reshape(2, 3)) and held.start is None
    own = torch.ones(2)
    assert InHand("w", None, own, None, {}).start is own


def test_a_part_finds_in_what_is_in_hand():
    part = WeightPart(lambda held: ({"sum": float(held.tensor.sum())}, {}), version=1)
    assert part.find(InHand("w", np.ones(3), None, None, {})) == ({"sum": 3.0}, {}) and not part.uses_start
