"""Known learners get the right verdict: exact ones, random ones, estimators, chaotic and faulty ones."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from torch import nn

import theodolite as th
from theodolite.measure.bias import random_rotation, rotated_rows, rotation_gap


def problem(n=20, d=8, seed=0):
    generator = np.random.default_rng(seed)
    x, test = generator.normal(size=(n, d)), generator.normal(size=(12, d))
    return x, x[:, 0] + 0.5 * x[:, 1] ** 2, test


def test_rotations_are_uniform_and_preserve_products():
    generator = torch.Generator().manual_seed(0)
    mean = torch.stack([random_rotation(4, generator) for _ in range(600)])
    assert mean.mean(0).abs().max() < 4 * 0.5 / 600**0.5 * 1.5
    for n in (3, 30):
        x = torch.randn(n, 10, generator=generator, dtype=torch.float64)
        turned = rotated_rows(x, generator)
        torch.testing.assert_close(turned @ turned.T, x @ x.T)
        assert (turned - x).abs().max() > 0.1


@pytest.mark.parametrize(("learner", "verdict"), [(Ridge(), "invariant"), (Lasso(alpha=0.1), "not invariant")])
def test_estimators(learner, verdict):
    x, y, test = problem()
    result = th.rotation_invariance(learner, x, y, test)
    assert result.verdict == verdict
    assert result.seen == 20 and result.dimension == 8
    assert verdict in result.text() and verdict in result._repr_html_()
    assert not hasattr(learner, "coef_")


def test_classifiers_are_compared_by_scores():
    x, y, test = problem()
    labels = np.where(y > 0, "yes", "no")
    assert th.rotation_invariance(LogisticRegression(tol=1e-10), x, labels, test).verdict == "invariant"


def trained(optimizer, steps=15, dtype=torch.float64):
    def learn(x, y, test):
        x, y, test = (torch.as_tensor(part, dtype=dtype) for part in (x, y, test))
        w = torch.zeros(x.shape[1], dtype=dtype, requires_grad=True)
        stepping = optimizer([w])
        for _ in range(steps):
            stepping.zero_grad()
            (x @ w - y).square().mean().backward()
            stepping.step()
        return (test @ w).detach()

    return learn


def test_torch_learners_in_either_precision():
    x, y, test = problem()
    for dtype in (torch.float32, torch.float64):
        descent = th.rotation_invariance(trained(lambda p: torch.optim.SGD(p, lr=0.1), dtype=dtype), x, y, test)
        adam = th.rotation_invariance(trained(lambda p: torch.optim.Adam(p, lr=0.1), dtype=dtype), x, y, test)
        assert (descent.verdict, adam.verdict) == ("invariant", "not invariant")
    tensors = [torch.as_tensor(part, dtype=torch.float32) for part in (x, y, test)]
    assert (
        th.rotation_invariance(trained(lambda p: torch.optim.SGD(p, lr=0.1), dtype=torch.float32), *tensors).verdict
        == "invariant"
    )


def network(optimizer, rotation_aware=False):
    def learn(x, y, test, rotation=None):
        x, y, test = (torch.as_tensor(part, dtype=torch.float64) for part in (x, y, test))
        model = nn.Sequential(nn.Linear(x.shape[1], 16), nn.Tanh(), nn.Linear(16, 1)).double()
        nn.init.normal_(model[0].weight, 0, x.shape[1] ** -0.5)  # from the global random state
        if rotation is not None:
            model[0].weight.data = model[0].weight.data @ rotation.T
        stepping = optimizer(model.parameters())
        for _ in range(30):
            stepping.zero_grad()
            (model(x)[:, 0] - y).square().mean().backward()
            stepping.step()
        return model(test)[:, 0]

    return learn if rotation_aware else lambda x, y, test: learn(x, y, test)


def test_random_networks_are_judged_in_law_or_in_pairs():
    x, y, test = problem(n=30, d=6)
    x = np.sign(x)
    y = x[:, 0]
    state = torch.get_rng_state()
    descent = th.rotation_invariance(network(lambda p: torch.optim.SGD(p, lr=0.1)), x, y, test, repeats=24)
    assert torch.equal(state, torch.get_rng_state())
    assert descent.verdict == "invariant" and descent.measured.shift is not None
    paired = th.rotation_invariance(network(lambda p: torch.optim.SGD(p, lr=0.1), True), x, y, test, repeats=3)
    assert paired.verdict == "invariant" and paired.measured.gap.value < 1e-9
    adam = th.rotation_invariance(network(lambda p: torch.optim.Adam(p, lr=0.05), True), x, y, test, repeats=8)
    assert adam.verdict == "not invariant"


def test_random_learners_that_know_their_features_are_found_out():
    def noisy_lasso(x, y, test):
        return test @ Lasso(alpha=0.2).fit(x, y).coef_ + 0.1 * np.random.normal(size=len(test))

    x, y, test = problem()
    assert th.rotation_invariance(noisy_lasso, x, y, test, repeats=16).verdict == "not invariant"


def test_the_level_of_the_test_in_law():
    """Under invariance three in a thousand may be called not invariant: of twenty-five, hardly one."""

    def noise(x, y, test):
        return test @ np.linalg.pinv(x) @ y + np.random.standard_cauchy(len(test))

    x, y, test = problem()
    verdicts = [th.rotation_invariance(noise, x, y, test, repeats=6, seed=s).verdict for s in range(25)]
    assert verdicts.count("not invariant") <= 1
    few = th.rotation_invariance(noise, x, y, test, repeats=2)
    assert few.verdict == "cannot tell" and "more repeats" in few.text()


def test_a_chaotic_learner_cannot_be_told():
    def chaos(x, y, test):
        z = test @ (np.linalg.pinv(x) @ y)
        z = (z - z.min()) / np.ptp(z) * 0.9 + 0.05
        for _ in range(60):
            z = 4 * z * (1 - z)
        return z

    x, y, test = problem()
    assert th.rotation_invariance(chaos, x, y, test).verdict == "cannot tell"


def test_faults_are_outcomes():
    x, y, test = problem()
    for learner, words in (
        (lambda x, y, test: np.full(len(test), np.nan), "not finite"),
        (lambda x, y, test: np.ones(3), "expected 12 predictions"),
        (lambda x, y, test: 1.0, "expected 12 predictions"),
        (lambda x, y, test: "no", "as numbers"),
        (lambda x, y, test: np.zeros(len(test)), "nothing was learned"),
    ):
        result = th.rotation_invariance(learner, x, y, test)
        assert result.verdict == "invalid"
        assert words in result.text()


def test_wrong_input_is_named():
    x, y, test = problem()
    with pytest.raises(ValueError, match="expected x as rows"):
        th.rotation_invariance(Ridge(), x[0], y, test)
    with pytest.raises(ValueError, match="expected as many features"):
        th.rotation_invariance(Ridge(), x, y, test[:, :3])
    with pytest.raises(ValueError, match="expected at least two repeats"):
        th.rotation_invariance(Ridge(), x, y, test, repeats=1)
    with pytest.raises(TypeError, match="expected a learner"):
        th.rotation_invariance(3, x, y, test)


def test_bounds():
    x, y, test = problem(n=4, d=8)
    result = th.rotation_invariance(Ridge(), x, y, test)
    assert (result.hadamard_bound, result.gaussian_bound) == (0.5, 0.25)
    generator = torch.Generator().manual_seed(0)
    assert rotation_gap(Ridge(), x, y, test, generator=generator).rounding < 1e-12
