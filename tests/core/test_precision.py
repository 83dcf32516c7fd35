"""Products are exact within, and made as before after."""

import pytest
import torch

from theodolite.core.precision import exact_products


def test_the_setting_is_highest_within_and_restored_after_an_error_too():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(KeyError), exact_products():
            assert torch.get_float32_matmul_precision() == "highest"
            raise KeyError
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
