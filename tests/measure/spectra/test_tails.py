"""The fast fit against brute force over every threshold; rivals; the bootstrap."""

import math

import numpy as np
import pytest
import torch

from theodolite.measure.spectra import bootstrap_p_value, likelihood_ratio, power_law
from theodolite.measure.spectra.tails import _clauset, _fit_from


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def samples(seed=0):
    random = np.random.default_rng(seed)
    noise = np.linalg.svd(random.normal(size=(150, 100)), compute_uv=False) ** 2
    return {
        "power law": 1 + random.pareto(1.5, 400),
        "exponential": random.exponential(size=300),
        "ties": np.round(1 + random.pareto(1.5, 400), 1),
        "noise": noise,
        "tiny": 1 + random.pareto(1.5, 9),
        "huge scale": 1e200 * (1 + random.pareto(2.0, 100)),
    }


def brute_force(values):
    """Every distinct value as threshold; two-sided distance with ties together; sums by fsum."""
    found = []
    for xmin in np.unique(values)[:-1]:
        tail = values[values >= xmin]
        rate = tail.size / math.fsum(np.log(tail / xmin))
        places, counts = np.unique(tail, return_counts=True)
        model = 1 - (places / xmin) ** -rate
        upper = np.cumsum(counts) / tail.size
        lower = upper - counts / tail.size
        found.append((max(np.abs(model - upper).max(), np.abs(model - lower).max()), 1 + rate, xmin, tail.size))
    return min(found, key=lambda row: row[0])


def weightwatcher_brute_force(values):
    """The loop of WeightWatcher 0.7.7, from its description: thresholds in order, the lower step of the distribution."""
    x = np.sort(values[values > 1e-5])
    n = x.size - np.arange(x.size)
    found = []
    for i in range(x.size - 1):
        small = x.size < 20
        if small and n[i] < 8:
            continue
        rate = (n[i] - small) / np.log(x[i:] / x[i]).sum()
        found.append((np.abs(1 - (x[i:] / x[i]) ** -rate - np.arange(n[i]) / n[i]).max(), 1 + rate, x[i], n[i]))
    return min(found, key=lambda row: row[0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", samples())
def test_fit_equals_brute_force_over_all_thresholds(name, seed):
    values = samples(seed)[name]
    fit, (distance, alpha, xmin, tail) = power_law(values), brute_force(values)
    assert fit.alpha == pytest.approx(alpha, rel=1e-12)
    assert fit.distance == pytest.approx(distance, abs=1e-12)
    assert (fit.xmin, fit.tail) == (xmin, tail)
    assert fit.stderr == pytest.approx((alpha - 1) / math.sqrt(tail))


@pytest.mark.parametrize("name", ["power law", "exponential", "noise", "tiny"])
def test_weightwatcher_rule_equals_its_loop(name):
    values = samples()[name]
    fit, (distance, alpha, xmin, tail) = power_law(values, rule="weightwatcher"), weightwatcher_brute_force(values)
    assert fit.alpha == pytest.approx(alpha, rel=1e-10)
    assert fit.distance == pytest.approx(distance, abs=1e-12)
    assert (fit.xmin, fit.tail) == (xmin, tail)


def test_fit_knows_no_units_and_no_order():
    values = samples()["power law"]
    fit, other = power_law(values), power_law(torch.tensor(values[::-1].copy()) * 1e-7)
    assert other.alpha == pytest.approx(fit.alpha, rel=1e-12)
    assert other.xmin == pytest.approx(fit.xmin * 1e-7)


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [1.0], [2.0] * 50, [1.0, 2.0, 3.0], np.arange(1, 8)])
@pytest.mark.parametrize("rule", ["clauset", "weightwatcher"])
def test_too_few_values_have_a_reason(values, rule):
    fit = power_law(values, rule=rule)
    if rule == "clauset" or len(set(values)) < 2 or max(values) == 0:
        assert fit.reason
        assert math.isnan(fit.alpha)


def test_zeros_are_left_out_and_nan_is_refused():
    values = samples()["power law"]
    assert power_law(np.concatenate([np.zeros(50), np.full(5, 1e-20), values])).alpha == power_law(values).alpha
    with pytest.raises(ValueError, match="finite"):
        power_law([1.0, math.nan])
    with pytest.raises(ValueError, match="rule"):
        power_law(values, rule="mine")
    with pytest.raises(ValueError, match="generator"):
        power_law(values, refits=5)


def test_bootstrap_accepts_a_power_law_and_rejects_a_square_root():
    # under the law p-values are uniform: of 12 at most 3 below 0.05 but for 1 draw in 400
    random = np.random.default_rng(1)
    small = sum(
        power_law(1 + random.pareto(2.0, 300), refits=99, generator=generator(k)).p_value <= 0.05 for k in range(12)
    )
    assert small <= 3
    bent = power_law(np.sqrt(np.linspace(1, 100, 1000)), refits=99, generator=generator())
    assert bent.p_value == pytest.approx(0.01)
    again = power_law(np.sqrt(np.linspace(1, 100, 1000)), refits=99, generator=generator())
    assert again == bent


def test_rivals_win_on_their_own_ground_and_not_on_the_power_laws():
    random = np.random.default_rng(2)
    values = 1 + random.pareto(1.5, 3000)
    fit = power_law(values)
    assert likelihood_ratio(values, fit, rival="exponential").ratio > 3
    assert likelihood_ratio(values, fit, rival="log-normal").p_value > 0.01
    assert likelihood_ratio(values, fit, rival="truncated power law").p_value > 0.01
    bent = np.exp(random.normal(size=3000))
    whole = power_law(bent[bent > 1])
    assert likelihood_ratio(bent, whole, rival="log-normal").ratio < 0


def with_threshold_one(values):
    from dataclasses import replace

    return replace(power_law(values), alpha=1 + values.size / np.log(values).sum(), xmin=1.0, tail=values.size)


def test_rivals_find_their_parameters():
    random = np.random.default_rng(3)
    light = 1 + random.exponential(0.5, 4000)
    exponential = likelihood_ratio(light, with_threshold_one(light), rival="exponential")
    assert exponential.parameters[0] == pytest.approx(2.0, rel=4 / math.sqrt(4000))
    assert exponential.ratio < -3
    cut = np.exp(1 + 0.8 * random.normal(size=8000))
    cut = cut[cut >= 1]
    bell = likelihood_ratio(cut, with_threshold_one(cut), rival="log-normal")
    assert bell.parameters == pytest.approx((1.0, 0.8), abs=0.06)
    proposal = 1 + random.pareto(1.0, 60_000)  # density x^-2; thinned by e^{-(x-1)/5}
    bent = proposal[random.uniform(size=proposal.size) < np.exp(-(proposal - 1) / 5)]
    truncated = likelihood_ratio(bent, with_threshold_one(bent), rival="truncated power law")
    assert truncated.parameters == pytest.approx((2.0, 0.2), abs=0.05)
    assert truncated.p_value < 1e-10


def test_comparison_refuses_what_it_cannot_compare():
    with pytest.raises(ValueError, match="rival"):
        likelihood_ratio([1.0], power_law(samples()["power law"]), rival="gamma")
    with pytest.raises(ValueError, match="fitted"):
        likelihood_ratio([1.0], power_law([1.0]), rival="exponential")


@pytest.mark.parametrize("count", [9, 30, 300])
def test_a_sample_is_settled_as_its_whole_fit_would_settle_it(count):
    """With ties among the values below the threshold, as resampling makes them; limits around the least distance."""
    random = np.random.default_rng(count)
    ties = random.choice(random.random(6), (20, count // 3))
    samples = np.sort(np.concatenate([ties, 1 + random.pareto(1.5, (20, count - count // 3))], axis=1), axis=1)
    least = np.array([_clauset(sample).distance for sample in samples])
    fitted = np.isfinite(least)
    assert fitted.any()
    assert (_fit_from(1.0, samples)[fitted] >= least[fitted] * (1 - 1e-12)).all()
    for factor, within in ((0.999, False), (1.001, True)):
        found = [
            _clauset(sample, limit=distance * factor).distance < distance * factor
            for sample, distance in zip(samples, least, strict=True)
        ]
        assert [each for each, known in zip(found, fitted, strict=True) if known] == [within] * fitted.sum()
        assert not any(each for each, known in zip(found, fitted, strict=True) if not known)


def test_the_distance_from_a_threshold_is_that_of_the_fit_there():
    """Of values that all lie in the tail of the best fit, and of too few distinct ones."""
    values = np.sort(1 + np.random.default_rng(0).pareto(2.0, 200))
    fit = _clauset(values)
    assert _fit_from(fit.xmin, values[None])[0] == pytest.approx(fit.distance, rel=1e-12)
    assert _fit_from(1.0, np.repeat([[1.0, 2.0]], 5, axis=1))[0] == np.inf


def test_a_p_value_that_is_large_is_known_after_a_few_samples():
    """Ten samples that fit no better end it: their share is the p-value, and it costs no more samples than that."""
    values = 1 + np.random.default_rng(3).pareto(2.0, 300)
    fit = power_law(values)
    many = [bootstrap_p_value(values, fit, refits=n, generator=generator(0)) for n in (200, 2000)]
    assert many[0] == many[1] > 0.05
    assert 10 / many[0] == pytest.approx(round(10 / many[0]))
