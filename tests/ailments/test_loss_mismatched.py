"""Does the loss ask for something other than what the targets mean?"""

import pytest
import torch
import torch.nn.functional as F

import theodolite as th
from fixtures.fresh import digits_like, number_like, stack
from fixtures.judging import alarms


def _broadcast(seed: int) -> dict[str, object]:
    given = number_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )
    return {
        **given,
        "data": [(x, y.squeeze(1)) for x, y in given["data"]],
        "loss": lambda a, t: (a - t).square().mean(),
    }


def _numbers(seed: int) -> dict[str, object]:
    given = digits_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )
    return {**given, "loss": lambda a, t: F.mse_loss(a.squeeze(-1), t.float())}


def _single(seed: int) -> dict[str, object]:
    given = digits_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )
    return {**given, "data": [(x, torch.zeros_like(y)) for x, y in given["data"]]}


def _plain(seed: int) -> dict[str, object]:
    return digits_like(seed, lambda: stack(2))


def _regression(seed: int) -> dict[str, object]:
    return number_like(
        seed, lambda: torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    )


def _counts(seed: int) -> dict[str, object]:
    given = _regression(seed)
    return {**given, "data": [(x, (2 * y + 4).round().clamp(0, 8)) for x, y in given["data"]]}


def _places(loss):
    def build(seed: int) -> dict[str, object]:
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Embedding(7, 16), torch.nn.Linear(16, 7))
        x = torch.randint(0, 7, (64, 5))
        return {
            "model": model,
            "data": (x, (x + 1) % 7),
            "loss": loss,
            "optimizer": torch.optim.Adam(model.parameters()),
        }

    return build


_viewed = _places(lambda o, y: F.cross_entropy(o.view(len(o), 7, 5), y))
_transposed = _places(lambda o, y: F.cross_entropy(o.transpose(1, 2), y))
_flat = _places(lambda o, y: F.cross_entropy(o.view(-1, 7), y.view(-1)))

SICK = (_broadcast, _numbers, _single, _viewed)
HEALTHY = (_plain, _regression, _counts, _transposed, _flat)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("loss-mismatched", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("loss-mismatched", build(seed))


def test_weights_of_classes_make_no_other_loss():
    given = digits_like(0, lambda: stack(2))
    target = given["data"][0][1]
    weights = torch.linspace(0.2, 4.0, int(target.max()) + 1)
    known = {"data": given["data"], "optimizer": given["optimizer"], "loss": torch.nn.CrossEntropyLoss(weight=weights)}
    found = th.diagnose(given["model"], **known).findings
    assert "loss-mismatched" not in {finding.name for finding in found}
