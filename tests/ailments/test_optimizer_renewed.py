"""Is the optimizer made anew in every step?"""

import pytest
import torch
from torch.nn.functional import mse_loss

import theodolite as th
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


@pytest.mark.parametrize("once", [True, False])
def test_a_watch_on_an_optimizer_that_never_steps_sees_the_others_of_its_parameters(once):
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    model = torch.nn.Linear(3, 1)
    watch = th.Watch(
        model, optimizer=torch.optim.Adam(model.parameters()), probe=(x, x[:, :1]), loss=mse_loss, every=100
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(300):
        optimizer = optimizer if once else torch.optim.Adam(model.parameters(), 0.01)
        optimizer.zero_grad()
        mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()
        watch(step)
    names = {finding.name for finding in watch.diagnosis.findings if finding.severity != "note"}
    assert "step-without-effect" not in names
    assert ("optimizer-renewed" in names) is not once
