"""Random networks of the size that is asked for."""

import theodolite as th


def test_random_networks_meet_the_prediction_where_width_is_large():
    design = th.design(activation="tanh", depth=6, width=1024)
    assert [reading.status for reading in design.readings[:8]] == ["agrees"] * 8
    assert len(design.readings[0].series.x) == 7


def test_the_spread_of_gradients_is_measured_and_advises_a_width():
    narrow, wide = (th.design(activation="relu", depth=12, width=width).answers[-1] for width in (24, 300))
    (reading,) = narrow.readings
    assert narrow.question.name == "spread of gradients"
    assert reading.status == "agrees"
    assert "widen to 1" in reading.meaning
    assert "One learning rate works for every seed" in wide.readings[0].meaning
    (linear,) = th.design(activation="identity", depth=6, width=40).answers[-1].readings
    assert linear.status == "agrees"
    (tanh,) = th.design(activation="tanh", depth=6, width=40).answers[-1].readings
    assert tanh.status == "no reference"


def test_no_row_advises_what_it_is():
    design = th.design(activation="relu", depth=30, width=64)
    assert "try" not in " ".join(reading.meaning for reading in design.answers[0].readings)
