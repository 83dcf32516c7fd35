"""Every document that is written is one of its schema."""

import json

import jsonschema
import pytest
import torch
from torch.nn.functional import mse_loss

import theodolite as th
from theodolite.io.documents import KINDS, VERSION, loaded, schema, stamped
from theodolite.verbs.checking import Atlas, CheckSettings, checked_laws


def network():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    x = torch.randn(40, 6)
    return model, (x, torch.randn(40, 2))


def survey():
    model, data = network()
    return th.survey(model, data=data, loss=mse_loss, lr=0.1, cost="forward")


def diagnosis():
    model, (x, y) = network()
    x = x.clone()
    x[3] = float("nan")
    return th.diagnose(model, data=(x, y), loss=mse_loss)


def watch():
    model, data = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = th.Watch(model, optimizer=optimizer, probe=data, loss=mse_loss, every=1, level="cheap")
    for step in range(3):
        loss = mse_loss(model(data[0]), data[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found(step)
    return found


def verdict():
    settings = CheckSettings(break_assumptions=True)
    return Atlas(tuple(checked_laws(["marchenko-pastur", "half-stable-criticality"], settings)))


MAKERS = {"survey": survey, "diagnosis": diagnosis, "watch": watch, "verdict": verdict, "doctor": th.doctor}


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_is_one_of_its_schema(kind, tmp_path):
    jsonschema.Draft202012Validator.check_schema(schema(kind))
    result = MAKERS[kind]()
    text = result.json(tmp_path / "document.json")
    document = json.loads(text)
    for member in document if isinstance(document, list) else [document]:
        assert (member["schema"], member["version"]) == (f"theodolite/{kind}", VERSION)
        jsonschema.validate(member, schema(kind))
        assert len(member) > 3
    assert loaded(tmp_path / "document.json") == document


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_refuses_what_is_not_one(kind):
    document = json.loads(MAKERS["doctor"]().json())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "schema": f"theodolite/{kind}", "version": 99}, schema(kind))


def test_what_is_no_document_of_ours_is_said_in_words(tmp_path):
    path = tmp_path / "one.json"
    for text in ("{", '{"hello": 1}', "[1]"):
        path.write_text(text)
        with pytest.raises(ValueError, match="^expected a theodolite document in"):
            loaded(path)
    with pytest.raises(ValueError, match="^expected a theodolite document in"):
        loaded(tmp_path / "none.json")
    path.write_text(json.dumps(stamped("survey", {}) | {"version": 99}))
    with pytest.raises(ValueError, match=f"^expected version {VERSION} or before, got 99"):
        loaded(path)
