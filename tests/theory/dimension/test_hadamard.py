import pytest
import torch
from scipy.linalg import hadamard

from theodolite.theory.dimension import hadamard as module
from theodolite.theory.dimension import hadamard_matrix, hadamard_transform, hadamard_transform_, next_power_of_two


def draw(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("levels", range(12))
def test_equals_the_matrix(levels):
    x = draw(3, 2, 1 << levels)
    truth = x @ torch.tensor(hadamard(1 << levels), dtype=torch.float64)
    assert torch.allclose(hadamard_transform(x), truth, rtol=0, atol=1e-12 * (1 << levels) ** 0.5)
    assert torch.equal(hadamard_matrix(1 << levels), torch.tensor(hadamard(1 << levels), dtype=torch.float64))


@pytest.mark.parametrize("shape", [(1 << 13,), (2, 1 << 14), (3, 1 << 16), (1 << 17,), (2, 1 << 18), (1 << 21,)])
def test_blocks_equal_butterflies_for_every_way_of_cutting(shape):
    x = draw(*shape)
    truth = module._butterflies(x.clone(), 0.5)
    found = hadamard_transform(x, scale=0.5)
    assert (found - truth).abs().max() <= 1e-14 * truth.abs().max() * 20
    single = hadamard_transform(x.float(), scale=0.5)
    assert (single - truth).norm() <= 4e-7 * truth.norm()  # a few roundings of float32, 6e-8 each


def test_more_than_three_passes(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 1 << 8)  # small blocks take the roads that only huge vectors take otherwise
    x = draw(2, 1 << 19)
    truth = module._butterflies(x.clone(), 1.0)
    assert torch.allclose(hadamard_transform(x), truth, rtol=0, atol=1e-9)


def test_in_place_gives_the_same_and_leaves_the_other_alone():
    x = draw(5, 256)
    kept = x.clone()
    y = hadamard_transform(x, scale=1 / 16)
    assert torch.equal(x, kept)
    assert hadamard_transform_(x, scale=1 / 16) is x
    assert torch.equal(x, y)
    assert torch.allclose(hadamard_transform(y, scale=1 / 16), kept)  # its own inverse


def test_strided_inputs_and_no_rows():
    x = draw(64, 7).T
    assert torch.allclose(hadamard_transform(x), hadamard_transform(x.contiguous()))
    assert hadamard_transform(torch.zeros(0, 8)).shape == (0, 8)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*")  # of torch's own forward mode
def test_gradients_tangents_and_vectorization():
    x = draw(2, 1, 8).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: hadamard_transform(x, scale=0.3), x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: hadamard_transform(x**2), x)
    batched = torch.vmap(hadamard_transform, in_dims=1)(x.detach())
    assert torch.allclose(batched, hadamard_transform(x.detach().movedim(1, 0)))
    jacobian = torch.func.jacrev(hadamard_transform)(draw(8))
    assert torch.allclose(jacobian, hadamard_matrix(8))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    x = draw(4, 4096, dtype=dtype)
    truth = hadamard_transform(x.double(), scale=1 / 64)
    found = hadamard_transform(x, scale=1 / 64)
    assert found.dtype == dtype
    assert (found.double() - truth).abs().max() <= torch.finfo(dtype).eps * truth.abs().max()
    assert torch.equal(hadamard_transform_(x.clone(), scale=1 / 64), found)


def test_a_rounding_setting_of_products_is_not_followed():
    x = draw(1 << 12, dtype=torch.float32)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        found = hadamard_transform(x)
    finally:
        torch.set_float32_matmul_precision(before)
    assert (found - hadamard_transform(x)).norm() <= 4e-7 * found.norm()


def test_bad_input():
    with pytest.raises(ValueError, match="expected a power of two.*pad it with zeros to 8"):
        hadamard_transform(torch.zeros(3, 6))
    with pytest.raises(TypeError, match="expected a tensor of floating numbers"):
        hadamard_transform(torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="expected a contiguous tensor"):
        hadamard_transform_(torch.zeros(4, 4).T)
    with pytest.raises(ValueError, match="without gradient"):
        hadamard_transform_(torch.zeros(4, requires_grad=True))
    assert [next_power_of_two(n) for n in (1, 2, 3, 4096, 4097)] == [1, 2, 4, 4096, 8192]
