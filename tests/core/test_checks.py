"""The checks of arguments: what passes, what is refused, in which words, and how much they cost."""

import math
import timeit

import numpy as np
import pytest
import torch

from theodolite.core import checks
from theodolite.core.checks import InputError, InputTypeError

NUMBERS = {
    checks.positive: ([1, 0.5, np.float32(2.0), torch.tensor(3.0)], [0, -1.0, math.nan, math.inf]),
    checks.not_negative: ([0, 0.0, np.int64(2)], [-1, -1e-300, math.nan, math.inf]),
    checks.finite: ([-1, 0.0, 1e308], [math.nan, math.inf, -math.inf]),
}


@pytest.mark.parametrize("check", NUMBERS, ids=lambda check: check.__name__)
def test_numbers_within_their_domain_pass_and_others_are_refused_by_name(check):
    sound, odd = NUMBERS[check]
    for value in [*sound, None]:
        check(lr=value)
    for value in odd:
        with pytest.raises(InputError, match=r"^expected lr to be a finite number[^\n]*, got [^\n]*; "):
            check(lr=value)


def test_the_first_odd_one_of_several_is_named():
    with pytest.raises(InputError, match="^expected noise to be"):
        checks.positive(lr=0.1, noise=-1.0, decay=-1.0)


@pytest.mark.parametrize("value", ["0.1", [0.1], {}])
def test_what_is_no_number_is_a_type_error_of_ours(value):
    with pytest.raises(InputTypeError, match="^expected lr to be"):
        checks.positive(lr=value)


def test_several_numbers_are_all_looked_at():
    checks.positive(lr=np.array([1.0, 2.0]))
    checks.positive(lr=torch.tensor([1.0, 2.0]))
    with pytest.raises(InputError, match="got others among them"):
        checks.positive(lr=np.array([1.0, -2.0]))


def test_one_of_some_choices_is_named_with_all_of_them():
    checks.one_of({"mean": 1, "sum": 2}, reduction="sum")
    with pytest.raises(InputError, match="^expected a reduction among mean, sum, got None; choose one of them"):
        checks.one_of(("mean", "sum"), reduction=None)
    with pytest.raises(InputError, match="^expected an activation among relu, got 'tanh'; "):
        checks.one_of(["relu"], activation="tanh")


def test_inside_a_map_of_torch_no_value_decides():
    def doubled(x):
        checks.positive(x=x)
        return 2 * x

    assert torch.func.vmap(doubled)(torch.tensor([1.0, -1.0])).tolist() == [2.0, -2.0]


def test_both_ends_are_within():
    checks.within(0, 1, share=0, momentum=1.0)
    with pytest.raises(InputError, match="^expected share to be a number from 0 to 1, got 1.5; "):
        checks.within(0, 1, share=1.5)
    with pytest.raises(InputError):
        checks.within(0, 1, share=math.nan)


@pytest.mark.parametrize("value", [1, 7, np.int64(3), 2.0, np.float64(2.0), None])
def test_whole_numbers_pass(value):
    checks.at_least(1, samples=value)


@pytest.mark.parametrize("value", [0, -1, 2.5, math.nan, math.inf])
def test_what_is_not_whole_or_too_small_is_refused(value):
    with pytest.raises(
        InputError, match=r"^expected samples to be a whole number of at least 1, got .*; pass 1 or more$"
    ):
        checks.at_least(1, samples=value)


@pytest.mark.parametrize("value", ["3", True, [3]])
def test_what_is_no_count_is_a_type_error_of_ours(value):
    with pytest.raises(InputTypeError, match="^expected samples to be a whole number"):
        checks.at_least(1, samples=value)


def test_each_of_several_counts_is_looked_at():
    checks.each_at_least(1, widths=(3, 4))
    with pytest.raises(InputError, match="^expected widths to be whole numbers of at least 1, got 0; "):
        checks.each_at_least(1, widths=(3, 0))


def test_arrays_have_values_and_finite_ones_where_that_is_asked():
    checks.has_values(x=torch.zeros(1, 2))
    checks.finite_values(x=np.zeros(3), y=torch.zeros(0), z=None)
    with pytest.raises(InputError, match=r"^expected values for x, got shape \(0, 2\); "):
        checks.has_values(x=torch.zeros(0, 2))
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match="^expected x to be finite values, got others among them"):
            checks.finite_values(x=torch.tensor([0.0, bad]))


def test_arrays_and_lists_become_tensors_and_tensors_stay_themselves():
    x = torch.ones(2)
    assert checks.as_tensor(x) is x
    assert checks.as_tensor(np.ones(2, dtype=np.float32)).dtype == torch.float32
    assert checks.as_tensor([1, 2]).dtype == torch.float64
    assert checks.as_tensor([1, 2], floats=False).dtype == torch.int64


def test_our_errors_are_those_that_python_programmers_catch():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError) and issubclass(InputTypeError, InputError)
    assert issubclass(checks.MissingPackageError, ImportError)


def test_a_check_that_finds_nothing_costs_less_than_two_microseconds():
    """About a third of one on an idle machine; a signature bound by name took twelve."""
    best = min(timeit.repeat(lambda: checks.positive(lr=0.1), number=2000, repeat=20)) / 2000
    assert best < 2e-6
