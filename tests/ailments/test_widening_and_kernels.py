"""A network made wider by program, and the kernel machine that a run is measured by."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from theodolite.ailments import batch_noise, loss_stalls, step_too_large, too_narrow
from theodolite.ailments._common.attainable import attained
from theodolite.ailments._common.chart import Chart
from theodolite.ailments._common.fit import constant_loss
from theodolite.ailments._common.patients import batches_of, clouds, network, patient
from theodolite.ailments._common.trials import TrialComparison, longer_trial
from theodolite.ailments._common.widening import widened_copy
from theodolite.io.batches import Batch
from theodolite.measure.dynamics.trial_runs import TrialRun


class Sentences(nn.Module):
    """A transformer whose width is read off what it is given."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(11, width), nn.Parameter(torch.randn(6, width))
        self.norm, self.mixed, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.head = nn.Linear(width, 11)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places
        q, k, v = self.mixed(self.norm(x)).chunk(3, -1)
        return self.head(x + self.out(F.scaled_dot_product_attention(q, k, v)))


class Recurrent(nn.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTM(2, width, batch_first=True), nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


@pytest.mark.parametrize(
    ("model", "x", "name", "shape"),
    [
        (Sentences(), torch.zeros(2, 6, dtype=torch.long), "mixed", (72, 24)),
        (Recurrent(), torch.randn(2, 5, 2), "head", (4, 9)),
        (
            nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3)),
            torch.randn(2, 1, 4, 4),
            "3",
            (3, 24),
        ),
    ],
)
def test_hidden_layers_grow_and_inputs_and_outputs_stay(model, x, name, shape):
    before = {key: value.clone() for key, value in model.state_dict().items()}
    wide = widened_copy(model, 3, x)
    assert wide is not None and tuple(wide.get_submodule(name).weight.shape) == shape
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert wide(x).shape == model(x).shape


def test_tied_and_frozen_networks_are_not_widened():
    tied, frozen = Sentences(), Recurrent()
    tied.head.weight = tied.embed.weight
    frozen.head.requires_grad_(False)
    assert widened_copy(tied, 2, torch.zeros(2, 6, dtype=torch.long)) is None
    assert widened_copy(frozen, 2, torch.randn(2, 5, 2)) is None


class Copier(nn.Module):
    """Names the token it is given, through so many units."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(24, width), nn.LayerNorm(width), nn.Linear(width, 24)

    def forward(self, tokens):
        return self.head(torch.relu(self.norm(self.embed(tokens))))


def _copying(width: int) -> Chart:
    torch.manual_seed(0)
    model = Copier(width)
    x = torch.randint(0, 24, (1024, 4), generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)

    def loss(answer, target):
        return F.cross_entropy(answer.flatten(0, 1), target.flatten())

    return Chart(model, data=batches_of(x, x, 64), loss=loss, optimizer=optimizer)


def test_a_network_that_is_no_chain_is_found_too_narrow():
    found = list(too_narrow.judge(_copying(2)))
    assert [finding.where for finding in found] == ["embed"]
    assert found[0].suggested == {"width": 32}
    assert not list(too_narrow.judge(_copying(32)))


def _trained(seed: int, *, spoilt: bool) -> Chart:
    """A run that learnt, and the same with its last layer drawn anew."""
    given = patient(seed, lambda own: torch.optim.Adam(own, 1e-2), steps=300, samples=1024)
    if spoilt:
        list(given["model"].children())[-1].reset_parameters()
    return Chart(**given)


def test_a_kernel_machine_sets_a_standard_that_a_spoilt_run_does_not_reach():
    good, poor = attained(_trained(0, spoilt=False)), attained(_trained(0, spoilt=True))
    assert good is not None and poor is not None
    assert good.kernel == poor.kernel > 0.5
    assert good.skill > 0.9 * good.kernel
    assert poor.kernel - poor.skill > 3 * poor.stderr
    found = list(loss_stalls._below_a_kernel(_trained(0, spoilt=True)))
    assert found and "ridge regression" in found[0].says
    assert not list(loss_stalls._below_a_kernel(_trained(0, spoilt=False)))


def test_a_best_constant_far_from_zero_is_found():
    y = 1e6 + 2e5 * torch.randn(256, 3, generator=torch.Generator().manual_seed(0))
    x = torch.randn(256, 3, generator=torch.Generator().manual_seed(1))
    batches = [Batch((x[i : i + 64],), {}, y[i : i + 64]) for i in range(0, 256, 64)]
    found = constant_loss(nn.Linear(3, 3), lambda model, batch: model(*batch.inputs), F.mse_loss, batches)
    assert found == pytest.approx(float((y - y.mean(0)).square().mean()), rel=1e-3)


def test_a_batch_size_that_was_not_seen_is_read_off_the_batches():
    sick = batch_noise.ailment.examples["sick"][0]
    chart = Chart(**sick(0), events={"batch size": math.nan})
    assert list(batch_noise.judge(chart))


def test_a_trial_that_time_cut_short_is_not_made_again():
    x, y = clouds(0, 256)
    model = network(0)
    chart = Chart(
        model, data=batches_of(x, y, 32), loss=F.cross_entropy, optimizer=torch.optim.SGD(model.parameters(), 0.1)
    )
    cut = TrialRun(1.0, 0.9, 0.01, (1.0, 0.95), 3.0)
    chart._trials["as it is, 300 steps"] = cut
    assert longer_trial(chart, steps=60) is cut
    assert longer_trial(chart, steps=1) is not cut


def test_a_few_steps_that_ruin_are_enough_to_name_a_step():
    def run(after: float, stderr: float = 0.1) -> TrialRun:
        return TrialRun(2.4, after, stderr, (2.4,) * 5, 1.0, (after, after, after))

    assert step_too_large.spares(TrialComparison(run(300.0), run(2.4)), chance=2.3)
    assert not step_too_large.spares(
        TrialComparison(run(300.0), run(40.0)), chance=2.3
    )  # the smaller one ruins as well
    assert not step_too_large.spares(TrialComparison(run(5.0), run(2.3)), chance=2.3)  # a first rise is no ruin
    assert not step_too_large.spares(TrialComparison(run(300.0, stderr=200.0), run(2.4)), chance=2.3)
