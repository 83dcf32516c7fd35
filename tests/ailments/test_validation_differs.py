"""Do the validation data come from another distribution than the training data?"""

import pytest
import torch

from fixtures.judging import alarms
from fixtures.trained import clouds, patient


def given(change, seed=0):
    found = dict(patient(seed, lambda own: torch.optim.Adam(own, 3e-3)))
    x, y = clouds(1000 + seed, 512)
    return {**found, "validation": (change(x), y)}


SICK = (lambda seed: given(lambda x: 0.02 * x, seed), lambda seed: given(lambda x: x + 4, seed))


@pytest.mark.parametrize("build", SICK)
def test_other_scales_and_levels_are_named(build):
    (found,) = alarms("validation-differs", build(0))
    assert "differ from the training data" in found.says


@pytest.mark.parametrize("seed", range(4))
def test_another_draw_is_not(seed):
    assert not alarms("validation-differs", given(lambda x: x, seed))


def test_what_does_no_harm_is_not():
    def shifted(x):
        return torch.cat([x[:, :-1], x[:, -1:] + 5.0], 1)

    found = given(shifted)
    with torch.no_grad():
        found["model"][0].weight[:, -1] = 0.0
    assert not alarms("validation-differs", found)
