"""Torch without loading it, and arrays and tensors alike."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from theodolite.core.lazy_torch import array_of, dtype_of, is_elsewhere, is_module, is_tensor, kind_of, spacing


def test_nothing_is_a_tensor_while_torch_is_not_loaded():
    code = (
        "import sys, numpy as np; from theodolite.core.lazy_torch import is_tensor, is_module, array_of, kind_of, torch; "
        "assert not is_tensor(np.ones(2)) and not is_module(3) and array_of(np.ones(2)).sum() == 2; "
        "assert kind_of(np.dtype('int8')) == 'int8' and 'torch' not in sys.modules; "
        "torch.ones(1); assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16", "float8_e5m2"])
def test_numbers_outlive_the_way_to_numpy_and_spacings_are_torch_s(kind):
    values = torch.tensor([0.5, -2.0, 1.0]).to(dtype_of(kind))
    assert array_of(values).tolist() == [0.5, -2.0, 1.0]
    assert kind_of(values.dtype) == kind
    assert spacing(values.dtype) == torch.finfo(values.dtype).eps


def test_kinds_of_things():
    assert is_tensor(torch.ones(1)) and not is_tensor(np.ones(1))
    assert is_module(torch.nn.Linear(1, 1)) and not is_module(torch.ones(1))
    assert is_elsewhere(torch.ones(1, device="meta")) and not is_elsewhere(torch.ones(1)) and not is_elsewhere(3)
