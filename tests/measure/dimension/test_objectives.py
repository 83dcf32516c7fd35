import json
import math

import numpy as np
import pytest

import theodolite as th
from theodolite.measure.dimension import objectives


def curve(dimension):
    return 0.98 * (1 - math.exp(-((dimension / 60) ** 0.8)))


TRUE = 60 * math.log(10) ** 1.25  # where the curve is 90 % of 0.98


def train(dimension, seed):
    return dimension, seed


def evaluate(trained):
    dimension, seed = trained
    noise = 0.01 * np.random.default_rng([dimension or 0, seed]).standard_normal()
    return (0.98 if dimension is None else curve(dimension)) + noise


def test_finds_the_crossing_within_its_error():
    pulls = []
    for run in range(20):
        found = th.objective_dimension(lambda d, s, run=run: (d, s + 100 * run), evaluate)
        pulls.append((found.value - TRUE) / found.stderr)
        assert 0 < found.stderr < 0.2 * found.value
    assert abs(np.mean(pulls)) < 1  # 20 pulls: 0.22 if unbiased
    assert 0.4 < np.std(pulls) < 1.6
    assert max(map(abs, pulls)) < 4


def test_without_noise_the_crossing_is_exact_to_interpolation():
    found = th.objective_dimension(train, lambda t: 0.98 if t[0] is None else curve(t[0]), repeats=2)
    assert found.value == pytest.approx(TRUE, rel=0.02)
    assert found.stderr < 1e-9
    assert th.objective_dimension(train, lambda t: 0.98 if t[0] is None else curve(t[0]), repeats=1).stderr > 0


def test_a_sharp_step_is_found():
    found = th.objective_dimension(train, lambda t: float(t[0] is None or t[0] >= 300), repeats=1)
    assert found.value == pytest.approx(300, rel=0.25)


def test_one_dimension_can_be_enough_and_all_can_be_too_few():
    assert th.objective_dimension(train, lambda t: 1.0).value == 1
    found = th.objective_dimension(train, evaluate, largest=100)
    assert math.isnan(found.value)
    assert "not reached by 100" in found.text()
    assert found.rows()[-1]["dimension"] == 100


def test_a_stopped_run_goes_on(tmp_path):
    calls = []

    def counted(dimension, seed):
        calls.append((dimension, seed))
        if len(calls) == 10:
            raise KeyboardInterrupt
        return dimension, seed

    with pytest.raises(KeyboardInterrupt):
        th.objective_dimension(counted, evaluate, out=tmp_path)
    with (tmp_path / "scores.jsonl").open("a") as file:
        file.write('{"dimension": 12')  # cut short
    first = len(calls)
    found = th.objective_dimension(counted, evaluate, out=tmp_path)
    assert len(calls) == len(set(calls)) + 1  # only the one that failed ran twice
    before = len(calls)
    assert th.objective_dimension(counted, evaluate, out=tmp_path) == found
    assert len(calls) == before > first
    assert found == th.objective_dimension(train, evaluate)
    lines = (tmp_path / "scores.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["dimension"] is None


def test_several_workers_agree_with_one():
    alone = th.objective_dimension(train, evaluate, repeats=2)
    assert th.objective_dimension(train, evaluate, repeats=2, jobs=2) == alone


def test_two_dimensions_at_once_find_the_crossing(monkeypatch):
    def here(score, tasks, **_):
        return ((index, score(*task)) for index, task in enumerate(tasks))

    monkeypatch.setattr(objectives, "completed", here)
    wide = th.objective_dimension(train, evaluate, repeats=1, jobs=2)
    assert abs(wide.value - TRUE) < 0.25 * TRUE


def test_the_answer_can_be_shown():
    found = th.objective_dimension(train, evaluate)
    assert found.text().startswith("d90 = ")
    assert found.series.log == "x"
    assert len(found.series.x) == len(found.rows()) == len(found.dimensions)
    assert found.estimate == th.Estimate(found.value, found.stderr)


def test_bad_input():
    with pytest.raises(ValueError, match="expected a fraction"):
        th.objective_dimension(train, evaluate, fraction=1.5)
    with pytest.raises(ValueError, match="expected a positive score"):
        th.objective_dimension(train, lambda t: -1.0)
    with pytest.raises(ValueError, match="expected a finite score"):
        th.objective_dimension(train, lambda t: math.nan)
