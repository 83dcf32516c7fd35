"""What a survey is: its readings, its diagnosis, its layers."""

import pytest
import torch
from torch import nn

import theodolite as th


def deep_tanh(layers):
    torch.manual_seed(0)
    hidden = [layer for _ in range(layers) for layer in (nn.Linear(16, 16), nn.Tanh())]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 16, generator=generator)
    return nn.Sequential(*hidden, nn.Linear(16, 2)), (x, (x[:, 0] > 0).long())


def test_a_survey_opens_with_its_diagnosis_and_the_network_as_a_strip():
    model, data = deep_tanh(30)
    survey = th.survey(
        model, data=data, loss=nn.functional.cross_entropy, lr=0.1, instruments=["rank", "initialization"]
    )
    assert survey.diagnosis is survey.diagnosis
    assert survey.diagnosis.findings[0].name == "inputs-merge"
    page = survey.html()
    assert page.index("inputs merge") < page.index("The network") < page.index("Readings")
    assert page.count('class="th-net-tip"') == 31
    assert "th-net-wrong" in page.split("</style>")[1]
    assert survey.document()["diagnosis"]["healthy"] is False
    assert {row["against"] for row in survey.rows()} <= {"law", "chance", "health", ""}


def test_held_out_data_stand_beside_the_training_data():
    model, (x, y) = deep_tanh(2)
    facts = {"loss": nn.functional.cross_entropy, "lr": 0.1, "instruments": ["rank"], "budget": "5s"}
    survey = th.survey(model, data=(x[:150], y[:150]), validation=(x[150:], y[150:]), **facts)
    told = nn.functional.cross_entropy(model(x[150:]), y[150:]).item()
    assert survey.diagnosis.scores["validation loss"] == pytest.approx(told, rel=1e-4)
    assert f"loss {told:.3f} ± " in survey.html()
    assert "validation loss" not in th.survey(model, data=(x, y), **facts).diagnosis.scores


def test_of_a_checkpoint_only_the_weights_are_diagnosed(tmp_path):
    torch.save(deep_tanh(2)[0].state_dict(), tmp_path / "net.pt")
    survey = th.survey(tmp_path / "net.pt", instruments=["rank"])
    assert survey.diagnosis.healthy
    assert "weights-not-finite" in survey.diagnosis.checked
    page = survey.html()
    assert "<h1>Survey of net.pt</h1>" in page
    assert "in the order of the file" in page
    assert page.count('class="th-net-tip"') == 3
    assert "signal" not in page[page.index('class="th-net"') : page.index("all-readings")]  # nothing has run


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(count=48, width=6):
    x = torch.randn(count, width, generator=seeded())
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()


def perceptron(width=6):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, 12), nn.ReLU(), nn.Linear(12, 3))


def test_layers_are_named_whole_with_type_and_shape():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.a_block_with_a_long_name_that_no_column_holds = nn.ModuleDict({"inner_layers": perceptron()})

        def forward(self, x):
            return self.a_block_with_a_long_name_that_no_column_holds["inner_layers"](x)

    found = th.survey(Deep(), data=rows()[0], instruments=("signal", "initialization"))
    name = "a_block_with_a_long_name_that_no_column_holds.inner_layers.0"
    assert {"layer": name, "type": "Linear", "shape": "12 × 6"} in found.layers()
    assert name in "".join(found.text(width=400).split())
    assert name in found.page().replace("<wbr>", "")
