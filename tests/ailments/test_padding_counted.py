"""Does the loss count padding?"""

import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms

PADDING, WORDS = 0, 30


class Answers(nn.Module):
    """A word to each word."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)

    def forward(self, x):
        return self.head(self.table(x))


def given(ignored):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    x = torch.randint(1, WORDS, (100, 20), generator=g)
    lengths = torch.randint(2, 12, (100, 1), generator=g)
    x = torch.where(torch.arange(20) < lengths, x, torch.full_like(x, PADDING))

    def loss(o, y):
        return F.cross_entropy(o.flatten(0, 1), y.flatten(), ignore_index=ignored)

    return {
        "model": Answers(),
        "data": (x, x.roll(-1, 1).where(x.roll(-1, 1) != PADDING, torch.zeros_like(x))),
        "loss": loss,
    }


SICK = (lambda seed: given(-100),)


def test_padding_that_counts_is_named_with_the_index_to_ignore():
    (found,) = alarms("padding-counted", given(-100))
    assert found.suggested == {"ignore_index": PADDING}


def test_padding_that_is_left_out_and_words_that_are_merely_common_are_let_alone():
    assert not alarms("padding-counted", given(PADDING))
    common = given(-100)
    x, y = torch.randint(0, 2, (2, 100, 20), generator=torch.Generator().manual_seed(1))
    assert not alarms("padding-counted", {**common, "data": (x, y)})


class Second(nn.Module):
    """Answers to the second half of its input."""

    def __init__(self):
        super().__init__()
        self.own = Answers()

    def forward(self, x):
        return self.own(x)[:, x.shape[1] // 2 :]


def test_padding_of_a_decoder_whose_input_stands_behind_its_source_is_named():
    for ignored in (-100, PADDING):
        y = given(ignored)["data"][0]
        said = torch.cat([torch.ones_like(y[:, :1]), y[:, :-1]], 1)
        known = {**given(ignored), "model": Second(), "data": (torch.cat([y.flip(1), said], 1), y)}
        assert bool(alarms("padding-counted", known)) == (ignored != PADDING)


def test_tags_of_words_most_of_which_are_one_are_no_padding_unless_padded_places_count():
    g = torch.Generator().manual_seed(0)
    x = torch.randint(4, WORDS, (200, 20), generator=g)
    y = (x < 8).long()
    x[:, 12:] = WORDS - 1
    x[:, :12] = x[:, :12].clamp(max=WORDS - 2)
    model = nn.Sequential(nn.Embedding(WORDS, 8), nn.Linear(8, 2))

    def loss(o, y):
        return F.cross_entropy(o.flatten(0, 1), y.flatten())

    ignored = y.clone()
    ignored[:, 12:] = -100
    assert not alarms("padding-counted", {"model": model, "data": (x, ignored), "loss": loss})
    counted = y.clone()
    counted[:, 12:] = 0
    (found,) = alarms("padding-counted", {"model": model, "data": (x, counted), "loss": loss})
    assert found.suggested == {"ignore_index": -100}  # 0 is also the tag of most words
    assert f"where the input is {WORDS - 1}" in found.remedy


def test_padding_at_the_beginning_counts_as_well():
    known = given(-100)
    x, y = known["data"]
    (found,) = alarms("padding-counted", {**known, "data": (x.flip(1), y.flip(1))})
    assert found.suggested == {"ignore_index": PADDING}
    assert not alarms("padding-counted", {**given(PADDING), "data": (x.flip(1), y.flip(1))})


def test_what_a_decoder_is_given_is_asked_beside_a_source_of_another_length():
    class Decoder(Answers):
        def forward(self, source, x):
            return super().forward(x)

    known = given(-100)
    x, y = known["data"]
    source = torch.randint(1, WORDS, (100, 7), generator=torch.Generator().manual_seed(1))
    assert alarms("padding-counted", {**known, "model": Decoder(), "data": ((source, x), y)})
