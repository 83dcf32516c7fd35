"""From findings to the sentence that is read first, and the forms of a diagnosis."""

import json

import pytest
import torch
from torch import nn

import theodolite as th
from theodolite.core.ailment import Finding
from theodolite.verbs.diagnosis import IGNORING, SEEN, Diagnosis

WORST = Finding(
    name="step-too-large",
    severity="critical",
    says="The step of 6 is too large.",
    remedy="lr=1",
    suggested={"lr": 1.0},
    leads_to=("loss-stalls", "rank-lost"),
)
NOTE = Finding(name="rank-lost", severity="note", says="A rank is lost.", remedy="")


def test_the_worst_finding_is_the_headline_with_what_it_explains():
    found = Diagnosis("net", (WORST, NOTE), ("a", "b"))
    assert found.headline == "Critical: The step of 6 is too large. This also explains loss-stalls and rank-lost."
    assert not found.healthy and found.meets("warning") and found.meets("critical")
    assert not Diagnosis("net", (NOTE,), ("a",)).meets("warning")


@pytest.mark.parametrize(
    ("given", "healthy", "said"),
    [
        ({"checked": ("a", "b")}, True, "Healthy: no fault found in 2 checks."),
        ({"checked": ("a",), "findings": (NOTE,)}, True, "Healthy"),
        ({}, False, "Nothing was checked: pass data and a loss."),
        ({"checked": (SEEN,)}, True, "No alarm during the run; nothing more was checked."),
        ({"checked": ("a",), "unchecked": {"b": "needs data, loss"}}, False, "pass data= with targets and loss="),
        (
            {"checked": ("a",), "unchecked": {"b": "needs data, loss, model"}},
            True,
            "No fault in the weights (1 checks)",
        ),
        ({"checked": ("a",), "unchecked": {"b": "out of time"}, "unfinished": True}, False, "Not finished: 1 of 2"),
        (
            {"checked": ("a",), "unchecked": {"trials": "no optimizer"}},
            False,
            "need a trial were not made: no optimizer",
        ),
        ({"checked": ("a",), "scores": {"training loss": 2.4, IGNORING: 2.3}}, True, "nothing has been learned yet"),
    ],
)
def test_what_was_not_judged_is_said(given, healthy, said):
    found = Diagnosis("net", **{"findings": (), **given})
    assert found.healthy is healthy
    assert said in found.headline


def test_every_form_holds_the_findings(tmp_path):
    found = Diagnosis("net", (WORST, NOTE), ("a",), {"b": "needs lr"})
    document = json.loads(found.json())
    assert document["schema"] == "theodolite/diagnosis"
    assert [finding["name"] for finding in document["findings"]] == ["step-too-large", "rank-lost"]
    assert found.rows()[0]["suggested"] == "lr=1.0"
    assert found.rows()[0]["leads_to"] == "loss-stalls, rank-lost"
    for form in (found.text(), found.html(), found._repr_html_()):
        assert "step of 6 is too large" in form and "lr=1" in form


def test_scores_are_of_training_and_held_out_data():
    torch.manual_seed(0)
    x = torch.randn(96, 4)
    y = (x[:, 0] > 0).long()
    data, held = (x[:64], y[:64]), (x[64:], y[64:])
    model = nn.Linear(4, 2)
    found = th.diagnose(model, data=data, loss=nn.functional.cross_entropy, validation=held, budget=1)
    loss = nn.functional.cross_entropy(model(held[0]), held[1]).item()
    assert found.scores["validation loss"] == pytest.approx(loss, rel=1e-4)
    assert found.scores["training samples"] == 64
    assert found.scores[IGNORING] == pytest.approx(0.69, abs=0.02)
