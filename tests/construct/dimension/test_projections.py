import pytest
import torch

from theodolite.construct.dimension import Fastfood, fastfood_image, projections
from theodolite.construct.dimension.projections import KINDS

SIZES = (700, 10, 50, 1)
ALL = pytest.mark.parametrize("kind", KINDS)


def drawn(kind, dimension, sizes=SIZES, seed=0):
    return KINDS[kind](sizes, dimension, torch.Generator().manual_seed(seed))


def matrix(projection, dimension):
    table = projection.table(torch.eye(dimension, dtype=torch.float64))
    return torch.cat([projection.part(table, place) for place in range(len(SIZES))], dim=-1).T


@ALL
@pytest.mark.parametrize("dimension", [1, 5, 64, 300])
def test_columns_have_unit_norm_and_full_rank(kind, dimension):
    p = matrix(drawn(kind, dimension), dimension)
    assert p.shape == (sum(SIZES), dimension)
    assert torch.linalg.matrix_rank(p) == dimension
    norms = p.norm(dim=0)
    if (
        kind == "fastfood"
    ):  # each is a mean of 761 nearly independent squares: sqrt(2/761) in the square, half of it here
        assert (norms.square() - 1).abs().max() < 5 * (2 / sum(SIZES)) ** 0.5
    else:
        assert torch.allclose(norms, torch.ones_like(norms), atol=2e-6)


@ALL
def test_the_gradient_is_the_transpose(kind):
    projection = drawn(kind, 20)
    p = matrix(projection, 20)
    v = torch.randn(20, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    image = torch.cat([projection.part(projection.table(v), place) for place in range(len(SIZES))])
    assert torch.allclose(image, p @ v)
    weight = torch.randn(sum(SIZES), dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    (slope,) = torch.autograd.grad(image @ weight, v)
    assert torch.allclose(slope, p.T @ weight)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*")  # of torch's own forward mode
@ALL
def test_second_derivatives_tangents_and_vectorization(kind):
    projection = drawn(kind, 4)
    v = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()

    def part(v):
        return projection.part(projection.table(v), 1) ** 2

    assert torch.autograd.gradcheck(part, v, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(part, v)
    several = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(torch.vmap(part)(several), torch.stack([part(one) for one in several]))


@ALL
def test_chunks_change_nothing(kind, monkeypatch):
    whole = matrix(drawn(kind, 20), 20)
    monkeypatch.setattr(projections, "CHUNK", 64)
    monkeypatch.setattr(projections, "LEAST_BLOCK", 64)
    if kind != "fastfood":  # whose blocks are another random draw
        assert torch.equal(matrix(drawn(kind, 20), 20), whole)
    small = drawn(kind, 20)
    p = matrix(small, 20)
    weight = torch.randn(700, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    v = torch.zeros(20, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(small.part(small.table(v), 0) @ weight, v)
    assert torch.allclose(slope, p[:700].T @ weight)


def test_tied_is_an_isometry_with_one_entry_in_each_row():
    p = matrix(drawn("tied", 30), 30)
    assert torch.allclose(p.T @ p, torch.eye(30, dtype=torch.float64))
    assert ((p != 0).sum(1) == 1).all()


def test_sparse_has_the_density_it_says():
    p = matrix(drawn("sparse", 30), 30)
    assert ((p != 0).sum(0) == 28).all()  # the root of 761, rounded up


def test_one_block_of_fastfood_is_the_product_of_its_five_matrices():
    """With a power of two and as many coordinates the stacked form is one textbook block."""
    projection = Fastfood((64,), 64, torch.Generator().manual_seed(3))
    h = projections.hadamard_transform(torch.eye(64, dtype=torch.float64))
    index, gauss, signs = (projection.get_buffer(name) for name in ("index", "gauss", "signs"))
    assert sorted(index.tolist()) == list(range(64))
    explicit = (
        h
        @ torch.diag(gauss.double())
        @ torch.eye(64, dtype=torch.float64)[index.long()]
        @ h
        @ torch.diag(signs.double())
    )
    explicit /= (64 * gauss.double().square().sum()).sqrt()
    found = projection.part(projection.table(torch.eye(64, dtype=torch.float64)), 0).T
    assert (
        found - explicit
    ).norm() / explicit.norm() < 1e-3  # the diagonal is normalized before it is rounded to float16


def test_the_textbook_form_keeps_length_when_nothing_is_cut_off():
    v = torch.zeros(128, dtype=torch.float64)
    v[7] = 1.0  # HBv is then flat, and the length exact
    y = fastfood_image(v, 128, torch.Generator().manual_seed(0))
    assert abs(y.square().sum() - 1) < 1e-12


def test_memory_is_four_bytes_a_parameter():
    projection = Fastfood((100_000, 3000), 750, torch.Generator().manual_seed(0))
    stored = sum(buffer.numel() * buffer.element_size() for buffer in projection.buffers())
    assert stored < 4.2 * 103_000


def test_a_dense_matrix_too_large_is_refused():
    with pytest.raises(ValueError, match="expected a dense projection.*use projection='fastfood'"):
        drawn("dense", 1000, sizes=(1 << 22,))
