import json
from itertools import pairwise

import pytest
import torch

import theodolite as th
from theodolite import catalogue
from theodolite.io.datasets import digits


def test_the_critical_point_and_the_usual_ones_are_compared():
    design = th.design(activation="relu", depth=8, width=128)
    assert [option.name for option in design.options] == ["critical", "He", "Xavier (LeCun)", "PyTorch default"]
    assert design.criticality.weight_variance == 2.0
    assert design.options[0].phase.name == "critical"
    assert design.options[2].phase.name == "vanishing"
    assert {reading.where for reading in design.answers[0].readings} == {option.name for option in design.options}
    assert all(reading.status in ("agrees", "inconclusive") for reading in design.readings)


def test_random_networks_meet_the_prediction_where_width_is_large():
    design = th.design(activation="tanh", depth=6, width=1024)
    assert [reading.status for reading in design.readings[:8]] == ["agrees"] * 8
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
    assert "never both 1" in " ".join(design.text().split())


def test_any_callable_and_the_user_s_data():
    x = 3 * torch.randn(50, 20, generator=torch.Generator().manual_seed(0))
    design = th.design(activation=lambda z: z * torch.sigmoid(2 * z), depth=4, width=64, data=(x, torch.zeros(50)))
    assert design.criticality.fixed_point == pytest.approx(14.3201736 / 4, rel=1e-6)
    assert "<svg" in design.html()
    assert "hidden layers" in design._repr_html_()


def test_json_holds_everything():
    document = json.loads(th.design(activation="gelu", depth=3, width=32).json())
    assert document["criticality"]["kind"] == "half-stable"
    assert document["initializations"][0]["phase"]["correlation_depth"] is None  # infinite
    assert len(document["readings"]) == 10
    assert document["learning_rates"]["single"] > 0


def test_step_sizes_fall_with_width_and_are_those_of_random_networks():
    narrow, wide = (th.design(activation="tanh", depth=2, width=width) for width in (64, 256))
    # as one over the width, times the margin for networks of that width, (1 + sqrt(depth / width))^2
    margin = ((1 + (2 / 64) ** 0.5) / (1 + (2 / 256) ** 0.5)) ** 2
    assert narrow.rates.single / wide.rates.single * margin == pytest.approx(4, rel=0.1)
    (reading,) = narrow.answers[1].readings
    assert reading.status in ("agrees", "inconclusive")
    assert "learning rates" in narrow.text()


def test_the_kernel_is_asked_how_it_would_learn_the_data():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 10, generator=generator)
    design = th.design(activation="relu", depth=2, width=32, data=(x, (x[:, 0] > 0).long()))
    losses = design.kernel.losses
    assert all(later < earlier for earlier, later in pairwise(losses))
    assert design.kernel.condition > 1
    assert th.design(activation="relu", depth=2, width=32, data=x).kernel is None


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state()
    th.design(activation="elu", depth=3, width=32)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    "keywords", [{"depth": 0}, {"width": 0}, {"samples": 0}, {"activation": "nope"}, {"data": torch.ones(1, 3)}]
)
def test_bad_input_gets_one_clear_line(keywords):
    with pytest.raises(ValueError, match="^expected"):
        th.design(**{"depth": 3, "width": 16, **keywords})


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


def test_networks_too_large_to_draw_often_have_no_spread():
    from theodolite.construct.propagation import gradient_spread

    assert gradient_spread(th.Mlp(100, "relu", 2.0), 4096) == ()


def test_the_diagnosis_names_the_default_initialization_and_what_was_seen_to_help():
    design = th.design(activation="tanh", depth=30, width=64)
    (merged,) = (finding for finding in design.diagnosis.findings if finding.name == "inputs-merge")
    assert merged.severity == "warning"  # the advised initialization does not have it
    assert merged.where == "PyTorch default"
    assert merged.suggested == {"initialize_": "tanh"}
    assert merged.evidence
    assert "fix: th.initialize_(model, 'tanh')" in design.text()
    page = design.html()
    assert page.index("inputs merge") < page.index("Initializations") < page.index("Readings")
    assert page.index("Initializations") < page.index("lr of weights") < page.index("Readings")


def test_a_design_that_works_under_every_initialization_is_healthy_and_one_that_never_does_is_critical():
    assert th.design(activation="tanh", depth=3, width=64).diagnosis.healthy
    (worst, *_) = th.design(activation="sigmoid", depth=40, width=64).diagnosis.findings
    assert worst.severity == "critical"
    assert "skip connections" in worst.remedy
    assert not worst.suggested


def test_a_design_and_a_module_are_judged_by_the_same_ailments():
    found = th.design(activation="tanh", depth=20, width=64).diagnosis
    assert set(found.checked) <= set(catalogue.ailment_names())
    assert [(f.name, f.where) for f in found.findings] == [("inputs-merge", "PyTorch default")]


def test_what_only_a_trial_could_tell_is_no_finding_of_a_design():
    assert th.design(
        activation="relu", depth=6, width=64
    ).diagnosis.healthy  # trains, though a fiftieth of differences is left


def test_no_row_advises_what_it_is():
    design = th.design(activation="relu", depth=30, width=64)
    assert "try" not in " ".join(reading.meaning for reading in design.answers[0].readings)


def test_a_module_is_designed_from_what_it_is_and_does():
    torch.manual_seed(0)
    x, y = digits()
    model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.Tanh(), torch.nn.Linear(48, 48), torch.nn.Tanh())
    model.append(torch.nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    found = th.design(model, data=(x, y), loss=torch.nn.functional.cross_entropy, optimizer=optimizer, steps=64)
    assert (found.activation, found.depth, found.width) == ("tanh", 2, 48)
    assert found.network.parameters == sum(p.numel() for p in model.parameters())
    assert found.network.steps.lr > 1e-3 and "lr = " in found.text()
    assert "step-too-small" in [finding.name for finding in found.diagnosis.findings]
    assert found.document()["network"]["step_sizes"]["lr"] == found.network.steps.lr
    with pytest.raises(ValueError, match="loss"):
        th.design(model, data=(x, y))
