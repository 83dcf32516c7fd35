"""Do answers depend on how much padding follows a sequence?"""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.judging import alarms, judged

TOKENS, LENGTH, PAD = 12, 20, 0


class Classifier(nn.Module):
    """One layer of attention, and the mean of its places."""

    def __init__(self, *, masked, attends=True):
        super().__init__()
        self.masked, self.attends = masked, attends
        self.table, self.head = nn.Embedding(TOKENS, 16), nn.Linear(16, 3)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, x):
        padding = x == PAD
        h = self.table(x)
        if self.attends:
            h = self.layer(h, src_key_padding_mask=padding if self.masked else None)
        if not self.masked:
            return self.head(h.mean(1))
        real = (~padding)[..., None]
        return self.head((h * real).sum(1) / real.sum(1))


def sentences(n=256):
    g = torch.Generator().manual_seed(0)
    x = torch.randint(1, TOKENS, (n, LENGTH), generator=g)
    ends = torch.randint(3, LENGTH + 1, (n, 1), generator=g)
    x = x.where(torch.arange(LENGTH) < ends, torch.full_like(x, PAD))
    return x, (x < 4).logical_and(x != PAD).sum(1).clamp(max=5).div(2, rounding_mode="floor")


def given(**options):
    torch.manual_seed(0)
    model = Classifier(**options)
    x, y = sentences()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(150):
        rows = torch.randint(0, len(x), (64,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return {"model": model, "data": (x, y), "loss": cross_entropy}


SICK = (lambda seed: given(masked=False),)


def test_attention_without_a_mask_is_found():
    (found,) = alarms("attention-unmasked", given(masked=False))
    assert f"tokens == {PAD}" in found.remedy and "changes the predicted class" in found.says


@pytest.mark.parametrize("options", [{"masked": True}, {"masked": False, "attends": False}])
def test_masked_attention_and_networks_without_one_are_left_alone(options):
    assert not judged("attention-unmasked", given(**options))


def test_a_causal_model_does_not_see_what_stands_behind():
    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.qkv, self.head = nn.Embedding(TOKENS, 16), nn.Linear(16, 48), nn.Linear(16, TOKENS)

        def forward(self, x):
            q, k, v = self.qkv(self.table(x)).chunk(3, -1)
            return self.head(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))

    torch.manual_seed(0)
    x = sentences()[0]
    loss = lambda o, y: cross_entropy(o.flatten(0, 1), y.flatten(), ignore_index=PAD)  # noqa: E731
    assert not judged("attention-unmasked", {"model": Causal(), "data": (x[:, :-1], x[:, 1:]), "loss": loss})


class LastState(nn.Module):
    """A recurrent network that reads its state after the padding, or the one before it."""

    def __init__(self, before_padding):
        super().__init__()
        self.before_padding = before_padding
        self.table, self.rnn, self.head = nn.Embedding(TOKENS, 8), nn.RNN(8, 12, batch_first=True), nn.Linear(12, 2)

    def forward(self, x):
        states = self.rnn(self.table(x))[0]
        last = (x != PAD).sum(1) - 1 if self.before_padding else torch.full((len(x),), x.shape[1] - 1)
        return self.head(states[torch.arange(len(x)), last])


@pytest.mark.parametrize("before_padding", [False, True])
def test_a_recurrent_network_that_reads_its_state_after_padding_and_learns_nothing_is_told(before_padding):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    x = torch.randint(1, TOKENS, (300, 60), generator=g)
    size = torch.randint(3, 8, (300, 1), generator=g)
    x = x.where(torch.arange(60) < size, torch.full_like(x, PAD))
    y = (x.gather(1, size - 1)[:, 0] > 6).long()  # the last word
    model = LastState(before_padding)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(120):
        rows = torch.randint(0, len(x), (32,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    found = alarms(
        "attention-unmasked", {"model": model, "data": (x, y), "loss": cross_entropy, "optimizer": optimizer}
    )
    assert bool(found) is not before_padding
    assert before_padding or "last token before padding" in found[0].remedy
