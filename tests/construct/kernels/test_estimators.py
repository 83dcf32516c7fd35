import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from theodolite.construct.kernels import NetworkKernelClassifier, NetworkKernelRegressor
from theodolite.theory import Mlp
from theodolite.theory.kernels import mlp_kernels

CHECKS = [
    pytest.param(estimator, check, id=f"{type(estimator).__name__}-{getattr(check, 'func', check).__name__}-{i}")
    for model in (NetworkKernelRegressor(), NetworkKernelClassifier())
    for i, (estimator, check) in enumerate(estimator_checks_generator(model, mark="skip"))
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_regressor_is_ridge_with_the_kernel():
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(20, 3)), generator.normal(size=20)
    model = NetworkKernelRegressor(hidden_layers=2, activation="erf", weight_variance=1.5, kind="nngp", ridge=0.1).fit(
        x, y
    )
    kernel = mlp_kernels(Mlp(2, "erf", 1.5, 0.1), torch.from_numpy(x)).nngp.numpy()
    expected = y.mean() + kernel @ np.linalg.solve(kernel + 0.1 * np.eye(20), y - y.mean())
    assert np.allclose(model.predict(x), expected, rtol=1e-10)
    assert model.jitter_ == 0.0


def test_pipeline_and_grid_search_on_digits():
    x, y = load_digits(return_X_y=True)
    x, y = x[:400], y[:400]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), NetworkKernelClassifier()),
        {"networkkernelclassifier__hidden_layers": [0, 1], "networkkernelclassifier__activation": ["relu", "erf"]},
        cv=2,
    ).fit(x[:300], y[:300])
    assert search.best_params_["networkkernelclassifier__hidden_layers"] == 1
    assert search.score(x[300:], y[300:]) > 0.9


def test_wrong_parameters():
    with pytest.raises(ValueError, match="nngp"):
        NetworkKernelRegressor(kind="rbf").fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="ridge"):
        NetworkKernelRegressor(ridge=-1.0).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_those_of_draws_with_the_errors_of_points_left_out(kind, classes):
    generator = np.random.default_rng(0)
    x, new = generator.normal(size=(30, 3)), generator.normal(size=(5, 3))
    y = np.arange(30) % classes
    parameters = {"hidden_layers": 2, "activation": "erf", "kind": kind, "ridge": 0.3}
    model = NetworkKernelClassifier(**parameters).fit(x, y)
    targets, errors = np.eye(classes)[y] - 1 / classes, []
    for i in range(30):
        others = np.delete(np.arange(30), i)
        kernel = getattr(mlp_kernels(Mlp(2, "erf", 2.0, 0.1), torch.from_numpy(x)), kind).numpy()
        inverse = np.linalg.inv(kernel[np.ix_(others, others)] + 0.3 * np.eye(29))
        errors.append(targets[i] - kernel[i, others] @ inverse @ targets[others])
    means = model._outputs(new)
    draws = means[:, None] + np.sqrt(np.mean(np.square(errors))) * generator.normal(size=(5, 200_000, classes))
    shares = np.stack([(draws.argmax(2) == c).mean(1) for c in range(classes)], axis=1)
    found = model.predict_proba(new)
    assert found == pytest.approx(shares, abs=0.006)  # five errors of a share of 200,000 draws
    assert found.sum(1) == pytest.approx(1)
    assert (model.classes_[found.argmax(1)] == model.predict(new)).all()


def test_probabilities_on_digits_are_as_sure_as_they_are_right():
    x, y = load_digits(return_X_y=True)
    model = NetworkKernelClassifier().fit(x[:600] / 16, y[:600])
    said = model.predict_proba(x[600:1200] / 16)
    assert said.max(1).mean() == pytest.approx((said.argmax(1) == y[600:1200]).mean(), abs=0.1)
