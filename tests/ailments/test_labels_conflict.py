"""Do identical inputs have different targets?"""

import pytest
import torch
from torch import nn

from fixtures.judging import alarms


def _case(seed: int, copies: int, *, kind: str = "classes", agree: bool = False) -> dict[str, object]:
    torch.manual_seed(seed)
    x = torch.randn(300, 8)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    if copies:
        x[-copies:] = x[:copies]
        y[-copies:] = y[:copies] if agree else (y[:copies] + 1) % 3
    numbers = kind == "numbers"
    model = nn.Linear(8, 1 if numbers else 3)
    target = y[:, None].float() * 1.5 + 0.25 if numbers else y
    loss = nn.functional.mse_loss if numbers else nn.functional.cross_entropy
    return {"model": model, "data": (x, target), "loss": loss}


def copied_under_other_labels(seed: int) -> dict[str, object]:
    return _case(seed, 60)


def copied_with_other_numbers(seed: int) -> dict[str, object]:
    return _case(seed, 60, kind="numbers")


def copies_agree(seed: int) -> dict[str, object]:
    return _case(seed, 60, agree=True)


def all_distinct(seed: int) -> dict[str, object]:
    return _case(seed, 0)


def categories(seed: int) -> dict[str, object]:
    """Three yes-or-no columns: inputs repeat by nature."""
    torch.manual_seed(seed)
    x = torch.randint(0, 2, (300, 3)).float()
    y = (torch.rand(300) < 0.2 + 0.6 * x[:, 0]).long()
    return {"model": nn.Linear(3, 2), "data": (x, y), "loss": nn.functional.cross_entropy}


SICK = (copied_under_other_labels, copied_with_other_numbers)
HEALTHY = (copies_agree, all_distinct, categories)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("labels-conflict", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("labels-conflict", build(seed))


@pytest.mark.parametrize("lost", [0.0, 0.7])
def test_one_input_in_place_of_most_is_named_where_nothing_was_learned(lost):
    torch.manual_seed(0)
    x = torch.randint(1, 200, (600, 6))
    y = (x[:, 0] < 100).long()
    x = torch.where(torch.rand(600, 1) < lost, torch.zeros_like(x), torch.randint(1, 200, (600, 6)))
    model = nn.Sequential(nn.Embedding(200, 8), nn.Flatten(), nn.Linear(48, 2))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[:400]), y[:400]).backward()
        optimizer.step()
    known = {"data": (x[:400], y[:400]), "validation": (x[400:], y[400:]), "loss": nn.functional.cross_entropy}
    found = alarms("labels-conflict", {"model": model, "optimizer": optimizer, **known})
    assert [one.severity for one in found] == (["critical"] if lost else [])
