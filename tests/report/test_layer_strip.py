"""The network as one strip: heights that can be compared along a row, and what has come far from its start."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import theodolite as th
from theodolite.core.reading import Band
from theodolite.report.layer_strip import FAR, MOST, cells_of
from theodolite.report.opening import Opening, StripLayer


def test_heights_are_logarithmic_from_the_smallest_to_the_largest():
    cells = cells_of("signal", [1.0, 10.0, 100.0], None)
    assert [cell.height for cell in cells] == [0.06, 0.53, 1.0]
    assert [cell.value for cell in cells] == ["1", "10", "100"]


def test_layers_that_are_alike_stand_in_the_middle():
    assert [cell.height for cell in cells_of("signal", [2.0, 2.0], None)] == [0.53, 0.53]


def test_what_is_zero_infinite_or_not_read_has_its_own_height():
    zero, infinite, unread = cells_of("signal", [0.0, math.inf, math.nan], None)
    assert (zero.height, infinite.height, unread.height) == (0.06, 1.0, 0.0)
    assert unread.value == "not measured"


def test_wrong_is_what_is_far_from_the_start_and_only_where_there_is_one():
    values = [1.0, 0.5 / FAR, 2 * FAR, math.inf, 0.5 * FAR]
    assert [cell.wrong for cell in cells_of("signal", values, 1.0)] == [False, True, True, True, False]
    assert not any(cell.wrong for cell in cells_of("signal", values, None))


@pytest.fixture(scope="module")
def vanishing():
    """The strip of a network whose signal dies: every layer passes on a thousandth."""
    torch.manual_seed(0)
    layers = []
    for _ in range(12):
        layers += [nn.Linear(16, 16), nn.Tanh()]
        nn.init.normal_(layers[-2].weight, std=1e-3)
        nn.init.zeros_(layers[-2].bias)
    model = nn.Sequential(*layers, nn.Linear(16, 1))
    data = (torch.randn(64, 16), torch.randn(64, 1))
    return th.survey(model, data=data, loss=mse_loss, cost="free").opening()


def test_layers_stand_in_the_order_in_which_they_run_with_their_kind_and_shape(vanishing):
    strip = vanishing.strip
    assert [layer.name for layer in strip][:3] == ["0", "2", "4"] and len(strip) == 13 <= MOST
    assert strip[0].kind == "Linear 16 × 16"
    assert {cell.row for cell in strip[0].cells} >= {"signal", "differences", "gradient"}


def test_a_signal_that_dies_falls_along_the_strip_and_is_wrong_at_its_end(vanishing):
    signal = [next(cell for cell in layer.cells if cell.row == "signal") for layer in vanishing.strip]
    heights = [cell.height for cell in signal[:12]]
    assert heights == sorted(heights, reverse=True) and heights[0] - heights[11] > 0.5
    assert not vanishing.diagnosis.healthy
    assert not signal[0].wrong and signal[8].wrong


def test_the_band_of_theory_stands_behind_its_bar_and_in_words():
    inside, beyond, without = cells_of("alpha", [3.0, 30.0, 5.0], None, [Band(2.0, 6.0), Band(high=6.0), None])
    assert inside.band[0] < inside.height < inside.band[1] and inside.expected == "2 … 6"
    assert beyond.band[0] == 0.0 and beyond.band[1] < beyond.height and beyond.expected == "≤ 6"
    assert without.band is None and without.expected == ""
    strip = (StripLayer("a", "Linear", (inside,)), StripLayer("b", "Linear", (beyond,)))
    assert "alpha 3 (expected 2 … 6)" in strip[0].words
    shown = Opening(strip=strip).values()
    assert shown["strip_bands"] and shown["strip_words"] == [
        ("alpha", "exponent of the tail of the weights' spectrum; 3 in the first layer, 30 in the last")
    ]
