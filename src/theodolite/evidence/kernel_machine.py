"""What a kernel machine can tell of targets from inputs, each sample left out in turn, beside the same with targets permuted."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import Sample, distinct_batches, sample_of, validation_batches
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import A_FEW, CRITICAL, FEWEST, LONG, MANY, PARTS, SAMPLES, SURE
from theodolite.io.batches import Batch
from theodolite.measure.propagation.input_sizes import input_scales
from theodolite.theory import Mlp
from theodolite.theory.kernels.inference import leave_one_out_residuals
from theodolite.theory.kernels.wide_networks import mlp_kernels

PERMUTATIONS = 99
"""Orders of the targets: those as they are stand out by chance once in a hundred."""
RIDGES = (0.01, 0.3, 3.0)
"""Ridges beside a kernel's mean diagonal; the best counts, for permuted targets as well."""
COLUMNS = 64
"""Columns of targets at most: more are places of one thing, not columns of a table."""


@dataclass(frozen=True)
class Relation:
    """``correlation`` of a kernel machine's answers with the targets, in the mean over classes or columns.

    Of labels of which a share q is right and the rest random, it is q times that of right ones. ``null`` and ``null_error`` are
    its mean and deviation over permuted targets, ``p_value`` is that of the permutations.
    """

    correlation: float
    null: float
    null_error: float
    p_value: float
    samples: int
    classes: int

    @property
    def visible(self) -> float:
        """The least correlation that would have stood out by three errors: the power of the test."""
        return SURE * self.null_error


def at_places(sample: Sample) -> Sample | None:
    """Of each image the neighborhood of one place and the target there, where targets are maps; None where they are not.

    Every other place is one of those that differ from the commonest target, if there is any: most of a map is background. One
    place of an image, for neighbors share their targets.
    """
    x, y = sample.inputs[0], sample.target
    if y is None or len(sample.inputs) != 1 or not x.is_floating_point() or x.ndim != 4 or y.ndim not in (3, 4):
        return None
    x, y = x.detach().cpu().float(), y.detach().cpu()
    y = y[:, None] if y.ndim == 3 else y
    whole, part = x.shape[2], y.shape[2]
    if part < A_FEW or whole % part or x.shape[3] * part != y.shape[3] * whole:
        return None
    size = whole // part
    padded = torch.nn.functional.pad(x, (2 * size,) * 4, mode="reflect")
    flat = y.flatten(2)  # (n, channels, places)
    common = flat[:, 0].float().median()
    generator = torch.Generator().manual_seed(0)
    chance = torch.rand(len(x), flat.shape[2], generator=generator)
    chance[::2] += (flat[::2, 0] != common).float()
    place = chance.argmax(1)
    row, column = place // y.shape[3], place % y.shape[3]
    around = [
        padded[i, :, r * size : r * size + 5 * size, c * size : c * size + 5 * size].flatten()
        for i, (r, c) in enumerate(zip(row.tolist(), column.tolist(), strict=True))
    ]
    told = flat[torch.arange(len(x)), :, place]
    if y.is_floating_point():  # beside the mean there: what lies around it tells the place, too
        return Sample((torch.stack(around),), told - flat.mean(0)[:, place].mT)
    return Sample((torch.stack(around),), told[:, 0])


def relation_of(sample: Sample | None, enough: float = math.inf) -> Relation | None:
    """The relation between a sample's inputs and targets; None where it has no one input, or targets of another kind.

    A correlation that is ``enough`` is not compared with those of permuted targets.
    """
    if sample is None or sample.target is None or len(sample.inputs) != 1:
        return None
    order = torch.randperm(len(sample), generator=torch.Generator().manual_seed(0))[:LONG]
    target = sample.target.cpu()[order]
    classes = classes_in(target)
    if classes is not None:
        y = torch.nn.functional.one_hot(torch.unique(classes, return_inverse=True)[1]).double()
        y = y[:, y.sum(0) >= PARTS]
    elif target.is_floating_point() and target.ndim <= 2:
        y = target.reshape(len(target), -1).double()
        y = y[:, y.std(0) > 0]
    else:
        return None
    if y.shape[1] == 0 or y.shape[1] > COLUMNS or (classes is not None and y.shape[1] < 2):
        return None
    rows = features(sample.inputs[0].cpu()[order])
    kernels = [mlp_kernels(Mlp(hidden_layers=1, activation="relu", weight_variance=2.0, bias_variance=0.1), rows).ntk]
    if rows.shape[1] <= A_FEW:
        kernels.append(_local(rows))
    first = _permuted(kernels, y - y.mean(0), classes is not None, 0)
    return first if first.correlation >= enough else _permuted(kernels, y - y.mean(0), classes is not None)


def _local(rows: Tensor) -> Tensor:
    """The Laplace kernel as wide as neighbors are apart: targets may vary faster over coordinates than a network follows."""
    apart = torch.cdist(rows, rows)
    width = apart.kthvalue(min(A_FEW + 1, len(rows)), dim=1).values.median().clamp(min=1e-12)
    return (-apart / width).exp()


def _permuted(kernels: Sequence[Tensor], y: Tensor, is_classes: bool, permutations: int = PERMUTATIONS) -> Relation:
    n, outputs = y.shape
    generator = torch.Generator().manual_seed(1)
    orders = [torch.arange(n), *(torch.randperm(n, generator=generator) for _ in range(permutations))]
    every = torch.stack([y[order] for order in orders])  # (orders, n, outputs)
    flat = every.permute(1, 0, 2).reshape(n, -1)
    best = torch.full((len(orders),), -math.inf, dtype=torch.float64)
    for kernel, ridge in itertools.product(kernels, RIDGES):
        told = flat - leave_one_out_residuals(kernel, flat, ridge=ridge * float(kernel.diagonal().mean()))
        told = told.reshape(n, len(orders), outputs).permute(1, 0, 2)
        best = torch.maximum(best, correlations(told, every))
    null = best[1:] if permutations else torch.zeros(2, dtype=torch.float64)
    p_value = (1 + int((null >= best[0]).sum())) / len(orders)
    return Relation(float(best[0]), float(null.mean()), float(null.std()), p_value, n, outputs if is_classes else 0)


def correlations(told: Tensor, truth: Tensor) -> Tensor:
    """The correlation of answers with targets, (..., n, outputs) each, in the mean over outputs that vary."""
    a, b = told - told.mean(-2, keepdim=True), truth - truth.mean(-2, keepdim=True)
    size = (a.square().sum(-2) * b.square().sum(-2)).sqrt()
    each = torch.where(size > 0, (a * b).sum(-2) / size.clamp(min=1e-300), torch.zeros_like(size))
    return each.mean(-1)


def features(x: Tensor) -> Tensor:
    """Rows of unit mean square in float64: standardized numbers, or counts of tokens and of neighboring pairs of tokens."""
    if x.is_floating_point() or x.ndim != 2:
        rows = input_scales(x.float().reshape(len(x), -1)).standardized(x.float().reshape(len(x), -1)).double()
        if rows.shape[1] > LONG:
            draw = torch.randn(rows.shape[1], LONG, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
            rows = rows @ draw / math.sqrt(rows.shape[1])
    else:
        tokens = x.long()
        pairs = (tokens[:, :-1] * 7919 + tokens[:, 1:] * 104_729 + 17) % MANY
        rows = torch.zeros(len(x), 2 * MANY, dtype=torch.float64)
        rows.scatter_add_(1, tokens % MANY, torch.ones_like(tokens, dtype=torch.float64))
        rows.scatter_add_(1, MANY + pairs, torch.ones_like(pairs, dtype=torch.float64))
        rows = rows[:, rows.any(0)].sqrt()
        rows = rows - rows.mean(0)
    return rows / rows.square().mean().sqrt().clamp(min=1e-12)


@dataclass(frozen=True)
class Attained:
    """Held-out ``skill`` of the network and of the ``kernel`` machine: 0 when ignoring the input, 1 of a perfect answer.

    ``stderr`` is that of their difference, sample by sample. For classes the skill is of accuracy, else of mean squares.
    """

    skill: float
    kernel: float
    stderr: float
    seen: int
    samples: int


def attained(subject: Subject) -> Attained | None:
    """The two beside each other; None without held-out data, or where inputs and targets are not of a kind that kernels take."""
    training, held = _few(tuple(distinct_batches(subject))), _few(validation_batches(subject))
    if training is None or held is None or training.inputs[0].shape[1:] != held.inputs[0].shape[1:]:
        return None
    x = training.inputs[0]
    if not x.is_floating_point():  # of tokens a kernel knows pairs at once, which networks must find first
        return None
    kinds = ("numbers",) if classes_in(training.target) is None else ("classes", "labels")
    if task(subject).kind not in kinds:  # outputs are not what is compared here
        return None
    y, wanted = _targets(training, held)
    answers = _answers(subject, held)
    if y is None or wanted is None or answers is None:
        return None
    rows = features(torch.cat([training.inputs[0], held.inputs[0]]).cpu())
    n = len(training)
    kernel = mlp_kernels(Mlp(hidden_layers=1, activation="relu", weight_variance=2.0, bias_variance=0.1), rows).ntk
    told = _predicted(kernel, n, y)
    if classes_in(training.target) is not None:
        meant = task(subject)
        said = meant.yes(answers).flatten().long() if meant.kind == "labels" else answered_classes(answers)
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


def _few(whole: tuple[Batch, ...]) -> Sample | None:
    """Some samples of batches with one input, spread evenly."""
    sample = sample_of(whole)
    if sample is None or sample.target is None or len(sample.inputs) != 1 or len(sample) < FEWEST:
        return None
    if not whole[0].inputs and not whole[0].keywords:
        return None
    part = torch.linspace(0, len(sample) - 1, min(LONG, len(sample)), device=sample.inputs[0].device).long()
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
    same = training.inputs[0][0].numel() == y.shape[1]
    # what a network lacks that gives its input back, noisy or not, is up to its middle, which a kernel has not
    if same:
        x = training.inputs[0].reshape(len(y), -1).double().cpu()
        same = float((x - y).square().mean()) < CRITICAL * float((y - y.mean(0)).square().mean())
    return (None, None) if same or y.shape[1] > COLUMNS else (y, wanted)


@torch.no_grad()
def _answers(subject: Subject, held: Sample) -> Tensor | None:
    assert subject.model is not None and held.target is not None
    one = validation_batches(subject)[0]
    parts = []
    with untouched(subject.model):
        for x in torch.split(held.inputs[0], SAMPLES):
            keywords = dict.fromkeys(one.keywords, x)
            answer = subject.answer(Batch(() if keywords else (x,), keywords, None))
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
    return kernel[n:, :n] @ weights + mean


def classes_in(target: Tensor | None) -> Tensor | None:
    """Class numbers (n,) where every sample has one class, and there are far fewer classes than samples; else None."""
    labels = None if target is None or not target.numel() else class_labels_of(target)
    if labels is None or target is None or target.numel() > len(target):
        return labels
    return labels if int(labels.min()) >= 0 and len(torch.unique(labels)) <= max(2, len(labels) // 2) else None


def class_labels_of(target: Any) -> Tensor | None:
    """Class numbers (n,): whole numbers, one-hot rows, or nothing but zeros and ones; else None."""
    if not isinstance(target, Tensor) or not 1 <= target.ndim <= 2:
        return None
    one = target.ndim == 1 or target.shape[1] == 1
    if one and not target.is_floating_point():
        return target.long().reshape(-1)
    if not bool(((target == 0) | (target == 1)).all()):
        return None
    if one:
        return target.reshape(-1).long()
    return target.argmax(1) if bool((target.sum(1) == 1).all()) else None


def answered_classes(output: Tensor) -> Tensor | None:
    """The class that each row of an output names; None where rows are not scores."""
    if output.ndim == 2 and output.shape[1] > 1:
        return output.argmax(1)
    if output.ndim == 1 or (output.ndim == 2 and output.shape[1] == 1):
        flat = output.reshape(len(output))
        return (flat > (0.0 if bool((flat < 0).any()) else 0.5)).long()
    return None


def is_random_order(classes: Tensor) -> bool:
    """Whether neighbors differ as often as in a random order, within three standard errors: sorted data are no fair sample."""
    shares = torch.bincount(classes).double() / len(classes)
    expected = 1 - float(shares.square().sum())
    changes = float((classes[1:] != classes[:-1]).double().mean())
    error = max(expected * (1 - expected) / max(1, len(classes) - 1), 1e-12) ** 0.5
    return bool(changes > expected - SURE * error)
