"""Is a layer still at its initialization while the others have been trained?"""

import pytest
import torch

import theodolite as th
from fixtures.judging import alarms


def _case(seed: int, *, cut: bool, frozen: bool = False, known: bool = True) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 32),
        torch.nn.Linear(32, 1),
    )
    origin = {name: value.clone() for name, value in model.state_dict().items()}
    if frozen:
        model[0].requires_grad_(False)
    x = torch.randn(256, 20)
    y = x[:, :1] * x[:, 1:2]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        first = model[:2](x)
        answer = model[2:](first.detach() if cut else first)
        (answer - y).square().mean().backward()
        optimizer.step()
    return {"model": model, "optimizer": optimizer, **({"origin": origin} if known else {})}


def cut_by_detach(seed: int) -> dict[str, object]:
    return _case(seed, cut=True)


def loaded_in_part(seed: int) -> dict[str, object]:
    case = _case(seed, cut=False, known=False)
    case["model"][2].reset_parameters()
    return {"model": case["model"], "optimizer": torch.optim.Adam(case["model"].parameters())}


def trained_whole(seed: int) -> dict[str, object]:
    return _case(seed, cut=False)


def trained_whole_start_unknown(seed: int) -> dict[str, object]:
    return _case(seed, cut=False, known=False)


def frozen_on_purpose(seed: int) -> dict[str, object]:
    return _case(seed, cut=False, frozen=True)


def new_head(seed: int) -> dict[str, object]:
    case = _case(seed, cut=False, known=False)
    case["model"][-1] = torch.nn.Linear(32, 4)
    return {"model": case["model"]}


def few_entries_near_a_bound(seed: int) -> dict[str, object]:
    case = _case(seed, cut=False, known=False)
    few = torch.rand(6, 32, generator=torch.Generator().manual_seed(seed)) * 2 - 1  # as training may leave so few
    case["model"][2] = torch.nn.Linear(32, 6)
    case["model"][2].weight.data = few / few.abs().max() * 0.99 * (3 / 32) ** 0.5
    case["model"][4] = torch.nn.Linear(6, 32)
    case["model"][4].weight.data.mul_(1.2)
    return {"model": case["model"], "optimizer": case["optimizer"]}


def deep_and_hardly_trained(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    first, last = torch.nn.Linear(20, 32), torch.nn.Linear(32, 4)
    blocks = [torch.nn.Linear(32, 32) for _ in range(80)]
    x = torch.randn(128, 20)
    model = torch.nn.ModuleList([first, *blocks, last])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(12):
        z = first(x)
        for block in blocks:
            z = z + 0.1 * torch.relu(block(z))
        loss = torch.nn.functional.cross_entropy(last(z), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.05), "steps": 12}


def fresh(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
    )
    torch.nn.init.orthogonal_(model.get_parameter("2.weight"))
    return {"model": model}


class _OnePlace(torch.nn.Module):
    """A recurrent layer that is given rows of a table: it carries nothing on, and its recurrent weights are not used."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = torch.nn.LSTM(6, 8, batch_first=True), torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def sequences_of_one_place(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    model, x, loss = _OnePlace(), torch.randn(256, 1, 6), torch.nn.functional.mse_loss
    origin = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        loss(model(x), x[:, 0, :1]).backward()
        optimizer.step()
    return {"model": model, "optimizer": optimizer, "origin": origin, "data": (x, x[:, 0, :1]), "loss": loss}


SICK = (cut_by_detach, loaded_in_part)
HEALTHY = (
    trained_whole,
    trained_whole_start_unknown,
    frozen_on_purpose,
    sequences_of_one_place,
    new_head,
    few_entries_near_a_bound,
    fresh,
    deep_and_hardly_trained,
)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("layer-untrained", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("layer-untrained", build(seed))


def test_a_convolution_whose_outputs_are_flattened_is_no_head():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 12, 3), torch.nn.Conv2d(12, 24, 3), torch.nn.Linear(24 * 16, 10))
    with torch.no_grad():
        for name in ("0.weight", "2.weight"):
            model.get_parameter(name).normal_()
    assert [found.name for found in th.diagnose(model.state_dict()).findings if found.severity == "warning"] == [
        "layer-untrained"
    ]
