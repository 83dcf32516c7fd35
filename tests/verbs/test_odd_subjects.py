"""Networks and data at the edge of what there is: the diagnosis ends, says what it could not judge, and raises nothing."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import theodolite as th
from theodolite.core.checks import InputError
from theodolite.verbs import diagnosing


class Scaled(nn.Module):
    """A linear map times a parameter that is one number."""

    def __init__(self):
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.tensor(1.0)), nn.Linear(4, 3)

    def forward(self, x):
        return self.scale * self.inner(x)


def small(inputs, outputs):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))


def filled(value):
    model = small(4, 3)
    with torch.no_grad():
        model[0].weight[0, 0] = value
    return model


def classes(n, inputs=4):
    g = torch.Generator().manual_seed(0)
    return torch.randn(n, inputs, generator=g), torch.randint(0, 3, (n,), generator=g)


XOR = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1, 1, 0])
LATTICE = torch.cartesian_prod(*[torch.arange(4.0)] * 3), torch.arange(64) % 2
CASES = {
    "xor": (lambda: small(2, 2), XOR),
    "lattice": (lambda: small(3, 2), LATTICE),
    "one row": (lambda: small(4, 3), classes(1)),
    "two rows": (lambda: small(4, 3), classes(2)),
    "one feature": (lambda: small(1, 3), classes(60, 1)),
    "equal rows": (lambda: small(4, 3), (torch.ones(40, 4), torch.arange(40) % 3)),
    "tokens": (
        lambda: nn.Sequential(nn.Embedding(9, 6), nn.Flatten(), nn.Linear(18, 3)),
        (torch.arange(180).view(60, 3) % 9, torch.arange(60) % 3),
    ),
    "a parameter of one number": (Scaled, classes(60)),
    "a weight that is no number": (lambda: filled(math.nan), classes(60)),
    "an infinite weight": (lambda: filled(math.inf), classes(60)),
    "an input that is no number": (lambda: small(4, 3), (torch.full((40, 4), math.nan), torch.arange(40) % 3)),
    "one layer": (lambda: nn.Linear(4, 3), classes(60)),
    "nothing to train": (lambda: small(4, 3).requires_grad_(False), classes(60)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_diagnosis_of_an_odd_subject_ends(name, monkeypatch):
    monkeypatch.setattr(diagnosing, "isolated", False)
    build, data = CASES[name]
    model = build()
    own = list(model.parameters())
    known = {"optimizer": torch.optim.Adam(own, 1e-2)} if own[0].requires_grad else {}
    found = th.diagnose(model, data=data, loss=F.cross_entropy, **known)
    assert found.headline and str(found)


@pytest.mark.parametrize("data", [[], (torch.empty(0, 4), torch.empty(0, dtype=torch.long))])
def test_no_data_are_one_line(data):
    with pytest.raises((InputError, ValueError), match="expected"):
        th.diagnose(small(4, 3), data=data, loss=F.cross_entropy)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_checkpoint_with_a_number_that_is_none_is_surveyed(value, tmp_path):
    torch.save(filled(value).state_dict(), tmp_path / "weights.pt")
    found = th.survey(tmp_path / "weights.pt")
    assert any(finding.name == "weights-not-finite" for finding in found.diagnosis.findings)
