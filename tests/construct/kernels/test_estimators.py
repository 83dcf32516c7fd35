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
def test_probabilities_are_those_of_draws_from_the_process(kind, classes):
    generator = np.random.default_rng(0)
    x, new = generator.normal(size=(30, 3)), generator.normal(size=(5, 3))
    y = generator.integers(0, classes, 30)
    model = NetworkKernelClassifier(hidden_layers=2, activation="erf", kind=kind, ridge=0.3).fit(x, y)
    every = torch.from_numpy(np.concatenate([x, new]))
    kernel = getattr(mlp_kernels(Mlp(2, "erf", 2.0, 0.1), every), kind).numpy()
    inverse = np.linalg.inv(kernel[:30, :30] + 0.3 * np.eye(30))
    targets = np.eye(classes)[y] - 1 / classes
    scale = np.einsum("ic,ij,jc->", targets, inverse, targets) / targets.size
    means = kernel[30:, :30] @ inverse @ targets
    variance = scale * (np.diag(kernel[30:, 30:] - kernel[30:, :30] @ inverse @ kernel[:30, 30:]) + 0.3)
    draws = means[:, None] + np.sqrt(variance)[:, None, None] * generator.normal(size=(5, 200_000, classes))
    shares = np.stack([(draws.argmax(2) == c).mean(1) for c in range(classes)], axis=1)
    found = model.predict_proba(new)
    assert found == pytest.approx(shares, abs=0.006)  # five errors of a share of 200,000 draws
    assert found.sum(1) == pytest.approx(1)
    assert (model.classes_[found.argmax(1)] == model.predict(new)).all()


def test_probabilities_do_not_hang_on_the_units_of_the_kernel():
    x, y = load_digits(return_X_y=True)
    one, other = (
        NetworkKernelClassifier(hidden_layers=0, weight_variance=c, bias_variance=0.0, ridge=c * 1e-3).fit(
            x[:200], y[:200]
        )
        for c in (1.0, 1e4)
    )
    assert one.predict_proba(x[200:220]) == pytest.approx(other.predict_proba(x[200:220]), abs=1e-8)
