"""Formulas in letters and signs that any terminal shows."""

import pytest

from theodolite.report.unicode_math import unicode_formula, unicode_prose


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"x^2+y_1", "x² + y₁"),
        (r"\frac{a}{b+c}", "a/(b + c)"),
        (r"\sqrt{p/n}", "√(p/n)"),
        (r"E\|w\|\leq\epsilon", "E‖w‖ ≤ ε"),
        (r"\langle\sigma\rangle", "⟨σ⟩"),
    ],
)
def test_a_formula_in_letters(tex, shown):
    assert unicode_formula(tex) == shown


def test_prose_keeps_money_and_names():
    assert unicode_prose("a_name and $x_0$") == "a_name and x₀"
    assert unicode_prose("no dollar") == "no dollar"
