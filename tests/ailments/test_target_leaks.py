"""Does the model see what it has to predict?"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.judging import alarms

VOCABULARY, LENGTH = 20, 12


class Attends(nn.Module):
    """One layer of attention over tokens."""

    def __init__(self, causal):
        super().__init__()
        self.causal, self.table = causal, nn.Embedding(VOCABULARY, 16)
        self.qkv, self.head = nn.Linear(16, 48), nn.Linear(16, VOCABULARY)

    def forward(self, x):
        q, k, v = self.qkv(self.table(x)).chunk(3, -1)
        return self.head(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal))


def tokens(o, y):
    return F.cross_entropy(o.flatten(0, 1), y.flatten(), ignore_index=-100)


def given(causal, edit=lambda x, y: (x, y)):
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (200, LENGTH + 1), generator=torch.Generator().manual_seed(0))
    model = Attends(causal)
    return {
        "model": model,
        "data": edit(text[:, :-1], text[:, 1:]),
        "loss": tokens,
        "optimizer": torch.optim.Adam(model.parameters()),
    }


def masked(x, y, *, hide):
    g = torch.Generator().manual_seed(1)
    places = torch.rand(x.shape, generator=g) < 0.3
    labels = torch.where(places, x, torch.full_like(x, -100))
    return torch.where(places, torch.full_like(x, VOCABULARY - 1), x) if hide else x, labels


def table(seed, leaks):
    torch.manual_seed(seed)
    x = torch.randn(200, 5)
    y = (x[:, 0] + x[:, 1] > 0).float()
    if leaks:
        x = torch.cat([x, y[:, None]], 1)
    return {"model": nn.Linear(x.shape[1], 1), "data": (x, y[:, None]), "loss": F.binary_cross_entropy_with_logits}


SICK = (
    lambda seed: given(False),
    lambda seed: given(True, lambda x, y: (x, x)),
    lambda seed: given(False, lambda x, y: masked(x, y, hide=False)),
    lambda seed: table(seed, True),
)
HEALTHY = (
    lambda seed: given(True),
    lambda seed: given(False, lambda x, y: masked(x, y, hide=True)),
    lambda seed: table(seed, False),
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    (found,) = alarms("target-leaks", build(0))
    assert found.severity == "critical"


@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build):
    assert not alarms("target-leaks", build(0))


def test_it_says_which_place_sees_which():
    (found,) = alarms("target-leaks", given(False))
    assert f"changing the input at position {LENGTH - 1} changes the output at position {LENGTH - 2}" in found.says


def test_labels_that_the_loss_itself_shifts_are_no_leak():
    def shifted(o, y):
        return tokens(o[:, :-1], y[:, 1:])

    known = given(True, lambda x, y: (x, x))
    assert not alarms("target-leaks", {**known, "loss": shifted})
    known = given(False, lambda x, y: (x, x))
    (found,) = alarms("target-leaks", {**known, "loss": shifted})
    assert "changing the input at position" in found.says


def test_a_masked_model_that_is_asked_for_what_it_sees():
    def shown(x, y):
        return masked(x % (VOCABULARY - 1), y, hide=True)[0], x % (VOCABULARY - 1)

    (found,) = alarms("target-leaks", given(False, shown))
    assert "70% of the positions that count" in found.says


def test_a_column_that_renames_the_classes():
    known = table(0, False)
    x, y = known["data"]
    leaky = torch.cat([x, 4 - 3 * y], 1)
    (found,) = alarms("target-leaks", {**known, "model": nn.Linear(6, 1), "data": (leaky, y)})
    assert found.suggested == {"drop_column": 5}


@pytest.mark.parametrize("shown", [True, False])
def test_a_series_that_ends_with_its_target_is_found(shown):
    torch.manual_seed(0)
    series = torch.randn(200, 12, 1).cumsum(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12 if shown else 11, 1))
    data = (series if shown else series[:, :-1], series[:, -1])
    found = alarms("target-leaks", {"model": model, "data": data, "loss": F.mse_loss})
    assert bool(found) == shown


class Filter(nn.Module):
    """Answers at each place from what stands before it."""

    def __init__(self):
        super().__init__()
        self.taps = nn.Conv1d(1, 1, 3, padding=2)

    def forward(self, x):
        return self.taps(x[:, None])[:, 0, : x.shape[1]]


@pytest.mark.parametrize("shared", [5, 2, 0])
def test_a_window_that_ends_after_its_target_begins_is_found(shared):
    torch.manual_seed(0)
    series = torch.randn(200, 30).cumsum(1)
    data = (series[:, :12], series[:, 12 - shared : 20 - shared])
    known = {"model": nn.Linear(12, 8), "data": data, "loss": F.mse_loss}
    assert [one.severity for one in alarms("target-leaks", known)] == {5: ["critical"], 2: ["warning"], 0: []}[shared]
    late = {**known, "loss": lambda o, y: F.mse_loss(o[:, 5:], y[:, 5:])}  # what was seen does not count
    assert not alarms("target-leaks", late)
    along = {**known, "model": Filter(), "data": (series[:, :12], series[:, 1:13])}
    assert not alarms("target-leaks", along)


@pytest.mark.parametrize("fault", ["", "not shifted", "no mask"])
def test_a_decoder_that_is_given_its_target_beside_another_input_leaks(fault):
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.mix, self.head = nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 20)

        def forward(self, source, said):
            so_far = self.table(said).cumsum(1) if fault != "no mask" else self.table(said).sum(1, keepdim=True)
            return self.head(self.table(source).mean(1, keepdim=True) + self.mix(so_far).tanh() + self.table(said))

    torch.manual_seed(0)
    target = torch.randint(1, 20, (128, 9), generator=torch.Generator().manual_seed(0))
    said = target if fault == "not shifted" else torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], 1)

    def loss(o, y):
        return nn.functional.cross_entropy(o.flatten(0, 1), y.flatten())

    found = alarms("target-leaks", {"model": Decoder(), "data": (target.flip(1), said, target), "loss": loss})
    assert bool(found) == bool(fault)


class Decoder(nn.Module):
    """Reads a source of six tokens, then what it is told to have said."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.reads, self.says = (nn.GRU(8, 16, batch_first=True) for _ in range(2))
        self.out = nn.Linear(16, 12)

    def forward(self, x):
        state = self.reads(self.words(x[:, :6]))[1]
        return self.out(self.says(self.words(x[:, 6:]), state)[0])


@pytest.mark.parametrize("kind", ["leaks", "told one place later", "copies its source"])
def test_a_decoder_that_is_given_its_target_with_the_source(kind):
    torch.manual_seed(0)
    source = torch.randint(2, 12, (128, 6))
    target = source if kind == "copies its source" else source.flip(1)
    said = target if kind == "leaks" else torch.cat([torch.ones_like(target[:, :1]), target[:, :-1]], 1)
    given = {
        "model": Decoder(),
        "data": (torch.cat([source, said], 1), target),
        "loss": lambda o, y: F.cross_entropy(o.flatten(0, 1), y.flatten()),
    }
    assert bool(alarms("target-leaks", given)) == (kind == "leaks")


def test_labels_that_a_model_is_given_for_its_own_loss_are_no_leak():
    """As in `logits, loss = model(x, y)`: the answers do not depend on them."""

    class Own(Attends):
        def forward(self, x, labels):
            return super().forward(x)

    torch.manual_seed(0)
    own, text = Own(causal=True), given(causal=True)["data"]
    optimizer = torch.optim.Adam(own.parameters())
    subject = {"model": own, "data": (*text, text[1]), "loss": tokens, "optimizer": optimizer}
    assert not alarms("target-leaks", subject)


class Coded(nn.Module):
    """A text is put into a code, from which it is read again."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.reads, self.code = nn.Embedding(12, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 16)
        self.says, self.out = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 12)

    def forward(self, x):
        h = self.words(x)
        given = F.pad(h[:, :-1], (0, 0, 1, 0))
        return self.out(self.says(given, self.code(self.reads(h)[1]))[0])


@pytest.mark.parametrize("coded", [True, False])
def test_a_text_that_is_read_from_a_code_is_no_leak(coded):
    torch.manual_seed(0)
    x = torch.randint(0, 12, (256, 10))
    model = Coded() if coded else nn.Sequential(nn.Embedding(12, 16), nn.Linear(16, 12))
    loss = lambda o, y: F.cross_entropy(o.flatten(0, 1), y.flatten())  # noqa: E731
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss(model(x), x).backward()
        optimizer.step()
    assert bool(alarms("target-leaks", {"model": model, "data": (x, x), "loss": loss})) is not coded
