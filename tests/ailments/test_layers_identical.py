"""Are layers copies of each other that should not be?"""

import pytest
import torch
from torch import nn

import theodolite as th
from fixtures.judging import alarms, judged


def _trained(seed: int) -> tuple[nn.Sequential, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 20), torch.nn.ReLU(), torch.nn.Linear(20, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1)
    )
    x = torch.randn(256, 20)
    y = x[:, :1] * x[:, 1:2]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    return model, optimizer


def copied_by_mistake(seed: int) -> dict[str, object]:
    model, optimizer = _trained(seed)
    model[2].load_state_dict(model[0].state_dict())
    return {"model": model, "optimizer": optimizer}


def trained_apart(seed: int) -> dict[str, object]:
    model, optimizer = _trained(seed)
    return {"model": model, "optimizer": optimizer}


def fresh_encoder(seed: int) -> dict[str, object]:
    torch.manual_seed(seed)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return {"model": torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)}


SICK = (copied_by_mistake,)
HEALTHY = (trained_apart, fresh_encoder)


@pytest.mark.parametrize("build", SICK)
def test_the_sick_are_found(build):
    found = alarms("layers-identical", build(0))
    assert found
    assert found[0].says and found[0].remedy


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", HEALTHY)
def test_the_healthy_are_left_alone(build, seed):
    assert not alarms("layers-identical", build(seed))


@pytest.mark.parametrize("shared", [True, False])
def test_one_block_in_several_places_is_a_note(shared):
    torch.manual_seed(0)
    block = torch.nn.Linear(8, 8)
    model = torch.nn.Sequential(*([block] * 3 if shared else [torch.nn.Linear(8, 8) for _ in range(3)]))
    found = judged("layers-identical", {"model": model})
    assert [finding.severity for finding in found] == (["note"] if shared else [])


def _saved(shared: torch.Tensor) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    own = {f"{place}.weight": torch.randn(64, 32, generator=generator) for place in ("a", "b")}
    return own | {f"{place}.extra": shared.clone() for place in ("a", "b")}


@pytest.mark.parametrize("sides", [(128,), (16, 8)])
def test_grids_of_coordinates_in_a_file_are_no_copies(sides):
    lines = [torch.linspace(-1, 1, side) for side in sides]
    grid = torch.stack(torch.meshgrid(*lines, indexing="ij"))[None]
    assert not th.survey(_saved(grid)).diagnosis.findings
    noise = torch.randn(grid.shape, generator=torch.Generator().manual_seed(1))
    assert [finding.name for finding in th.survey(_saved(noise)).diagnosis.findings] == ["layers-identical"]
