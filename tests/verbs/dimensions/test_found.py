"""What estimating dimension has found so far."""

import math

from theodolite.core.reading import Estimate
from theodolite.verbs.dimensions.found import Found


def test_an_estimate_becomes_a_reading_below_the_linear_hull():
    found = Found(rank=3)
    found.add("neighbors", "TwoNN", Estimate(2.9, 0.1), "words")
    found.add("neighbors", "MLE", Estimate(5.0, math.nan), "words")
    low, high = found.readings["neighbors"]
    assert (low.where, low.measured, low.stderr, low.status) == ("TwoNN", 2.9, 0.1, "inconclusive")
    assert (high.status, high.stderr) == ("above", 0.0)  # more than the hull has, and no error is known
    assert found.values["TwoNN"] == Estimate(2.9, 0.1)


def test_a_number_that_is_not_finite_is_skipped_with_its_reason():
    found = Found(rank=3)
    found.add("scales", "neighbors 1 and 2", Estimate(math.inf), "words")
    assert not found.readings and not found.values
    assert [(skip.instrument, skip.reason) for skip in found.skipped] == [
        ("neighbors 1 and 2", "the number is not finite")
    ]


def test_answers_stand_by_family_in_one_order_whatever_came_first():
    found = Found(rank=3)
    for family in ("manifold", "variance", "neighbors"):
        found.add(family, family, Estimate(2.0), "words")
    assert [answer.question.name for answer in found.answers] == ["nearest neighbors", "variance", "manifold"]
