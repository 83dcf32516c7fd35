import math

import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.construct.capacity import (
    corrective,
    least_squares,
    line_search,
    literal_group,
    profile_units,
    representation,
    separated_pairs,
)
from theodolite.theory.capacity import corrective_contraction, dual_scale, gaussian, one_group_error, separation


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 1), (60, 1), (100, 2), (200, 20), (30, 100)])
def test_one_solve_is_exact(n, d):
    x, y = 100 + 7 * normal(n, d, dtype=torch.float32), normal(n, seed=1)  # far from the sphere and from the origin
    net = th.corrective(x, y)
    assert net.report.units == max(math.ceil(1.1 * n), n + 4)
    assert float((net(x).detach() - y).square().mean()) == pytest.approx(net.report.mse, abs=1e-18)
    assert net.report.relative_mse < 1e-16
    assert not net.report.diverged
    assert net(x).dtype == torch.float64


def test_several_outputs_and_a_vector():
    x, y = normal(40, 3), normal(40, 4, seed=1)
    assert torch.allclose(corrective(x, y)(x), y, atol=1e-8)
    assert corrective(x, y[:, :1])(x).shape == (40, 1)
    assert corrective(x, y[:, 0])(x).shape == (40,)
    assert corrective(x.numpy(), (y[:, 0] > 0).numpy())(x).round().unique().tolist() == [0.0, 1.0]


def test_the_network_is_an_ordinary_module():
    x, y = normal(20, 3), normal(20, seed=1)
    net, other = corrective(x, y), corrective(x + 1, y * 2)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x), net(x))
    assert isinstance(net, nn.Module)
    assert [type(p).__name__ for p in net.parameters()] == ["Parameter"] * 4
    net.float()
    assert net(x).dtype == torch.float32
    x.requires_grad_(True)
    other(x).sum().backward()
    assert torch.isfinite(x.grad).all()


def test_points_on_the_sphere_are_taken_as_they_are():
    x = separated_pairs(20, 8, theta=0.3, generator=torch.Generator().manual_seed(0))
    net = corrective(x, normal(20))
    assert not net.lift
    assert net.hidden.in_features == 8
    assert net.report.theta == pytest.approx(0.3)
    assert corrective(2 * x, normal(20)).hidden.in_features == 9


def test_blocks_stop_at_the_tolerance_or_at_their_number():
    x, y = normal(80, 10), normal(80, seed=1)
    net = corrective(x, y, method="block", tolerance=1e-3)
    assert net.report.relative_mse < 1.1e-3
    assert net.report.groups == len(net.report.contraction)
    assert all(0 < factor < 1 for factor in net.report.contraction)
    assert corrective(x, y, method="block", groups=3, group_width=10).report.units == 30


def test_the_literal_scheme_says_when_it_diverges():
    x = torch.eye(8, dtype=torch.float64)
    y = torch.tensor([1.0, -1.0] * 4)
    theory = corrective_contraction(
        x, y.double(), scale=dual_scale(8, 2**0.5), generator=torch.Generator().manual_seed(0)
    )
    bad = corrective(x, y, method="literal", group_width=round(theory.threshold / 20), groups=3)
    assert bad.report.diverged
    assert "diverged" in str(bad.report)
    good = corrective(x, y, method="literal", group_width=round(theory.threshold * 30), groups=3)
    assert not good.report.diverged
    assert good.report.relative_mse < 0.1
    searched = corrective(x, y, method="line-search", group_width=20, groups=10)
    assert all(factor <= 1 for factor in searched.report.contraction)


def test_literal_outputs_share_units():
    x, y = torch.eye(6, dtype=torch.float64), normal(6, 2)
    group = literal_group(x, y, units=50, theta=2**0.5, generator=torch.Generator().manual_seed(3))
    for k in range(2):
        alone = literal_group(x, y[:, k : k + 1], units=50, theta=2**0.5, generator=torch.Generator().manual_seed(3))
        assert torch.allclose(group.output[k], alone.output[0], rtol=1e-12)
        assert torch.equal(group.weight, alone.weight)
    parts = literal_group(x, y[:, :1], units=50, theta=2**0.5, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(parts.shares(x, parts=5).mean(0), parts.outputs(x)[:, 0], rtol=1e-10)


def test_same_generator_same_network_and_the_global_state_is_left():
    x, y = normal(20, 3), normal(20, seed=1)
    before = torch.get_rng_state()
    assert torch.equal(corrective(x, y).hidden.weight, corrective(x, y).hidden.weight)
    other = corrective(x, y, generator=torch.Generator().manual_seed(5))
    assert not torch.equal(other.hidden.weight, corrective(x, y).hidden.weight)
    assert torch.equal(before, torch.get_rng_state())


def test_wrong_input_is_named():
    x, y = normal(10, 3), normal(10, seed=1)
    twice = x.clone()
    twice[7] = twice[2]
    with pytest.raises(ValueError, match="several for the same point in rows 2, 7"):
        corrective(twice, y)
    same = y.clone()
    same[7] = same[2]
    assert corrective(twice, same).report.samples == 9
    bad = x.clone()
    bad[4, 1] = math.nan
    with pytest.raises(ValueError, match="expected finite points and labels, got others in rows 4;"):
        corrective(bad, y)
    with pytest.raises(ValueError, match="in rows 3;"):
        corrective(x, torch.where(torch.arange(10) == 3, math.inf, y))
    for wrong, text in (
        (lambda: corrective(x[0], y), "points in rows"),
        (lambda: corrective(x, y[:4]), "for each of 10"),
        (lambda: corrective(x, y, method="magic"), "expected a method"),
        (lambda: corrective(x[:0], y[:0]), "in rows"),
        (lambda: corrective(x, y, groups=0), "expected groups"),
        (lambda: corrective(x, y, group_width=2.5), "expected group_width"),
    ):
        with pytest.raises(ValueError, match=text):
            wrong()
    with pytest.raises(ValueError, match="differ in double precision"):
        corrective(torch.tensor([[1.0, 0.0], [1e300, 0.0], [1.0 + 1e-16, 1e-12]], dtype=torch.float64), y[:3])


def test_constant_labels_and_points_that_agree_in_a_column():
    x = torch.cat([normal(10, 2), torch.ones(10, 1)], 1)
    net = corrective(x, torch.full((10,), 3.0))
    assert torch.allclose(net(x), torch.full((10,), 3.0, dtype=torch.float64))
    assert corrective(x, torch.zeros(10)).report.relative_mse == 0.0


def test_least_squares_in_every_shape():
    for rows, columns in ((30, 10), (10, 30), (20, 20)):
        a, b = normal(rows, columns), normal(rows, 2, seed=1)
        assert torch.allclose(least_squares(a, b), torch.linalg.pinv(a) @ b, atol=1e-8)
    a = normal(30, 10)
    a[:, 3], a[:, 5] = a[:, 4], 0.0
    assert torch.allclose(least_squares(a, b[:1].expand(30, 2)), torch.linalg.pinv(a) @ b[:1].expand(30, 2), atol=1e-10)


def test_line_search_of_nothing_is_nothing():
    assert line_search(torch.ones(3, 2), torch.zeros(3, 2)).tolist() == [0.0, 0.0]


def test_separated_pairs():
    x = separated_pairs(12, 10, theta=0.05, generator=torch.Generator().manual_seed(0))
    assert separation(x) == pytest.approx(0.05, rel=1e-10)
    assert torch.allclose(x.norm(dim=1), torch.ones(12, dtype=torch.float64))
    with pytest.raises(ValueError, match="expected room"):
        separated_pairs(200, 2, theta=1.0, generator=torch.Generator().manual_seed(0))


def test_one_group_of_a_representation_has_the_error_foretold():
    t = torch.linspace(-1, 1, 201, dtype=torch.float64)
    made, affine = profile_units(
        gaussian(1), groups=1, units=20, box=0.5, profiles=3000, generator=torch.Generator().manual_seed(0)
    )
    values = made[0].values(t) + affine[:, :1] + affine[:, 1:] * (t + 1)
    weights = torch.full_like(t, 1.0)
    weights[[0, -1]] = 0.5  # trapezoid
    errors = ((values - torch.exp(-(t**2) / 2)).square() * weights).sum(1) / 200
    assert abs(float(errors.mean()) - one_group_error(gaussian(1), units=20)) < 4 * float(errors.std()) / 3000**0.5


def test_representations_are_unbiased_networks():
    t = torch.linspace(-1, 1, 9, dtype=torch.float64)
    made, affine = profile_units(
        gaussian(1), groups=3, units=5, box=0.5, profiles=20_000, generator=torch.Generator().manual_seed(0)
    )
    assert [group.order for group in made] == [2, 1, 0]
    values = sum(group.values(t) for group in made) + affine[:, :1] + affine[:, 1:] * (t + 1)
    off = (values.mean(0) - torch.exp(-(t**2) / 2)).abs() - 4.5 * values.std(0) / 20_000**0.5
    assert float(off.max()) < 1e-12


def test_representation_in_the_plane():
    x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 1.4 - 0.7
    exact = torch.exp(-x.square().sum(1) / 2)
    nets = [representation(gaussian(2), groups=a, units=1600) for a in (1, 3)]
    errors = [float((net(x).detach() - exact).square().mean()) for net in nets]
    assert errors[1] < 1e-5
    assert errors[1] < errors[0] / 20
    with pytest.raises(ValueError, match="expected frequencies below"):
        representation(gaussian(1, scale=0.1), groups=2)
    with pytest.raises(ValueError, match="at least one group"):
        representation(gaussian(1), groups=0)


@pytest.mark.parametrize("method", ["literal", "line-search", "auto"])
def test_one_sample_is_fitted_by_every_scheme_that_contracts(method):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.tensor([[0.3, -0.2]], dtype=torch.float64), torch.tensor([1.5], dtype=torch.float64)
    net = corrective(x, y, method=method, groups=4, group_width=2000, generator=generator)
    assert abs(net(x).item() - 1.5) < 0.5


def test_a_literal_group_of_one_point_takes_its_separation():
    x = torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    rest, generator = torch.ones(1, 1, dtype=torch.float64), torch.Generator().manual_seed(0)
    group = literal_group(x, rest, units=40_000, theta=separation(x), generator=generator)
    assert abs(float(group.outputs(x)) - 1) < 0.2
