import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import theodolite as th
from theodolite.construct.capacity import CorrectiveFeatures
from theodolite.theory.capacity import smoothed_relu

GENERATED = estimator_checks_generator(CorrectiveFeatures(order=1), mark="skip")
CHECKS = [
    pytest.param(estimator, check, id=f"{getattr(check, 'func', check).__name__}-{i}")
    for i, (estimator, check) in enumerate(GENERATED)
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_features_are_the_formula():
    x = np.random.default_rng(0).normal(size=(7, 5))
    made = th.CorrectiveFeatures(40, order=2, smoothing_width=0.5, bias_range=1.5, subset=2, random_state=3).fit(x)
    seen = x @ made.directions_ - made.thresholds_
    expected = smoothed_relu(torch.from_numpy(seen), 2, smoothing_width=0.5).numpy() / np.sqrt(40)
    assert np.allclose(made.transform(x), expected, rtol=1e-13)
    assert ((made.directions_ != 0).sum(0) == 2).all()
    assert np.abs(made.thresholds_).max() <= 1.5
    assert list(made.get_feature_names_out()[:2]) == ["correctivefeatures0", "correctivefeatures1"]


def test_variance_of_a_direction_does_not_depend_on_the_subset():
    x = np.zeros((1, 30))
    for subset in (None, 3, 99):
        made = CorrectiveFeatures(4000, subset=subset, random_state=0).fit(x)
        assert (made.directions_**2).sum(0).mean() == pytest.approx(
            1.0, rel=0.06
        )  # 3 scatter sqrt(2/3), over sqrt(4000): 1.3 %


def test_half_the_memory_in_single_precision():
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    double = CorrectiveFeatures(10, random_state=0).fit(x.astype(np.float64)).transform(x.astype(np.float64))
    single = CorrectiveFeatures(10, random_state=0).fit(x).transform(x)
    assert single.dtype == np.float32
    assert np.allclose(single, double, rtol=1e-5, atol=1e-6)


def test_smooth_units_learn_a_polynomial_in_a_pipeline():
    x = np.random.default_rng(0).uniform(-1, 1, size=(1500, 4))
    y = x[:, 0] * x[:, 1] - x[:, 2] ** 2 + 0.5 * x[:, 3]
    scores = [
        make_pipeline(CorrectiveFeatures(200, order=order, subset=2, random_state=0), Ridge(alpha=1e-7))
        .fit(x[:1000], y[:1000])
        .score(x[1000:], y[1000:])
        for order in (0, 1)
    ]
    assert 1 - scores[1] < (1 - scores[0]) / 10
    assert scores[1] > 0.999


def test_grid_search_on_digits():
    x, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), CorrectiveFeatures(300, random_state=0), LogisticRegression(C=100.0))
    search = GridSearchCV(pipeline, {"correctivefeatures__order": [0, 1]}, cv=2).fit(x[:600], y[:600])
    assert search.score(x[600:], y[600:]) > 0.9


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_components": 0},
        {"n_components": 2.5},
        {"order": -1},
        {"smoothing_width": 0.0},
        {"subset": 0},
        {"bias_range": -1.0},
    ],
)
def test_wrong_parameters(wrong):
    with pytest.raises(ValueError, match="expected"):
        CorrectiveFeatures(**wrong).fit([[0.0, 1.0], [1.0, 0.0]])
