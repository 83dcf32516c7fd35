"""What is checked before a number is trusted: silent on what is right, one line on what is not."""

import numpy as np
import pytest
import torch

from theodolite.core.checks import (
    NotFiniteError,
    check_finite,
    check_forward,
    check_inputs,
    check_loss,
    check_made,
    tensors_in,
)
from theodolite.io.batches import Batch

BATCH = Batch((torch.ones(4, 3),), {}, torch.zeros(4))


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.int8])
def test_finite_weights_of_any_type_pass(kind):
    check_finite("w", torch.ones(5).to(kind))


@pytest.mark.parametrize("values", [torch.tensor([1.0, torch.nan, torch.inf]), np.array([1.0, np.nan, -np.inf])])
def test_values_that_are_not_finite_are_counted(values):
    with pytest.raises(NotFiniteError, match="got 2 of 3 values of w NaN or infinite"):
        check_finite("w", values)


def test_a_nan_behind_the_first_block_is_found():
    long = np.zeros(2**18 + 3)
    long[-1] = np.nan
    with pytest.raises(NotFiniteError, match="1 of 262147"):
        check_finite("w", long)


def test_weights_without_values_are_named():
    with pytest.raises(ValueError, match="meta device"):
        check_made("w", torch.empty(3, device="meta"))
    with pytest.raises(ValueError, match="lazy module"):
        check_made("w", torch.nn.LazyLinear(2).weight)


def test_a_model_is_run_twice_and_what_differs_is_told():
    assert check_forward(lambda batch: batch.inputs[0], BATCH) == ""
    answers = iter((torch.ones(2), torch.full((2,), 1.5)))
    assert "differ by up to 0.5 with outputs of 1" in check_forward(lambda batch: next(answers), BATCH)
    with pytest.raises(NotFiniteError, match="finite outputs"):
        check_forward(lambda batch: torch.full((2,), torch.nan), BATCH)
    with pytest.raises(ValueError, match="returns a tensor"):
        check_forward(lambda batch: "words", BATCH)
    with pytest.raises(ValueError, match="got RuntimeError: "):
        check_forward(lambda batch: batch.inputs[0] @ torch.ones(7), BATCH)


def test_a_loss_is_one_finite_number():
    check_loss(lambda batch: batch.inputs[0].mean(), BATCH)
    with pytest.raises(NotFiniteError, match="one finite number"):
        check_loss(lambda batch: torch.tensor(torch.nan), BATCH)
    with pytest.raises(ValueError, match="reduction='mean'"):
        check_loss(lambda batch: batch.inputs[0], BATCH)


def test_the_batch_and_the_input_that_are_not_finite_are_named():
    check_inputs(BATCH, 1)
    with pytest.raises(NotFiniteError, match="1 of 2 values of mask NaN or infinite in batch number 3"):
        check_inputs(Batch((), {"mask": torch.tensor([1.0, torch.nan])}, None), 3)


def test_tensors_are_found_however_they_are_nested():
    a, b, c = torch.ones(3).unbind()
    assert list(tensors_in({"x": [a, (b, "no")], "y": {"z": c}, "n": 3})) == [a, b, c]
