"""Is the optimizer made anew in every step?"""

import pytest
import torch

from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not


@pytest.mark.parametrize("case", cases_of("optimizer-renewed"))
def test_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)


@pytest.mark.parametrize("case", cases_of("optimizer-renewed"))
def test_it_is_named_beside_a_larger_optimizer_that_takes_no_step(case):
    """As in a notebook in which an earlier network lives on: those of one step each are counted together."""
    earlier = torch.optim.Adam(torch.nn.Linear(100, 100).parameters())
    assert is_named_and_its_twin_is_not(case)
    assert earlier.param_groups
