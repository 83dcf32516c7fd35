"""Known answers: this installation's are right, and a library that computes wrongly is found."""

import json

import numpy as np
import torch

import theodolite as th
from theodolite.cli import main
from theodolite.verbs import doctoring


def test_the_answers_of_this_installation_are_right(capsys):
    assert main(["doctor"]) == 0
    assert "known answers right" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    names = {answer["name"]: answer["verdict"] for answer in document["answers"]}
    assert {"matrix products", "eigenvalues", "singular values", "threads", "GPU", "Triton"} <= set(names)
    assert document["good"] is True


def test_eigenvalues_that_are_off_in_the_twelfth_digit_are_found(monkeypatch, capsys):
    right = np.linalg.eigvalsh
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda matrix: right(matrix) * (1 + 1e-12))
    found = {answer.name: answer for answer in th.doctor().answers}
    assert found["eigenvalues"].verdict == "wrong"
    assert "numpy" in found["eigenvalues"].remedy
    assert main(["doctor"]) == 1
    assert "wrong: eigenvalues" in capsys.readouterr().out


def test_products_of_fewer_digits_are_found(monkeypatch):
    right = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: right(a.bfloat16(), b.bfloat16()).to(a.dtype))
    assert doctoring._products().verdict == "wrong"


def test_a_library_that_cannot_be_called_is_an_answer(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no LAPACK")

    monkeypatch.setattr(np.linalg, "svd", broken)
    answer = next(answer for answer in th.doctor().answers if "singular" in answer.name)
    assert answer.verdict == "wrong"
    assert "no LAPACK" in answer.says


def test_the_page_of_a_survey_cites_it():
    result = th.survey(torch.nn.Linear(8, 9), cost="free")
    assert result.facts["installation"] == f"{doctoring.quick_health().headline} (theodolite doctor)"
    assert "known answers right (theodolite doctor)" in result.html()
