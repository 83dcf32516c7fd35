"""Do the inputs say anything about the targets at all?"""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from fixtures.judging import alarms, subject_of


def _case(seed: int, related: float, *, steps: int = 60) -> dict[str, object]:
    """Three classes of 600 samples, a share of the labels at their own place."""
    generator = torch.Generator().manual_seed(seed)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(n, 10, generator=generator)
        y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0.3).long()
        mixed = torch.rand(n, generator=generator) > related
        return x, torch.where(mixed, y[torch.randperm(n, generator=generator)], y)

    data, validation = draw(600), draw(600)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0]), data[1]).backward()
        optimizer.step()
    return {
        "model": model,
        "data": data,
        "validation": validation,
        "loss": nn.functional.cross_entropy,
        "optimizer": optimizer,
    }


def shuffled(seed: int) -> dict[str, object]:
    return _case(seed, 0.0)


def shuffled_not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 0.0, steps=0)


def related(seed: int) -> dict[str, object]:
    return _case(seed, 1.0)


def half_noise(seed: int) -> dict[str, object]:
    return _case(seed, 0.6)


def related_not_yet_trained(seed: int) -> dict[str, object]:
    return _case(seed, 1.0, steps=0)


def _maps(seed: int, *, mixed: bool) -> dict[str, object]:
    """Bright squares in noise, and a map of where they are; of other images if mixed."""
    g = torch.Generator().manual_seed(seed)
    y = torch.zeros(300, 12, 12, dtype=torch.long)
    for image, (row, column) in enumerate(torch.randint(9, (300, 2), generator=g).tolist()):
        y[image, row : row + 3, column : column + 3] = 1
    x = (y + 0.5 * torch.randn(y.shape, generator=g))[:, None]
    y = y[torch.randperm(300, generator=g)] if mixed else y
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 2, 1))  # it has moved and learned nothing
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-9)
    nn.init.zeros_(model[0].weight)
    nn.functional.cross_entropy(model(x[:200]), y[:200]).backward()
    optimizer.step()
    known = {"loss": nn.functional.cross_entropy, "optimizer": optimizer, "steps": 100}
    return {"model": model, "data": (x[:200], y[:200]), "validation": (x[200:], y[200:]), **known}


@pytest.mark.parametrize("mixed", [True, False])
def test_masks_of_other_images(mixed):
    """A network that has learned nothing and that nothing helped: what lies around a place tells whether targets belong there."""
    subject = subject_of(_maps(0, mixed=mixed))
    subject.seen["experiment"] = SimpleNamespace(cause=None)
    assert bool(alarms("labels-unrelated", subject)) == mixed


@pytest.mark.parametrize("mixed", [True, False])
def test_pictures_of_other_images(mixed):
    """Numbers at places that have a mean of their own: what lies around a place tells which place it is, and that is all."""
    given = _maps(0, mixed=False)
    g = torch.Generator().manual_seed(3)
    own = torch.rand(300, 1, 12, 12, generator=g) + 3 * torch.linspace(0, 1, 12)
    clean = own[torch.randperm(300, generator=g)] if mixed else own
    x = own + 0.2 * torch.randn(own.shape, generator=g)
    model = nn.Sequential(nn.Conv2d(1, 1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-9)
    nn.functional.mse_loss(model(x[:200]), clean[:200]).backward()
    optimizer.step()
    nn.init.zeros_(model[0].weight)
    known = {**given, "model": model, "loss": nn.functional.mse_loss, "optimizer": optimizer}
    subject = subject_of({**known, "data": (x[:200], clean[:200]), "validation": (x[200:], clean[200:])})
    subject.seen["experiment"] = SimpleNamespace(cause=None)
    assert bool(alarms("labels-unrelated", subject)) == mixed


def rows_of_a_table(seed: int) -> dict[str, object]:
    """Inputs are numbers of rows that the model looks up: by themselves they say nothing."""
    given = _case(seed, 1.0, steps=0)
    x, y = given["data"]  # type: ignore[misc]
    layer = given["model"]
    model = nn.Sequential(nn.Embedding.from_pretrained(x), layer)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-6)  # type: ignore[attr-defined]
    return {**given, "model": model, "data": (torch.arange(600), y), "validation": None, "optimizer": optimizer}


SICK = (shuffled, shuffled_not_yet_trained)
HEALTHY = (rows_of_a_table, related, half_noise, related_not_yet_trained)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("labels-unrelated", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("labels-unrelated", build(seed))


def test_of_users_and_items_the_network_is_the_only_witness():
    """What is exact, such as a table that no step changes, comes before it."""
    g = torch.Generator().manual_seed(0)
    x = torch.stack([torch.randint(300, (1500,), generator=g), torch.randint(200, (1500,), generator=g)], 1)
    model = nn.Sequential(nn.Embedding(300, 4), nn.Flatten(), nn.Linear(8, 1), nn.Flatten(0))
    y = torch.randn(1500, generator=g)
    optimizer = torch.optim.Adam(model.parameters())
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    known = {"model": model, "loss": nn.functional.mse_loss, "optimizer": optimizer, "steps": 100}
    (found,) = alarms("labels-unrelated", {**known, "data": (x[:1000], y[:1000]), "validation": (x[1000:], y[1000:])})
    assert found.severity == "warning"
