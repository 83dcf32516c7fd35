"""What a script does in vain, and what only looks like it."""

import gc

import pytest
import torch
from torch import nn

from theodolite.measure.dynamics._silent_facts import is_unrelated
from theodolite.verbs.running.slips import Slips


def loaded(module, state):
    slips = Slips({})

    def around(*given):  # as the two wrappers of an observer
        slips.loads(*given)

    (lambda *given: around(*given))(module, state)
    return slips


def test_a_checkpoint_that_is_perturbed_or_shrunk_is_no_other_one():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 20), nn.Linear(20, 4))
    for change in (lambda p: 0.4 * p + 0.02 * torch.randn(p.shape), lambda p: p.bfloat16().float(), lambda p: -p):
        slips = loaded(model, model.state_dict())
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(change(p))
        slips.steps()
        assert not slips.silent
    slips = loaded(model, model.state_dict())
    nn.init.normal_(model[0].weight)  # a part of it is drawn anew on purpose
    slips.steps()
    assert not slips.silent


def test_few_entries_are_not_told_from_others():
    one = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    assert not is_unrelated(one, one) and not is_unrelated(one, one.flip(0))


def test_a_module_that_lives_on_or_dies_later_was_perhaps_used():
    model = nn.Linear(20, 20)
    slips = loaded(model, model.state_dict())
    kept = [model.weight]
    del model
    gc.collect()
    assert kept and not slips.silent


@pytest.mark.parametrize("kept", [True, False])
def test_parameters_that_live_on_are_not_made_anew(kept):
    slips, beside = Slips({}), []
    for _ in range(8):
        layer = nn.Linear(3, 3)
        beside += [layer] if kept else []
        slips.pulls(layer.parameters(), frozenset())
        del layer
    assert bool(slips.silent) is not kept


def test_single_values_and_passes_of_other_shapes_are_no_batches_that_are_left_out():
    slips = Slips({})
    for unused in (0, 2, 0, 5, 0, 0, 3, 4):
        slips.left_out(unused)
    assert not slips.silent
