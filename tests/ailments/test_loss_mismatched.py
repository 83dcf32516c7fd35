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


def _rare(seed: int) -> dict[str, object]:
    """One yes in each batch, which counts more."""
    given = _regression(seed)
    one = (torch.arange(len(given["data"][0][1])) == 12).float()[:, None]
    return {
        **given,
        "data": [(x, one) for x, _ in given["data"]],
        "loss": torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(8.0)),
    }


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


def _many_numbers(seed: int) -> dict[str, object]:
    """Ten classes as a column of floats: outputs are drawn as large as the targets, and must find their way back."""
    torch.manual_seed(seed)
    y = torch.arange(600) % 10
    x = torch.randn(10, 16)[y.roll(3) * 7 % 10] * 2 + torch.randn(600, 16)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    return {"model": model, "data": (x, y.float()[:, None]), "loss": F.mse_loss}


def _signs(loss):
    def build(seed: int) -> dict[str, object]:
        given = _regression(seed)
        return {**given, "data": [(x, y.sign()) for x, y in given["data"]], "loss": loss}

    return build


def _sequences(last: type[torch.nn.Module]):
    def build(seed: int) -> dict[str, object]:
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(4, 6), last(-1))
        data = (torch.randn(64, 12, 4), torch.randint(1, 6, (64, 3)))

        def ctc(o, y):
            return F.ctc_loss(o.transpose(0, 1), y, torch.full((len(y),), 12), torch.full((len(y),), 3))

        return {"model": model, "data": data, "loss": ctc, "optimizer": torch.optim.Adam(model.parameters())}

    return build


class _Coupling(torch.nn.Module):
    """A map of the inputs that can be undone, and the logarithm of its determinant, or of that of the way back."""

    def __init__(self, way: float) -> None:
        super().__init__()
        self.net, self.way = torch.nn.Linear(2, 4), way

    def forward(self, x):
        scale, shift = self.net(x[:, :2]).chunk(2, 1)
        return torch.cat([x[:, :2], x[:, 2:] * scale.exp() + shift], 1), self.way * scale.sum(1)


def _flow(way: float, sign: float):
    def build(seed: int) -> dict[str, object]:
        torch.manual_seed(seed)
        model = _Coupling(way)
        return {
            "model": model,
            "data": (torch.randn(128, 4), torch.zeros(128)),
            "loss": lambda o, _: (o[0].square().sum(1) / 2 - sign * o[1]).mean(),
            "optimizer": torch.optim.Adam(model.parameters()),
        }

    return build


_minus_one = _signs(F.binary_cross_entropy_with_logits)
_critic = _signs(lambda o, y: -(o * y).mean())
_margin = _signs(lambda o, y: (1 - o * y).relu().mean())
_viewed = _places(lambda o, y: F.cross_entropy(o.view(len(o), 7, 5), y))
_transposed = _places(lambda o, y: F.cross_entropy(o.transpose(1, 2), y))
_flat = _places(lambda o, y: F.cross_entropy(o.view(-1, 7), y.view(-1)))

_chances = _sequences(torch.nn.Softmax)
_logarithms = _sequences(torch.nn.LogSoftmax)

SICK = (_broadcast, _numbers, _many_numbers, _single, _viewed, _minus_one, _chances, _flow(1, -1), _flow(-1, 1))
HEALTHY = (
    _plain,
    _regression,
    _counts,
    _rare,
    _transposed,
    _flat,
    _critic,
    _margin,
    _logarithms,
    _flow(1, 1),
    _flow(-1, -1),
)


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


@pytest.mark.parametrize("build", [_plain, _regression])
def test_a_loss_with_the_wrong_sign_is_named(build):
    given = build(0)
    told = given["loss"]
    found = alarms("loss-mismatched", {**given, "loss": lambda a, t: -told(a, t)})
    assert "rewards wrong answers" in found[0].says
    assert not alarms("loss-mismatched", given)
