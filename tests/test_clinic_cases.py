"""The collection that the diagnosis is judged on: whole, split fairly, and each case what it says."""

import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks is no installed package

from benchmarks.clinic_cases import AILMENTS, cases, run, score
from benchmarks.clinic_cases.sites import SEEDS

ALL = cases(every=True)
NAMED = {case.name: case for case in ALL}
NAMES = [name for names in AILMENTS.values() for name in names]


def test_names_are_unique_and_ailments_public():
    assert len(NAMED) == len(ALL)
    assert {case.ailment for case in ALL} == {None, *NAMES}


def test_there_are_enough_of_both():
    sick = sum(case.ailment is not None for case in ALL)
    assert sick >= 150 and len(ALL) - sick >= 80


@pytest.mark.parametrize("ailment", NAMES)
def test_every_ailment_is_on_three_sites_in_both_halves_and_grades(ailment):
    own = [case for case in ALL if case.ailment == ailment]
    assert len({(case.architecture, case.data) for case in own}) >= 3
    assert {case.split for case in own} == {"chosen", "unseen"}
    assert {case.grade for case in own} == {"mild", "severe"}


def test_halves_are_even_and_share_neither_architecture_nor_seed():
    halves = {split: {case.architecture for case in ALL if case.split == split} for split in SEEDS}
    assert not halves["chosen"] & halves["unseen"]
    assert not set(SEEDS["chosen"]) & set(SEEDS["unseen"])
    assert 0.4 < Counter(case.split for case in ALL)["unseen"] / len(ALL) < 0.6


def test_a_healthy_run_learns_and_is_the_same_for_the_same_seed():
    first, second = (NAMED["healthy/mlp-digits/plain"].build(0) for _ in range(2))
    assert run(first, steps=20) == run(second, steps=20)
    run(first, steps=200)
    assert score(first, *first.validation) > 0.9


def test_a_sick_run_does_not_learn_and_its_cure_does():
    case = NAMED["step-too-small/mlp-digits/severe"]
    sick, cured = case.build(0), case.cure({"lr": 1e-3}, 0)
    for setup in (sick, cured):
        run(setup, steps=200)
    assert score(sick, *sick.validation) < 0.5 < 0.9 < score(cured, *cured.validation)


def test_an_unknown_suggestion_is_refused():
    with pytest.raises(ValueError, match="expected a suggestion of known numbers, got \\['color'\\]"):
        NAMED["step-too-small/mlp-digits/severe"].cure({"color": 1}, 0)


def test_an_input_that_is_not_finite_reaches_the_weights():
    setup = NAMED["inputs-not-finite/mlp-digits/severe"].build(0)
    seen = []
    run(setup, watch=seen.append, steps=20)
    assert seen == list(range(20))
    assert not all(p.isfinite().all() for p in setup.model.parameters())


def test_a_forgotten_layer_gets_a_gradient_and_no_step():
    setup = NAMED["not-in-optimizer/vit-digits/severe"].build(100)
    before = setup.model.embed.map.weight.clone()
    run(setup, steps=2)
    assert torch.equal(setup.model.embed.map.weight, before) and setup.model.embed.map.weight.grad is not None
