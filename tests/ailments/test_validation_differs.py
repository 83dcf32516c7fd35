"""Do the validation data come from another distribution than the training data?"""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fixtures.judging import alarms
from fixtures.trained import clouds, patient


def given(change, seed=0):
    found = dict(patient(seed, lambda own: torch.optim.Adam(own, 3e-3)))
    x, y = clouds(1000 + seed, 512)
    return {**found, "validation": (change(x), y)}


SICK = (lambda seed: given(lambda x: 0.02 * x, seed), lambda seed: given(lambda x: x + 4, seed))


@pytest.mark.parametrize("build", SICK)
def test_other_scales_and_levels_are_named(build):
    (found,) = alarms("validation-differs", build(0))
    assert "differ from the training data" in found.says
    assert not alarms("memorises-noise", build(0)) and not alarms("overfits", build(0))


@pytest.mark.parametrize("seed", range(4))
def test_another_draw_is_not(seed):
    assert not alarms("validation-differs", given(lambda x: x, seed))


def test_what_does_no_harm_is_not():
    def shifted(x):
        return torch.cat([x[:, :-1], x[:, -1:] + 5.0], 1)

    found = given(shifted)
    with torch.no_grad():
        found["model"][0].weight[:, -1] = 0.0
    assert not alarms("validation-differs", found)


def test_a_network_that_learned_next_to_nothing_is_not_said_to_do_worse_there():
    found = given(lambda x: x - 4)
    model, (x, y) = found["model"], [torch.cat(part) for part in zip(*found["data"], strict=True)]
    with torch.no_grad():
        model[-1].bias[0] += (model(x).amax(1) - model(x)[:, 0]).quantile(0.95)  # one answer but for a twentieth
        model[-1].weight *= 0.02
        model[-1].bias *= 0.02
        assert 0 < float((model(x).argmax(1) == y).double().mean()) - 0.2 < 0.1
    assert not alarms("validation-differs", found)


def waves(seed, rate):
    """Waves in noise; the class is the frequency."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (600,), generator=g)
    angle = 6.28 * rate * (0.04 + 0.04 * y)[:, None] * torch.arange(64) + 6.28 * torch.rand(600, 1, generator=g)
    return (angle.sin() + 0.3 * torch.randn(600, 64, generator=g))[:, None], y


def texts(seed, other):
    """Rows of symbols, some of which are rare; the class is whether the first is among the common ones."""
    g = torch.Generator().manual_seed(seed)
    x = (12 * torch.rand(600, 10, generator=g) ** 2).long()
    return (11 - x if other else x), (x[:, 0] < 4).long()


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(-1)


def trained(make, there):
    """A network on data of its own, and validation data from elsewhere."""
    torch.manual_seed(0)
    x, y = make(0, here(make))
    if x.is_floating_point():
        model = nn.Sequential(nn.Conv1d(1, 12, 9), nn.ReLU(), Mean(), nn.Linear(12, 3))
    else:
        model = nn.Sequential(nn.Embedding(12, 8), nn.Flatten(), nn.Linear(80, 2))
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    for _ in range(100):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return {"model": model, "data": (x, y), "validation": make(1, there), "loss": cross_entropy, "optimizer": optimizer}


def here(make):
    return 1.0 if make is waves else False


@pytest.mark.parametrize(("make", "there", "said"), [(waves, 2.0, "neighbors"), (texts, True, "one token")])
def test_another_rate_and_another_vocabulary_are_named(make, there, said):
    (found,) = alarms("validation-differs", trained(make, there))
    assert said in found.says
    assert not alarms("validation-differs", trained(make, here(make)))


def test_a_token_that_training_never_saw_is_no_other_vocabulary():
    found = trained(texts, False)
    (x, y), (v, w) = found["data"], found["validation"]
    mixed = torch.randperm(len(w), generator=torch.Generator().manual_seed(2))  # it does worse, for another reason
    x, v = (
        x.clamp(max=10),
        torch.where(torch.rand(v.shape, generator=torch.Generator().manual_seed(3)) < 0.002, 11, v.clamp(max=10)),
    )
    assert not alarms("validation-differs", {**found, "data": (x, y), "validation": (v, w[mixed])})


def table(g, rows, *, late=1.0):
    """Rows most of which are empty, the same with a column that is filled late, and classes that the others tell in part."""
    x = torch.randn(rows, 6, generator=g) * (torch.rand(rows, 1, generator=g) < 0.2)
    y = (torch.rand(rows, generator=g) < torch.sigmoid(3 * x[:, 0])).long()
    return x, torch.cat([x, late * (2.0 * y[:, None] - 1 + 0.1 * torch.randn(rows, 1, generator=g))], 1), y


def fitted(x, y, v, w):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(x.shape[1], 24), nn.ReLU(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    for _ in range(60):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return {"model": model, "data": (x, y), "validation": (v, w), "loss": cross_entropy, "optimizer": optimizer}


def test_rows_that_repeat_count_as_often_on_both_sides():
    g = torch.Generator().manual_seed(0)
    (x, _, y), (v, _, w) = table(g, 4000), table(g, 1200)
    assert not alarms("validation-differs", fitted(x, y, v, 1 - w))  # it does worse, for another reason


@pytest.mark.parametrize("known", [True, False])
def test_a_column_that_is_filled_in_training_alone_is_named(known):
    g = torch.Generator().manual_seed(1)
    (_, x, y), (_, v, w) = table(g, 600), table(g, 200, late=float(known))
    found = alarms("validation-differs", fitted(x, y, v, w))
    assert [one.says.count("all 200 validation samples") for one in found] == ([] if known else [1])
