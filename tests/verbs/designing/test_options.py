"""The usual initializations, and the inputs that they are tried on."""

import pytest
import torch

import theodolite as th
from theodolite.core.checks import InputError
from theodolite.verbs.designing.options import columns_of, signal_of


def test_the_critical_point_and_the_usual_ones_are_compared():
    design = th.design(activation="relu", depth=8, width=128)
    assert [option.name for option in design.options] == ["critical", "He", "Xavier (LeCun)", "PyTorch default"]
    assert design.criticality.weight_variance == 2.0
    assert design.options[0].phase.name == "critical"
    assert design.options[2].phase.name == "vanishing"
    assert {reading.where for reading in design.answers[0].readings} == {option.name for option in design.options}
    assert all(reading.status in ("agrees", "inconclusive") for reading in design.readings)


def test_a_half_stable_activation_starts_at_its_fixed_point():
    design = th.design(activation="silu", depth=12, width=512)
    critical = design.options[0]
    assert critical.phase.name == "critical"
    assert critical.phase.fixed_point == pytest.approx(14.3201736)
    assert design.readings[0].measured == pytest.approx(1.0, abs=0.2)


def test_the_signal_of_inputs_is_their_power_and_the_cosine_between_them():
    assert signal_of(None) == (1.0, 0.5)
    x = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    power, cosine = signal_of(x)
    assert power == pytest.approx(16 / 6)
    assert cosine == pytest.approx((0 + 2 / 2**0.5) / 3, rel=1e-6)
    with pytest.raises(InputError, match="at least two inputs"):
        signal_of(x[:1])


def test_columns_are_tensors_or_none():
    assert columns_of(None) == (None, None)
    x, y = columns_of(([[1.0, 2.0]], [1]))
    assert x.shape == (1, 2) and y.tolist() == [1]
    assert columns_of([[1.0, 2.0]])[1] is None
