import pytest

from theodolite.theory.capacity import (
    certain_capacity,
    classifier_capacity,
    construction_capacity,
    impossible_from,
    most_pieces,
    theorem_capacity,
    theorem_widths,
)


@pytest.mark.parametrize("activation", ["relu", "hardtanh"])
@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_recommended_widths_hold_the_points_and_little_less_would_not(activation, outputs):
    for samples in (1, 2, 7, 100, 8551, 100_000):
        first, second = theorem_widths(samples, activation=activation, outputs=outputs)
        assert theorem_capacity(first, second, activation=activation, outputs=outputs) >= samples
        unit = 4 if activation == "relu" else 2
        assert theorem_capacity(first - unit, second - unit * outputs, activation=activation, outputs=outputs) < samples
        # 10% over 4 N d_y at most, once the steps in which widths come are small beside them
        if samples >= 8551:
            assert first * second <= 1.1 * unit**2 / 4 * samples * outputs


def test_the_question_of_the_tiny_network():
    """Of a net with fewer than 4 and 4 d_y units the theorem promises nothing; for 8,551 sentences it asks for 264."""
    assert theorem_capacity(3, 100) == theorem_capacity(100, 7, outputs=2) == 0
    assert theorem_capacity(264, 264, outputs=2) == 8712
    assert max(theorem_widths(8551, outputs=2)) == 264
    assert classifier_capacity([188, 188, 8], classes=2) >= 8551
    assert classifier_capacity([188, 188, 7], classes=2) == 0


def test_below_never_exceeds_above():
    for widths in ([1], [5], [4, 4], [9, 16], [30, 7], [5, 5, 5], [8, 8, 8, 8]):
        for activation in ("relu", "hardtanh"):
            assert certain_capacity(widths, activation=activation) < impossible_from(widths, activation=activation)


def test_the_sharper_count_is_sharper():
    assert impossible_from([8, 8]) < 2 * 8 * 8 + 8 + 3  # yun2019, Theorem 3.3
    assert impossible_from([8]) == 8 + 3
    assert most_pieces([3, 4], activation="hardtanh") == 1 + 6 + 8 * 7


def test_the_construction_holds_twice_what_the_theorem_promises_for_relu():
    assert construction_capacity(200, 200) == 2 * theorem_capacity(200, 200)


def test_a_narrow_layer_after_the_two_stops_the_outputs():
    assert certain_capacity([100, 100, 2], outputs=3) == 3  # what the last layer holds alone
    assert certain_capacity([100, 120, 3], outputs=3) == 2 * 100 * 10


@pytest.mark.parametrize(
    "call",
    [
        lambda: certain_capacity([]),
        lambda: certain_capacity([3, 0]),
        lambda: theorem_widths(0),
        lambda: most_pieces([3], activation="tanh"),
    ],
)
def test_bad_input_gets_one_clear_line(call):
    with pytest.raises(ValueError, match="^expected"):
        call()
