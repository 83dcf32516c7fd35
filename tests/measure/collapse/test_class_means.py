"""Known answers for the signs of neural collapse."""

import pytest
import torch
from torch import nn

from theodolite.measure.collapse import ClassMoments, collapse_metrics, collapse_of, layer_collapse
from theodolite.theory.collapse import simplex_corners


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def clouds(classes, each, spread, seed=0, width=12):
    generator = seeded(seed)
    turn = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))[0][:classes]
    corners = 3 * torch.from_numpy(simplex_corners(classes)) @ turn
    labels = torch.arange(classes).repeat_interleave(each)
    h = corners[labels] + spread * torch.randn(len(labels), width, generator=generator, dtype=torch.float64)
    return h + 5, labels, corners


def test_a_perfect_simplex_has_all_four_signs():
    h, labels, corners = clouds(5, 6, 0.0)
    found = collapse_metrics(h, labels, 0.1 * corners, -0.5 * corners.sum(1))
    assert max(found.nc1, found.nc2_equinorm, found.nc2_equiangular, found.nc3, found.weight_equiangular) < 1e-12
    assert found.nc4 == 0
    assert (found.classes, found.rank, found.note) == (5, 4, "")


def test_against_the_definition_with_a_pseudo_inverse():
    h, labels, corners = clouds(4, 50, 0.7, seed=1)
    means = torch.stack([h[labels == c].mean(0) for c in range(4)])
    M = means - means.mean(0)
    within = (h - means[labels]).T @ (h - means[labels]) / len(h)
    nc1 = torch.trace(within @ torch.linalg.pinv(M.T @ M / 4, rtol=1e-10)) / 4
    found = collapse_metrics(h, labels, corners, torch.zeros(4))
    assert found.nc1 == pytest.approx(nc1.item(), rel=1e-10)
    norms = M.norm(dim=1)
    assert found.nc2_equinorm == pytest.approx((norms.std(correction=0) / norms.mean()).item())
    assert found.nc3 == pytest.approx(((corners / corners.norm()) - M / M.norm()).norm().item())
    logits, nearest = (h @ corners.T).argmax(1), torch.cdist(h, means).argmin(1)
    assert found.nc4 == pytest.approx((logits != nearest).double().mean().item())


def test_nearly_equal_means_in_single_precision():
    generator = seeded(2)
    means = torch.randn(3, 8, generator=generator, dtype=torch.float64)
    means[1] = means[0] + 1e-4 * torch.randn(8, generator=generator, dtype=torch.float64)
    labels = torch.arange(3).repeat_interleave(200)
    noise = 1e-3 * torch.randn(600, 8, generator=generator, dtype=torch.float64)
    exact = collapse_metrics(means[labels] + noise, labels).nc1
    assert collapse_metrics((means[labels] + noise).float(), labels).nc1 == pytest.approx(exact, rel=0.01)


def test_pooled_moments_are_those_of_all_at_once():
    h, labels, _ = clouds(3, 20, 1.0)
    order = torch.randperm(60, generator=seeded(3))
    parts = [ClassMoments.of(h[rows], labels[rows], classes=3) for rows in order.split([7, 1, 30, 22])]
    pooled = parts[0] + parts[1] + parts[2] + parts[3]
    whole = ClassMoments.of(h, labels, classes=3)
    assert torch.allclose(pooled.means, whole.means)
    assert torch.allclose(pooled.scatter, whole.scatter, atol=1e-10)
    assert collapse_of(pooled).nc1 == pytest.approx(collapse_of(whole).nc1)


def test_unequal_missing_and_single_classes_are_told():
    h, labels, corners = clouds(5, 10, 0.3)
    kept = (labels != 2) & ((labels != 3) | (torch.arange(50) == 30))
    found = collapse_metrics(h[kept], labels[kept], corners, torch.zeros(5))
    assert found.classes == 4
    for words in ("1 of 5 classes do not occur", "1 to 10 samples", "one sample"):
        assert words in found.note
    same = torch.cat([h[:10], h[:10], h[10:20]]), torch.arange(3).repeat_interleave(10)
    assert "span 1 dimensions" in collapse_metrics(*same).note
    with pytest.raises(ValueError, match="two classes"):
        collapse_metrics(h[:10], labels[:10])
    with pytest.raises(ValueError, match="label"):
        collapse_metrics(h, labels + 1, corners)


def test_a_layer_of_a_model_streamed_over_batches():
    h, labels, _ = clouds(3, 30, 0.5)
    head = nn.Linear(12, 3).double()
    model = nn.Sequential(nn.Identity(), head)
    batches = lambda: [(h[i : i + 25], labels[i : i + 25]) for i in range(0, 90, 25)]  # noqa: E731
    streamed = layer_collapse(model, batches, head, classes=3)
    assert streamed.nc1 == pytest.approx(collapse_metrics(h, labels, head.weight, head.bias).nc1)
    assert streamed.nc4 == collapse_metrics(h, labels, head.weight, head.bias).nc4
    assert not head._forward_pre_hooks


def test_the_spread_of_cosines_is_that_over_pairs():
    h, labels, _ = clouds(5, 20, 0.8)
    weight = torch.randn(5, h.shape[1], generator=seeded(1), dtype=torch.float64)
    found = collapse_metrics(h, labels, weight)
    means = torch.stack([h[labels == c].mean(0) for c in range(5)])
    for rows, spread in ((means - means.mean(0), found.cosine_spread), (weight, found.weight_cosine_spread)):
        pairs = [float(a @ b / (a.norm() * b.norm())) for i, a in enumerate(rows) for b in rows[:i]]
        middle = sum(pairs) / len(pairs)
        assert spread == pytest.approx((sum((c - middle) ** 2 for c in pairs) / len(pairs)) ** 0.5, rel=1e-9)
    assert collapse_metrics(h, labels).weight_cosine_spread is None
