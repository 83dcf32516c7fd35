"""Does every term of the loss have a gradient?"""

import pytest
import torch

from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not
from theodolite.verbs.running.slips import constant_term
from theodolite.verbs.running.tape import Tape


@pytest.mark.parametrize("case", cases_of("penalty-idle"))
def test_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)


@pytest.mark.parametrize(
    ("loss", "term"),
    [
        (lambda value, number: value + number, 3.0),
        (lambda value, number: 2 * (value - number) / 4, -1.5),
        (lambda value, number: number - value, 3.0),
        (lambda value, number: sum([value, 0.5 * number]), 1.5),
        (lambda value, number: value * number, None),
        (lambda value, number: (value - number) ** 2, None),
    ],
)
def test_terms_are_found_through_sums_and_factors(loss, term):
    weight, tape = torch.nn.Parameter(torch.ones(2)), Tape({})
    tape.on()
    value = loss(weight.sum(), torch.tensor(3.0))
    tape.off()
    assert constant_term(tape.program([value])) == term
