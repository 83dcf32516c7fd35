"""Do parameters in the optimizer have a gradient and never move?"""

import pytest

from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not


@pytest.mark.parametrize("case", cases_of("parameters-stuck"))
def test_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)
