"""An instrument is a question with a way to answer it."""

import pytest
import torch

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Reading
from theodolite.core.subject import Subject


def test_an_instrument_reads_a_subject():
    found = Instrument(
        question="How many?",
        cost="free",
        needs={"model"},
        read=lambda subject: [Reading(quantity="tensors", measured=float(len(list(subject.model.parameters()))))],
    )
    (reading,) = found.read(Subject(torch.nn.Linear(2, 1)))
    assert reading.measured == 2
    assert found.finds is None and not found.missing(Subject(torch.nn.Linear(2, 1)))


def test_it_cannot_be_changed():
    made = Instrument(question="How many?", cost="free", read=lambda subject: [])
    with pytest.raises(AttributeError):
        made.cost = "train"
