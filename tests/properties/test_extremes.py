"""What benchmarks/properties.py finds of every public function, for the topics that are tried soonest."""

import importlib.util
from pathlib import Path

import pytest
import torch

from theodolite.core.checks import InputError
from theodolite.measure.dynamics import subspace_share
from theodolite.measure.experiments import largest_stable_gain, separating_flow
from theodolite.measure.propagation import log_spread
from theodolite.theory.dynamics import noise_floor

PLACE = importlib.util.spec_from_file_location("properties", Path(__file__).parents[2] / "benchmarks" / "properties.py")
properties = importlib.util.module_from_spec(PLACE)
PLACE.loader.exec_module(properties)


@pytest.mark.parametrize("topic", ["bias", "collapse", "kernels", "spectra"])
def test_scales_types_and_sizes_beyond_the_usual_are_answered_rightly_or_refused(topic):
    table = properties.table_of([topic])
    assert len(table) > 5
    broken = {
        (name, column): word
        for name, words in table.items()
        for column, word in words.items()
        if properties.kind(word) == "broken"
    }
    assert not broken


def test_a_function_that_loses_digits_scale_or_nan_is_found():
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    overflows = properties.properties(lambda x: float(x.to(torch.float32).square().sum()), {"x": x})
    assert "1e+30" in overflows["scale"]
    silent = properties.properties(lambda x: float(x[0].real.sum()), {"x": x})
    assert silent["NaN"] == "loses NaN of x"
    assert silent["complex"] == "drops the imaginary part of x"
    rounds = properties.properties(lambda x: (x if x.dtype == torch.float64 else x.bfloat16()).sum(0), {"x": x})
    assert rounds["float32"].startswith("off by")
    crashes = properties.properties(lambda x: x[3], {"x": x})
    assert crashes["empty"] == properties.REFUSES
    assert properties.properties(lambda x: x.mean(), {"x": x})["scale"] == "holds"


def test_nearly_every_public_function_is_tried():
    known = properties.sound_arguments()
    pairs = [known.functions_of(topic) for topic in properties.TOPICS]
    every, able = (sum(len(pair[place]) for pair in pairs) for place in (0, 1))
    assert able >= 0.95 * every, f"{able} of {every}: annotations are read from the sources, are they still understood?"


NAN = torch.tensor([[1.0, float("nan")], [0.0, 1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: noise_floor(float("nan"), lr=0.1, noise_variance=1.0),  # was infinite, as for a step too long
        lambda: subspace_share(NAN[0], NAN[1:]),  # was 1, since the smaller of 1 and NaN is 1
        lambda: log_spread(torch.cat([torch.ones(20, 2), NAN])),  # was left out as a dead network
        lambda: largest_stable_gain(None, NAN, NAN[1], bracket=(1.0, 3.0)),  # was the end of the bracket
        lambda: separating_flow(NAN.numpy(), log_time=50.0),  # never came back
        lambda: separating_flow(NAN.numpy()[1:], log_time=float("nan")),  # nor did this
    ],
    ids=["noise_floor", "subspace_share", "log_spread", "largest_stable_gain", "separating_flow", "its time"],
)
def test_nan_is_refused_where_a_number_came_of_it(ask):
    with pytest.raises(InputError, match="expected"):
        ask()
