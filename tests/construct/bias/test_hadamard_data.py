"""Every guise of the problem has the answer it says it has."""

import pytest
import torch

from theodolite.construct.bias import bit_patterns, products_of_bits, sparse_problem, sparse_problems


@pytest.mark.parametrize("kind", ["plain", "shifted", "flipped", "permuted", "signs", "gauss"])
def test_the_answer_fits_all_examples(kind):
    p = sparse_problem(kind, 16, 5, generator=torch.Generator().manual_seed(0))
    bias = -1.0 if kind == "shifted" else 0.0
    assert p.loss(p.x @ p.weight + bias).item() == 0
    assert [len(part) for part in p.train] == [5, 5]
    assert int((p.weight != 0).sum()) == 1
    if kind in ("plain", "flipped", "permuted"):
        assert torch.equal(p.x @ p.x.T, 16 * torch.eye(16, dtype=torch.float64))
    if kind == "shifted":
        assert set(p.x.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(p.loss(torch.zeros(16, 3, dtype=p.x.dtype)), p.y.square().mean().expand(3))


def test_flipped_labels_are_not_balanced_and_others_are():
    _, flipped = sparse_problems("flipped", 16, 40, generator=torch.Generator().manual_seed(1))
    _, plain = sparse_problems("plain", 16, 40, generator=torch.Generator().manual_seed(1))
    assert flipped.sum(1).abs().max() > 0
    assert plain.sum(1).abs().max() == 0


def test_products_of_bits_are_all_parities():
    bits = bit_patterns(3)
    features = products_of_bits(bits)
    assert features.shape == (8, 8)
    assert torch.equal(features[:, 7], bits.prod(1))


def test_wrong_input_is_named():
    generator = torch.Generator()
    with pytest.raises(ValueError, match="expected a power of two"):
        sparse_problem("plain", 12, 3, generator=generator)
    with pytest.raises(ValueError, match="expected between 1 and 8"):
        sparse_problem("plain", 8, 9, generator=generator)
    with pytest.raises(ValueError, match="expected a kind"):
        sparse_problem("odd", 8, 2, generator=generator)
