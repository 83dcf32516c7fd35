"""At and beyond the edges of experiments: every public function answers finitely, or says in one line what it expected."""

TOPIC = "experiments"
SLOW = ("separating_flow",)  # integrates a stiff flow over as many decades as it is asked for


def test_answers_finitely_or_says_what_it_expected(public_function, check):
    check(public_function)
