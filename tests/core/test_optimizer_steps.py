"""Steps without torch's optimizers are theirs to the last digit."""

import pytest
import torch

from theodolite.core.optimizer_steps import AdamDescent, Descent, made_optimizer


@pytest.mark.parametrize(("own", "torchs"), [(Descent, torch.optim.SGD), (AdamDescent, torch.optim.Adam)])
def test_steps_are_those_of_torch(own, torchs):
    ends = []
    for kind in (own, torchs):
        torch.manual_seed(0)
        free = [torch.randn(5, 3).requires_grad_(), torch.randn(3).requires_grad_(), torch.randn(2).requires_grad_()]
        walker = kind(free, lr=0.3)
        for step in range(20):
            walker.zero_grad()
            value = (free[0].sin() * free[1]).square().sum() + (step % 3 > 0) * free[1].sum()
            torch.autograd.backward(value)  # nothing of the third
            walker.step()
        ends.append(free)
    assert all(torch.equal(one, other) for one, other in zip(*ends, strict=True))


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.LBFGS])
def test_an_optimizer_is_made_as_its_constructor_makes_it(kind):
    free = [torch.randn(3).requires_grad_()]
    own, other = made_optimizer(kind, free, lr=0.5), kind(free, lr=0.5)
    assert type(own) is kind and own.defaults == other.defaults and str(own) == str(other)
    assert vars(own).keys() == vars(other).keys() and own.step.__func__ is other.step.__func__
