import json
from itertools import pairwise

import pytest
import torch

import theodolite as th


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


@pytest.mark.parametrize("activation", ["quadratic", "exp", "tanhshrink"])
def test_design_answers_for_activations_that_explode_or_vanish(activation):
    found = th.design(activation=activation, depth=3, width=32)
    assert found.rates.single >= 0
    assert json.loads(found.json())["activation"] == activation
    assert found.text()


def test_design_answers_for_data_of_zeros():
    assert th.design(activation="relu", depth=2, width=16, data=torch.zeros(6, 3)).rates.single > 0


def test_design_advises_at_most_the_true_step_on_centered_data():
    x = torch.randn(200, 10, generator=torch.Generator().manual_seed(0))
    assert 0.12 <= th.design(activation="tanh", depth=3, width=128, data=x - x.mean(0)).rates.single <= 0.24
