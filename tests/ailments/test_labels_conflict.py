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
