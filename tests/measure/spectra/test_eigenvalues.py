"""Condition numbers against the definition."""

import pytest
import torch

from theodolite.measure.spectra import condition_number


def test_the_condition_number_of_a_complex_matrix_keeps_its_imaginary_part():
    assert condition_number(torch.tensor([[4j, 0], [0, 2]])) == pytest.approx(2.0)
    assert condition_number(torch.tensor([[1j, 0], [3, 1]])) == pytest.approx((11 + 117**0.5) / 2)
