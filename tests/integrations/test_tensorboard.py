"""A real event file, read back."""

import math

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import theodolite as th


def test_every_scalar_reaches_the_event_file(tmp_path):
    x, y = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 2
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    with SummaryWriter(tmp_path) as writer:
        watch = th.Watch(model, probe=(x, y), writer=writer, every=2, budget=math.inf)
        for step in range(5):
            watch(step, lr=0.1)
    events = EventAccumulator(str(tmp_path)).Reload()
    found = {(tag, event.step): event.value for tag in events.Tags()["scalars"] for event in events.Scalars(tag)}
    assert len(found) == len(watch.rows())
    row = watch.records[-1].value("largest Hessian eigenvalue")
    assert found["theodolite/sharpness/largest-Hessian-eigenvalue", 4] == pytest.approx(row, rel=1e-6)
