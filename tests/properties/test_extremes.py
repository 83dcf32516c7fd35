"""What benchmarks/properties.py finds of every public function, for the topics that are tried soonest."""

import importlib.util
from pathlib import Path

import pytest
import torch

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
