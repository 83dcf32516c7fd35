"""The steps of estimating dimension, one by one."""

import numpy as np
import pytest
import torch

import theodolite as th
from theodolite.construct.dimension import manifold
from theodolite.measure.dimension import distinct_rows
from theodolite.verbs.dimensions.found import Found
from theodolite.verbs.dimensions.steps import above_noise, steps_of


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [
        (np.arange(200.0)[:, None] * [[1, 2, 3]], 0.95, 1.05),
        (np.stack(np.meshgrid(*[np.arange(30)] * 2), -1).reshape(-1, 2), 1.8, 2.1),
        (np.stack(np.meshgrid(*[np.arange(11)] * 3), -1).reshape(-1, 3), 2.6, 3.0),
        (np.random.default_rng(0).integers(0, 3, (500, 4)), 2.5, 4.0),
        (np.random.default_rng(0).integers(0, 10, (1000, 4)), 3.5, 4.0),
        (np.eye(60), 59, 59),
    ],
)
def test_lattices_have_a_finite_answer(x, low, high):
    found = th.dimension(x, picture=False)
    assert low <= found.best.value <= high
    assert all(np.isfinite(row["value"]) for row in found.rows())


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_no_scale_is_too_large(factor):
    x = np.random.default_rng(0).normal(size=(200, 3))
    plain, far = (th.dimension(scale * x, picture=False) for scale in (1.0, factor))
    assert far.best.value == pytest.approx(plain.best.value, rel=1e-9)
    assert {row["estimator"] for row in far.rows()} == {row["estimator"] for row in plain.rows()}


def test_no_answer_is_an_error_not_zero():
    x = manifold("sphere", 300, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="^expected a null space"):
        th.dimension(x, method="hessian")


def test_columns_of_noise_have_no_direction_above_it():
    random = np.random.default_rng(0)
    noise = random.normal(size=(400, 12))
    assert above_noise(noise).value == 0
    assert above_noise(np.concatenate([noise, noise[:, :2] + 0.1 * random.normal(size=(400, 2))], 1)).value == 2


def test_a_step_that_fails_is_skipped_with_its_reason_and_the_others_go_on(monkeypatch):
    def refuses(*_, **__):
        raise ValueError("no\nanswer")

    monkeypatch.setattr("theodolite.measure.dimension.dimension_mle", refuses)
    state = Found()
    for step in steps_of(distinct_rows(np.random.default_rng(0).normal(size=(60, 3))), state, None, False)[:5]:
        step()
    assert [(skip.instrument, skip.reason) for skip in state.skipped] == [("MLE", "no answer")]
    assert {"TwoNN", "correlation dimension"} <= set(state.values)


def test_labels_are_those_of_the_rows_that_are_kept():
    x = np.random.default_rng(0).normal(size=(60, 3))
    x[1] = x[0]
    state = Found()
    *_, picture = steps_of(distinct_rows(x), state, [str(place) for place in range(60)], True)
    picture()
    assert len(state.plane.places) == len(state.plane.labels) == 59
    assert state.plane.labels[:2] == ("0", "2")
    *_, picture = steps_of(distinct_rows(x), state, ["one"], True)
    picture()
    assert "expected one label a row, 60, got 1" in state.skipped[-1].reason
