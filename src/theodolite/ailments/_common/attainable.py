"""What a kernel machine attains on held-out data after seeing training data, beside what the network attains on the same samples.

The kernel is that of an infinitely wide network (one hidden layer of ReLUs), the ridge is chosen by leaving out each training
sample in turn: nothing is tuned on held-out data. A network of any kind that was trained well keeps up with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.ailments._common.chart import Chart
from theodolite.ailments._common.relation import RIDGES, features
from theodolite.ailments._common.samples import Sample, answered_classes, classes_in, sample_of
from theodolite.core.state import untouched
from theodolite.io.batches import Batch
from theodolite.theory import Mlp
from theodolite.theory.kernels.inference import leave_one_out_residuals
from theodolite.theory.kernels.wide_networks import mlp_kernels

ROWS, FEWEST, COLUMNS = 1200, 100, 64
"""Samples of each kind that are used at most and at least, and columns of targets at most."""


@dataclass(frozen=True)
class Attained:
    """Held-out ``skill`` of the network and of the ``kernel`` machine: 0 of the best constant answer, 1 of a perfect one.

    ``stderr`` is that of their difference, sample by sample. For classes the skill is of accuracy, else of mean squares.
    """

    skill: float
    kernel: float
    stderr: float
    seen: int
    samples: int


def attained(chart: Chart) -> Attained | None:
    """The two beside each other; None without held-out data, or where inputs and targets are not of a kind that kernels take."""
    training, held = _few(chart.batches), _few(chart.held_out)
    if training is None or held is None or training.inputs[0].shape[1:] != held.inputs[0].shape[1:]:
        return None
    x = training.inputs[0]
    if not x.is_floating_point():  # of tokens a kernel knows pairs at once, which networks must find first
        return None
    y, wanted = _targets(training, held)
    answers = _answers(chart, held)
    if y is None or wanted is None or answers is None:
        return None
    rows = features(torch.cat([training.inputs[0], held.inputs[0]]).cpu())
    n = len(training)
    kernel = mlp_kernels(Mlp(hidden_layers=1, activation="relu", weight_variance=2.0, bias_variance=0.1), rows).ntk
    told = _predicted(kernel, n, y)
    if classes_in(training.target) is not None:
        said = answered_classes(answers)
        if said is None or len(said) != len(wanted):
            return None
        truth = wanted.argmax(1)
        base = float(torch.bincount(truth).max()) / len(truth)
        wrong = [(guess != truth).double() / (1 - base) for guess in (said.cpu(), told.argmax(1))] if base < 1 else []
    else:
        if answers.numel() != wanted.numel():
            return None
        spread = (wanted - wanted.mean(0)).square().sum(1).mean()
        own = answers.reshape(wanted.shape).double().cpu()
        wrong = [(guess - wanted).square().sum(1) / spread for guess in (own, told)] if float(spread) > 0 else []
    if not wrong:
        return None
    apart = wrong[0] - wrong[1]
    error = float(apart.std()) / math.sqrt(len(apart))
    return Attained(1 - float(wrong[0].mean()), 1 - float(wrong[1].mean()), error, n, len(apart))


def _few(batches: tuple[Batch, ...]) -> Sample | None:
    """Some samples of batches with one input, spread evenly."""
    sample = sample_of(batches)
    if sample is None or sample.target is None or len(sample.inputs) != 1 or len(sample) < FEWEST:
        return None
    if not batches[0].inputs and not batches[0].keywords:
        return None
    part = torch.linspace(0, len(sample) - 1, min(ROWS, len(sample)), device=sample.inputs[0].device).long()
    return Sample((sample.inputs[0][part],), sample.target[part.to(sample.target.device)])


def _targets(training: Sample, held: Sample) -> tuple[Tensor | None, Tensor | None]:
    """Targets as numbers (n, columns): one-hot rows of classes, or numbers that are not the inputs themselves."""
    assert training.target is not None and held.target is not None
    own, other = classes_in(training.target), classes_in(held.target)
    if own is not None and other is not None:
        count = int(max(own.max(), other.max())) + 1
        return tuple(torch.nn.functional.one_hot(c.cpu(), count).double() for c in (own, other))  # type: ignore[return-value]
    if own is not None or other is not None or not training.target.is_floating_point() or training.target.ndim > 2:
        return None, None
    y, wanted = (s.target.reshape(len(s), -1).double().cpu() for s in (training, held) if s.target is not None)
    same = training.inputs[0][0].numel() == y.shape[1] and torch.equal(
        training.inputs[0].reshape(len(y), -1).double().cpu(), y
    )
    return (None, None) if same or y.shape[1] > COLUMNS else (y, wanted)


@torch.no_grad()
def _answers(chart: Chart, held: Sample) -> Tensor | None:
    assert chart.model is not None and held.target is not None
    one = chart.held_out[0]
    parts = []
    with untouched(chart.model):
        for x in torch.split(held.inputs[0], 256):
            keywords = dict.fromkeys(one.keywords, x)
            answer = chart.answer(chart.model, Batch(() if keywords else (x,), keywords, None))
            if not isinstance(answer, Tensor) or len(answer) != len(x):
                return None
            parts.append(answer.float())
    answers = torch.cat(parts)
    return answers if bool(torch.isfinite(answers).all()) else None


def _predicted(kernel: Tensor, n: int, y: Tensor) -> Tensor:
    """The kernel machine's answers to held-out samples, by the ridge with the least error on training samples left out."""
    mean, size = y.mean(0), float(kernel[:n, :n].diagonal().mean())
    inner = kernel[:n, :n]
    errors = {r: float(leave_one_out_residuals(inner, y - mean, ridge=r * size).square().mean()) for r in RIDGES}
    ridge = min(errors, key=lambda r: errors[r]) * size
    weights = torch.linalg.solve(inner + ridge * torch.eye(n, dtype=inner.dtype), y - mean)
    told: Tensor = kernel[n:, :n] @ weights + mean
    return told
