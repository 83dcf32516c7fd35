"""At and beyond the edges of kernels: every public function answers finitely, or says in one line what it expected."""

TOPIC = "kernels"


def test_answers_finitely_or_says_what_it_expected(public_function, check):
    check(public_function)
