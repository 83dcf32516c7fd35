"""Is the optimizer made anew in every step?"""

import pytest

from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not


@pytest.mark.parametrize("case", cases_of("optimizer-renewed"))
def test_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)
