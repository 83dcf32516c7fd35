"""At and beyond the edges of dimension: every public function answers finitely, or says in one line what it expected."""

TOPIC = "dimension"
SLOW = ("embedding_quality", "tsne", "gaussian_mixture", "planar_embeddings")  # scikit-learn, seconds each


def test_answers_finitely_or_says_what_it_expected(public_function, check):
    check(public_function)
