"""The drift of a kernel in words that its numbers decide."""

import pytest
import torch

from theodolite.instruments._common.drift import drift_reading

START = torch.diag(torch.tensor([3.0, 1.0, 0.5], dtype=torch.float64))


@pytest.mark.parametrize(
    ("kernel", "measured", "word"),
    [
        (1.05 * START, 0.05, "Lazy"),
        (3.0 * START, 2.0, "changed direction: the features changed little"),
        (START.flip(0, 1), None, "is learning features"),
        (torch.zeros_like(START), 1.0, "the network is dead"),
    ],
)
def test_what_a_kernel_did_is_said(kernel, measured, word):
    reading = drift_reading(kernel, START)
    assert word in reading.meaning
    expected = float((kernel - START).norm() / START.norm())
    assert reading.measured == pytest.approx(expected if measured is None else measured)
