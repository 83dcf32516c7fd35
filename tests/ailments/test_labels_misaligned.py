"""Does a sequence model learn to predict the token after the next?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms


def tokens(o, y):
    return F.cross_entropy(o.flatten(0, 1), y.flatten())


def shifted(o, y):
    return tokens(o[:, :-1], y[:, 1:])


def given(ahead, loss):
    torch.manual_seed(0)
    text = torch.randint(0, 20, (200, 14), generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
    return {"model": model, "data": (text[:, :12], text[:, ahead : 12 + ahead]), "loss": loss}


SICK = (lambda seed: given(2, tokens),)


@pytest.mark.parametrize(
    ("ahead", "loss", "alarm"), [(1, tokens, False), (2, tokens, True), (0, shifted, False), (1, shifted, True)]
)
def test_labels_are_shifted_once(ahead, loss, alarm):
    assert bool(alarms("labels-misaligned", given(ahead, loss))) is alarm
