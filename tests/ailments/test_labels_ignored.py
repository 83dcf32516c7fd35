"""Does the loss ignore every target, so that there is nothing to learn?"""

import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms, judged


def given(ignored):
    y = torch.randint(0, 3, (256,), generator=torch.Generator().manual_seed(0))
    y[:ignored] = -100
    x = torch.randn(256, 4)
    data = [(x[i : i + 32], y[i : i + 32]) for i in range(0, 256, 32)]
    return {"model": nn.Linear(4, 3), "data": data, "loss": F.cross_entropy}


SICK = (lambda seed: given(256),)


def test_it_is_critical_where_no_label_counts_and_a_note_where_some_batches_have_none():
    (found,) = alarms("labels-ignored", given(256))
    assert found.severity == "critical"
    assert not judged("classes-unbalanced", given(256))  # one name for it
    (note,) = judged("labels-ignored", given(64))
    assert note.severity == "note" and "2 of 8 batches" in note.says
    assert not judged("labels-ignored", given(0))
