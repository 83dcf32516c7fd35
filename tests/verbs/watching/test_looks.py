"""What is asked at each level, and what a thinned look leaves out."""

import math
from types import SimpleNamespace

import pytest

from theodolite import catalogue
from theodolite.theory.dynamics import step_quality
from theodolite.verbs.watching.look_context import LEVELS
from theodolite.verbs.watching.looks import LOOKS, _trust_meaning, is_dear, looks_of, trouble_in


def test_a_level_asks_all_that_those_below_it_ask_the_loss_first():
    cheap, standard, full = ({look.name for look in looks_of(level)} for level in LEVELS)
    assert cheap < standard < full == {look.name for look in LOOKS}
    assert LOOKS[0].name == "loss" and all(look.cost != "hvp" for look in looks_of("cheap"))
    assert {law for look in LOOKS for law in look.laws} <= set(catalogue.law_names())


def test_a_thinned_look_is_cheap_and_one_of_the_loss_has_no_gradient():
    left = {size: {look.name for look in LOOKS if is_dear(look, size)} for size in ("whole", "gradient", "loss")}
    assert left["whole"] == set()
    assert left["gradient"] == {look.name for look in LOOKS if look.level != "cheap"}
    assert left["loss"] == left["gradient"] | {"last-step"}


@pytest.mark.parametrize(
    ("facts", "norm", "bare", "said"),
    [
        ({}, 1.0, False, "the loss could not be read at step 7"),
        ({"loss": 1.0, "step_loss": math.inf}, 1.0, False, "loss is not finite at step 7"),
        ({"loss": 1.0, "step_loss": 1.0}, math.nan, False, "gradient is not finite at step 7"),
        ({"loss": 1.0, "step_loss": 1.0}, math.nan, True, ""),  # no gradient was taken
        ({"loss": 1.0, "step_loss": 1.0}, 1.0, False, ""),
    ],
)
def test_numbers_that_are_none_are_said(facts, norm, bare, said):
    context = SimpleNamespace(facts=facts, bare=bare, slope=SimpleNamespace(norm=norm))
    assert trouble_in(context, 7) == said


@pytest.mark.parametrize(
    ("predicted", "seen", "share", "said"),
    [
        (-1.0, 0.5, 0.5, "overshot"),
        (-1.0, -0.4, 0.5, "The step is large"),
        (-1.0, -0.95, 0.5, "nearly as much as the gradient predicts"),
        (-1e-6, -1e-6, 1e-6, "The step is small"),
        (0.5, 0.5, 0.5, "goes uphill"),
    ],
)
def test_what_the_last_step_did_is_said_by_its_ratio(predicted, seen, share, said):
    assert said in _trust_meaning(step_quality(predicted, seen), share, predicted)
