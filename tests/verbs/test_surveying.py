"""Whole surveys, of every kind of model that people bring."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

import theodolite as th
from theodolite import catalogue
from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.io.builtin_network import builtin
from theodolite.io.checkpoints import checkpoint
from theodolite.io.datasets import digits


@pytest.fixture(scope="module")
def survey():
    """Of some of the digits: every instrument is asked, of fewer samples."""
    x, y = digits()
    return th.survey(replace(builtin(), data=(x[:400], y[:400])), budget=None)


def test_the_built_in_network_gets_a_full_survey(survey):
    told = {answer.question.name for answer in survey.answers}
    none = {"adapter", "attention", "embedding", "residual-stream", "token-loss"}  # of which there is nothing in it
    assert told == set(catalogue.instrument_names()) - none
    assert {skip.instrument for skip in survey.skipped} == none
    assert not [reading for reading in survey.readings if reading.status == "invalid"]


def test_every_form_holds_every_reading(survey, tmp_path):
    rows = survey.rows()
    assert len(rows) == len(survey.readings)
    document = json.loads(survey.json(tmp_path / "readings.json"))
    assert len(document["readings"]) == len(rows)
    assert json.loads((tmp_path / "readings.json").read_text()) == document
    assert survey.html(tmp_path / "report.html") == (tmp_path / "report.html").read_text()
    assert list(survey.frame()["quantity"]) == [row["quantity"] for row in rows]
    assert "built-in digits network" in survey._repr_html_()
    assert all(name in survey.text() for name in catalogue.instrument_names())
    assert "without reference" in str(survey) and "no reference" not in str(survey)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.1, activation="gelu")
        self.head = nn.Linear(16, 11, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens))).transpose(1, 2)


def conv():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
    )


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.left, self.right = nn.Linear(64, 32), nn.Linear(32, 10), nn.Linear(32, 2)

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return self.left(h), self.right(h)


def frozen():
    model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    model[0].requires_grad_(False)
    return model


def recurrent():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 10)

        def forward(self, x):
            return self.head(self.lstm(x.reshape(-1, 8, 8))[0][:, -1])

    return Last()


X = torch.randn(32, 64, generator=torch.Generator().manual_seed(0))


Y = torch.arange(32) % 10


MODELS = {
    "conv": (conv, (X.reshape(-1, 1, 8, 8), Y), F.cross_entropy),
    "attention": (Attention, (Y.reshape(4, 8), Y.reshape(4, 8)), F.cross_entropy),
    "several outputs": (Several, (X, Y), lambda out, y: F.cross_entropy(out[0], y) + out[1].square().mean()),
    "frozen": (frozen, (X, Y), F.cross_entropy),
    "recurrent": (recurrent, (X, Y), F.cross_entropy),
    "float16": (lambda: frozen().to(torch.float16), (X, Y), F.cross_entropy),
    "bfloat16": (lambda: frozen().to(torch.bfloat16), (X, Y), F.cross_entropy),
    "float64": (lambda: frozen().double(), (X, Y), F.cross_entropy),
    "one layer": (lambda: nn.Linear(64, 10), (X, Y), F.cross_entropy),
    "no parameters": (nn.Flatten, (X, Y), F.cross_entropy),
}


@pytest.mark.parametrize("kind", MODELS)
def test_any_module_is_surveyed_and_left_as_it_was(kind):
    make, data, loss = MODELS[kind]
    torch.manual_seed(1)
    model = make()
    model.train()
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    dearest = "train" if kind == "conv" else "hvp"  # instruments that train take seconds each
    result = th.survey(model, data=data, loss=loss, lr=0.1, cost=dearest, budget="10m")
    clear = ("needs", "found nothing", "expected", "costs")
    failed = [skip for skip in result.skipped if not any(word in skip.reason for word in clear)]
    assert not failed, failed
    assert all(reading.status != "invalid" for reading in result.readings)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters())
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert torch.equal(random, torch.get_rng_state())


def test_a_checkpoint_alone(tmp_path):
    save_file({n: p.detach() for n, p in frozen().named_parameters()}, tmp_path / "m.safetensors")
    result = th.survey(tmp_path / "m.safetensors", activation="tanh")
    assert "initialization" in {answer.question.name for answer in result.answers}
    assert {skip.instrument for skip in result.skipped} >= {"signal"}
    assert all("needs" in skip.reason for skip in result.skipped)


def counted(weights, reads):
    """The same weights; each call of ``read`` is counted by name."""

    def reading(weight):
        def read():
            reads[weight.name] += 1
            return weight.read()

        return replace(weight, read=read)

    return {name: reading(weight) for name, weight in weights.items()}


def test_each_tensor_of_a_checkpoint_is_read_once(tmp_path):
    model = nn.Sequential(nn.Linear(24, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 12))
    save_file({n: p.detach() for n, p in model.named_parameters()}, tmp_path / "m.safetensors")
    torch.manual_seed(2)
    save_file({n: torch.randn_like(p) for n, p in model.named_parameters()}, tmp_path / "base.safetensors")
    reads, starts = Counter(), Counter()
    weights = counted(checkpoint(tmp_path / "m.safetensors"), reads)
    result = th.survey(th.Subject(weights=weights, activation="tanh"))
    assert {a.question.name for a in result.answers} == {"initialization", "rank", "weight-spectrum"}
    assert reads == dict.fromkeys(weights, 1)
    origin = counted(checkpoint(tmp_path / "base.safetensors"), starts)
    reads.clear()
    result = th.survey(th.Subject(weights=weights, origin=origin), out=tmp_path / "out")
    assert "training-change" in {a.question.name for a in result.answers}
    assert reads == starts == dict.fromkeys(weights, 1)
    again = th.survey(th.Subject(weights=weights, origin=origin), out=tmp_path / "out")
    assert reads == starts == dict.fromkeys(weights, 1)  # all of it was known
    assert again.rows() == result.rows()


def test_a_survey_of_weights_imports_only_what_it_reads_and_not_torch(tmp_path):
    state = {n: p.detach() for n, p in frozen().named_parameters()}
    save_file(state, tmp_path / "m.safetensors")
    torch.save(state, tmp_path / "m.pth")
    code = (
        "import sys, theodolite as th; a, b = (th.survey(path) for path in sys.argv[1:]); "
        "assert a.rows() == b.rows() and 'torch' not in sys.modules;"
        "print(*(m for m in sys.modules if m.startswith('theodolite.instruments.') and not '._' in m))"
    )
    paths = [str(tmp_path / name) for name in ("m.safetensors", "m.pth")]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    found = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert found == {"initialization", "rank", "weight_spectrum"}


def test_a_matrix_that_cannot_be_decomposed_is_named_and_the_rest_is_surveyed(tmp_path, monkeypatch):
    from theodolite.instruments._common import spectra as _spectra

    save_file({"a.weight": torch.eye(9), "b.weight": torch.eye(10)}, tmp_path / "m.safetensors")
    whole = _spectra.gram_eigenvalues

    def failing(matrix):
        if len(matrix) == 9:
            raise RuntimeError("did not converge")
        return whole(matrix)

    monkeypatch.setattr(_spectra, "gram_eigenvalues", failing)
    result = th.survey(tmp_path / "m.safetensors")
    assert "did not converge" in result.faults["a.weight"]
    assert any(row["where"] == "b.weight" for row in result.rows() if row["instrument"] == "rank")


def instrument(read, **facts):
    return Instrument(
        question="?", read=read, needs=facts.get("needs", {"model"}), cost=facts.get("cost", "free"), name="x"
    )


@pytest.fixture
def only(monkeypatch):
    def put(made):
        monkeypatch.setattr(catalogue, "instrument", lambda name: made)
        monkeypatch.setattr(catalogue, "question", lambda name: made)
        monkeypatch.setattr(catalogue, "instrument_names", lambda: ("x",))

    return put


def test_a_failing_instrument_is_a_line_in_skipped(only):
    def read(subject):
        yield Reading(quantity="q", measured=1.0)
        raise ZeroDivisionError("by\nzero")

    only(instrument(read))
    result = th.survey(frozen())
    assert result.answers == ()
    assert result.skipped[0].reason == "ZeroDivisionError: by zero"
    with pytest.raises(ZeroDivisionError):
        th.read("x", frozen())


def test_needs_costs_and_empty_answers_are_explained(only):
    only(instrument(lambda subject: [], needs={"model", "lr"}))
    assert "needs lr" in th.survey(frozen()).skipped[0].reason
    with pytest.raises(ValueError, match="expected a subject with lr"):
        th.read("x", frozen())
    only(instrument(lambda subject: []))
    assert "found nothing" in th.survey(frozen()).skipped[0].reason
    only(instrument(lambda subject: [], cost="hvp"))
    assert "costs hvp, more than forward" in th.survey(frozen(), cost="forward").skipped[0].reason


def test_an_instrument_must_say_what_it_needs_in_known_words():
    with pytest.raises(ValueError, match="expected needs among"):
        instrument(lambda subject: [], needs={"gpu"})
    with pytest.raises(ValueError, match="expected needs among"):
        instrument(lambda subject: [], cost="cheap")


def test_two_workers_read_the_same():
    """To rounding: sums over tensors that came through a pipe may run in another order."""
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    subject = th.Subject(model, data=(X, Y), loss=F.cross_entropy, lr=0.1)
    one, two = (th.survey(subject, cost="forward", budget=None, jobs=jobs).rows() for jobs in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a == {
            key: pytest.approx(value, rel=1e-12) if isinstance(value, float) else value for key, value in b.items()
        }


def test_statuses_reach_the_rows(only):
    only(
        instrument(lambda subject: [Reading(quantity="q", measured=3.0, expected=Band(high=2.0), meaning="too large")])
    )
    (row,) = th.survey(frozen()).rows()
    assert row["status"] == "above"
    assert row["expected_low"] == float("-inf")
    assert json.loads(th.survey(frozen()).json())["readings"][0]["expected_low"] is None


def test_facts_go_into_the_subject():
    with pytest.raises(TypeError, match="inside the Subject"):
        th.survey(builtin(), lr=0.1)
