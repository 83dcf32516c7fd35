"""Eigenvalues against singular values, shapes of every kind of parameter, the bulk of noise and planted spikes."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.measure.spectra import (
    condition_number,
    eigenvalues,
    gram_eigenvalues,
    marchenko_pastur_bulk,
    power_law,
    spectrum_of,
    weight_matrices,
)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (1, 7), (5, 5), (3000, 20), (20, 3000)])
def test_eigenvalues_are_squared_singular_values(shape, dtype):
    matrix = normal(*shape, dtype=dtype)
    expected = torch.linalg.svdvals(matrix.double()).square().flip(0)
    found = gram_eigenvalues(matrix)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12 * float(expected[-1]))


def test_blocks_do_not_change_the_sum(monkeypatch):
    matrix = normal(1500, 20, dtype=torch.float32)
    whole = gram_eigenvalues(matrix)
    monkeypatch.setattr(eigenvalues, "BLOCK", 1)
    torch.testing.assert_close(gram_eigenvalues(matrix), whole, rtol=1e-12, atol=0)


@pytest.mark.parametrize("failure", ["raises", "wrong"])
def test_a_failing_solver_is_replaced(monkeypatch, failure):
    def broken(matrix, **_):
        if failure == "raises":
            raise np.linalg.LinAlgError("did not converge")
        return np.zeros(len(matrix))

    matrix = normal(12, 9)
    expected = gram_eigenvalues(matrix)
    monkeypatch.setattr(np.linalg, "eigvalsh", broken)
    torch.testing.assert_close(gram_eigenvalues(matrix), expected)
    monkeypatch.setattr(np.linalg, "svd", broken)
    torch.testing.assert_close(gram_eigenvalues(matrix), expected)


def test_matrices_that_have_no_spectrum_are_refused():
    with pytest.raises(ValueError, match="finite"):
        gram_eigenvalues(torch.full((3, 3), math.nan))
    with pytest.raises(ValueError, match="real matrix"):
        gram_eigenvalues(torch.zeros(3))
    with pytest.raises(ValueError, match="real matrix"):
        gram_eigenvalues(torch.zeros(3, 3, dtype=torch.int32))


@pytest.mark.parametrize(
    ("matrix", "reason", "rank"),
    [
        (torch.zeros(4, 5), "all zeros", 0),
        (torch.ones(1, 6), "vector", 1),
        (torch.ones(6, 1), "vector", 1),
        (torch.outer(torch.arange(1.0, 9), torch.arange(1.0, 6)), "rank one", 1),
        (torch.eye(3), "", 3),
    ],
)
def test_degenerate_matrices_have_a_reason_and_no_exception(matrix, reason, rank):
    spectrum = spectrum_of(matrix)
    assert reason in spectrum.reason
    assert bool(reason) == bool(spectrum.reason)
    assert spectrum.numerical_rank == rank
    assert math.isfinite(spectrum.stable_rank) and math.isfinite(spectrum.effective_rank)
    assert power_law(spectrum.eigenvalues).reason
    assert marchenko_pastur_bulk(spectrum.eigenvalues, *matrix.shape).reason


def test_ranks_and_norms_of_a_known_spectrum():
    matrix = torch.diag(torch.tensor([4.0, 2.0, 1.0, 1.0]))
    spectrum = spectrum_of(matrix)
    share = np.array([4, 2, 1, 1]) / 8
    assert spectrum.stable_rank == pytest.approx(22 / 16)
    assert spectrum.effective_rank == pytest.approx(math.exp(-(share * np.log(share)).sum()))
    assert spectrum.trace == pytest.approx(22)
    assert spectrum.largest == pytest.approx(16)
    assert condition_number(matrix) == pytest.approx(4.0)
    assert math.isnan(condition_number(torch.zeros(2, 2)))


def test_numerical_rank_respects_storage():
    low_rank = normal(200, 20) @ normal(20, 100, seed=1)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        assert spectrum_of(low_rank.to(dtype)).numerical_rank == 20


def test_condition_number_sees_below_the_gram_matrix():
    assert condition_number(torch.diag(torch.tensor([1.0, 1e-10], dtype=torch.float64))) == pytest.approx(1e10)


LAYERS = {
    "linear": (nn.Linear(5, 7), {"weight": [(7, 5)]}),
    "embedding": (nn.Embedding(9, 4), {"weight": [(9, 4)]}),
    "conv1d": (nn.Conv1d(3, 8, 5), {"weight": [(8, 15)]}),
    "conv2d": (nn.Conv2d(3, 8, 2), {"weight": [(8, 12)]}),
    "conv3d": (nn.Conv3d(2, 8, 2), {"weight": [(8, 16)]}),
    "transposed": (nn.ConvTranspose2d(3, 8, 2), {"weight": [(3, 32)]}),
    "grouped": (nn.Conv2d(8, 8, 3, groups=8), {"weight": [(8, 9)]}),
    "lstm": (nn.LSTM(5, 6), {"weight_ih_l0": [(6, 5)] * 4, "weight_hh_l0": [(6, 6)] * 4}),
    "gru": (nn.GRU(5, 6, bidirectional=True), {"weight_ih_l0_reverse": [(6, 5)] * 3, "weight_hh_l0": [(6, 6)] * 3}),
    "rnn": (nn.RNN(5, 6), {"weight_ih_l0": [(6, 5)], "weight_hh_l0": [(6, 6)]}),
    "projected": (nn.LSTM(5, 6, proj_size=2), {"weight_hh_l0": [(6, 2)] * 4, "weight_hr_l0": [(2, 6)]}),
    "cell": (nn.GRUCell(5, 6), {"weight_ih": [(6, 5)] * 3}),
    "attention": (nn.MultiheadAttention(6, 2), {"in_proj_weight": [(6, 6)] * 3, "out_proj.weight": [(6, 6)]}),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_every_kind_of_layer_becomes_matrices(kind):
    module, expected = LAYERS[kind]
    parameters = dict(module.named_parameters())
    for name, shapes in expected.items():
        found = weight_matrices(name, parameters[name], module=module)
        assert [tuple(m.matrix.shape) for m in found] == shapes
        assert not any(m.reason for m in found)
        assert len({m.name for m in found}) == len(found)
        total = sum(float(gram_eigenvalues(m.matrix).sum()) for m in found)
        assert total == pytest.approx(float(parameters[name].detach().double().square().sum()))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn", "projected"])
def test_gates_are_told_by_the_shapes_of_a_checkpoint(kind):
    module, expected = LAYERS[kind]
    state = {f"encoder.{name}": value for name, value in module.state_dict().items()}
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    for name, pieces in expected.items():
        found = weight_matrices(f"encoder.{name}", state[f"encoder.{name}"], shapes=shapes)
        assert [tuple(m.matrix.shape) for m in found] == pieces


def test_gates_that_cannot_be_told_stay_together_and_say_so():
    (found,) = weight_matrices("weight_ih_l0", torch.zeros(24, 5))
    assert found.matrix.shape == (24, 5)
    assert "kept together" in found.how


@pytest.mark.parametrize(
    ("name", "shape", "pieces"),
    [
        ("h.0.attn.c_attn.weight", (6, 18), [(6, 6)] * 3),
        ("blocks.0.attn.qkv.weight", (18, 6), [(6, 6)] * 3),
        ("transformer.Wqkv.weight", (18, 6), [(6, 6)] * 3),
        ("self_attn.qkv_proj.weight", (12, 8), [(8, 8), (2, 8), (2, 8)]),
        ("attn.qkv.weight", (11, 8), [(11, 8)]),
        ("mlp.gate_up_proj.weight", (12, 4), [(6, 4)] * 2),
        ("attention.query_key_value.weight", (18, 6), [(18, 6)]),
        ("mlp.experts.w1", (4, 6, 5), [(6, 5)] * 4),
    ],
)
def test_fused_weights_are_split_where_it_can_be_told(name, shape, pieces):
    found = weight_matrices(name, torch.zeros(*shape))
    assert [tuple(m.matrix.shape) for m in found] == pieces
    assert all(m.how for m in found)


def test_interleaved_heads_are_disentangled():
    query, key, value = (normal(6, 6, seed=k) for k in range(3))
    fused = torch.stack([part.reshape(2, 3, 6) for part in (query, key, value)], dim=1).reshape(18, 6)
    found = weight_matrices("attention.query_key_value.weight", fused, heads=2)
    for part, expected in zip(found, (query, key, value), strict=True):
        torch.testing.assert_close(part.matrix, expected)


def test_positions_of_a_kernel_on_request():
    tensor = normal(4, 3, 2, 2)
    found = weight_matrices("conv.weight", tensor, slices=True)
    assert [m.name for m in found] == [f"conv.weight[{a},{b}]" for a in range(2) for b in range(2)]
    torch.testing.assert_close(found[1].matrix, tensor[:, :, 0, 1])


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (torch.zeros(3, 3, dtype=torch.int8), "int8"),
        (torch.zeros(3, 3, dtype=torch.complex64), "complex64"),
        (torch.zeros(3, 3, device="meta"), "meta"),
        (torch.zeros(3, 3).to_sparse(), "sparse"),
        (torch.zeros(3, 0), "empty"),
        (torch.zeros(3, 3, dtype=torch.bool), "bool"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(tensor, reason):
    (found,) = weight_matrices("layer.weight", tensor)
    assert found.matrix is None
    assert reason in found.reason


def test_float8_is_upcast_and_vectors_are_no_matrices():
    (found,) = weight_matrices("layer.weight", torch.eye(3).to(torch.float8_e4m3fn))
    assert found.matrix.dtype == torch.float32
    assert "float8" in found.how
    assert weight_matrices("layer.bias", torch.zeros(5)) == ()


@pytest.mark.parametrize("shape", [(120, 60), (60, 120), (100, 100)])
def test_noise_has_a_bulk_and_no_spikes(shape):
    # one or two in a hundred matrices show a spike by chance: of 40, more than 4 has probability below 0.2 %
    found = [marchenko_pastur_bulk(spectrum_of(3 * normal(*shape, seed=k)).eigenvalues, *shape) for k in range(40)]
    assert sum(bulk.spikes > 0 for bulk in found) <= 4
    assert np.mean([bulk.variance for bulk in found]) == pytest.approx(9.0, rel=0.02)
    assert max(bulk.distance for bulk in found) < 0.08


def test_planted_spikes_are_counted_and_their_share_taken():
    n, p, k = 400, 200, 3
    left, right = (torch.linalg.qr(normal(side, k, seed=side))[0] for side in (n, p))
    strength = 4 * math.sqrt(n * p)  # four times the threshold
    spectrum = spectrum_of(normal(n, p) + math.sqrt(strength) * left @ right.T)
    bulk = marchenko_pastur_bulk(spectrum.eigenvalues, n, p)
    assert bulk.spikes == k
    assert bulk.share == pytest.approx(float(spectrum.eigenvalues[-k:].sum() / spectrum.eigenvalues.sum()))
    assert bulk.variance == pytest.approx(1.0, rel=0.02)
    assert bulk.excess > 10


def test_a_heavy_tail_does_not_move_the_bulk():
    noise = spectrum_of(normal(400, 200)).eigenvalues.copy()
    clean = marchenko_pastur_bulk(noise, 400, 200)
    noise[-30:] = noise[-1] * np.geomspace(1.2, 100, 30)
    heavy = marchenko_pastur_bulk(noise, 400, 200)
    assert heavy.variance == pytest.approx(clean.variance, rel=0.15)
    assert heavy.spikes >= 30


def test_bulk_wants_all_eigenvalues():
    with pytest.raises(ValueError, match="pass them all"):
        marchenko_pastur_bulk([1.0, 2.0], 3, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_magnitudes_are_the_same_where_the_tensor_is_and_in_memory(dtype):
    """What a GPU is asked for, asked of a tensor here; no entries tie but those that are rounded alike."""
    from theodolite.core.lazy_torch import array_of
    from theodolite.measure.spectra import entry_tails

    w = torch.randn(60, 50, generator=torch.Generator().manual_seed(0)).to(dtype)
    w[3, 4] = 9.0
    there, here = entry_tails._on_device(w), entry_tails._in_memory(array_of(w))
    assert there.entries == here.entries and (there.few == here.few).all()
    (tops, places), (other_tops, other_places) = there.largest(9), here.largest(9)
    assert (tops == other_tops).all() and places[0] == other_places[0] == 154
    assert there.row_square(154, 9.0) == pytest.approx(here.row_square(154, 9.0), rel=1e-5)
    assert entry_tails._top_on_device(w, 30) == pytest.approx(entry_tails.top_singular_value(w), rel=1e-4)
