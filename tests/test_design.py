import json

import pytest
import torch

import theodolite as th


def test_the_critical_point_and_the_usual_ones_are_compared():
    design = th.design(activation="relu", depth=8, width=128)
    assert [option.name for option in design.options] == ["critical", "He", "Xavier (LeCun)", "PyTorch default"]
    assert design.criticality.weight_variance == 2.0
    assert design.options[0].phase.name == "critical"
    assert design.options[2].phase.name == "vanishing"
    assert {reading.where for reading in design.readings} == {option.name for option in design.options}
    assert all(reading.status in ("agrees", "inconclusive") for reading in design.readings)


def test_random_networks_meet_the_prediction_where_width_is_large():
    design = th.design(activation="tanh", depth=6, width=1024)
    assert [reading.status for reading in design.readings] == ["agrees"] * 8
    assert len(design.readings[0].series.x) == 7


def test_a_half_stable_activation_starts_at_its_fixed_point():
    design = th.design(activation="silu", depth=12, width=512)
    critical = design.options[0]
    assert critical.phase.name == "critical"
    assert critical.phase.fixed_point == pytest.approx(14.3201736)
    assert design.readings[0].measured == pytest.approx(1.0, abs=0.2)


def test_an_activation_without_criticality_still_gets_its_comparison():
    design = th.design(activation="sigmoid", depth=4, width=64)
    assert design.criticality.kind == "none"
    assert "critical" not in [option.name for option in design.options]
    assert "never both 1" in design.text()


def test_any_callable_and_the_user_s_data():
    x = 3 * torch.randn(50, 20, generator=torch.Generator().manual_seed(0))
    design = th.design(activation=lambda z: z * torch.sigmoid(2 * z), depth=4, width=64, data=(x, torch.zeros(50)))
    assert design.criticality.fixed_point == pytest.approx(14.3201736 / 4, rel=1e-6)
    assert "<svg" in design.html()
    assert "hidden layers" in design._repr_html_()


def test_json_holds_everything():
    document = json.loads(th.design(activation="gelu", depth=3, width=32).json())
    assert document["criticality"]["kind"] == "half-stable"
    assert document["initialisations"][0]["phase"]["correlation_depth"] is None  # infinite
    assert len(document["readings"]) == 8


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    th.design(activation="elu", depth=3, width=32)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("keywords", [{"depth": 0}, {"width": 0}, {"activation": "nope"}, {"data": torch.ones(1, 3)}])
def test_bad_input_gets_one_clear_line(keywords):
    with pytest.raises(ValueError, match="^expected"):
        th.design(**{"depth": 3, "width": 16, **keywords})
