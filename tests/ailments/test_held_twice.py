"""Do two optimizers take turns on the same parameter, or is it twice in one?"""

import pytest

from fixtures.silent_errors import cases_of, is_named_and_its_twin_is_not


@pytest.mark.parametrize("case", cases_of("held-twice"))
def test_the_error_is_named_and_its_twin_is_not(case):
    assert is_named_and_its_twin_is_not(case)
