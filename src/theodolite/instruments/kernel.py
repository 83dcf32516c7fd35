"""What does the tangent kernel say about learning rate, feature learning and labels?

The empirical tangent kernel on part of the data. Its largest eigenvalue, weighted by the curvature of the loss, is that of the
Gauss-Newton matrix: gradient descent diverges along it above the stability limit. Its condition number and effective rank say
how unevenly directions are learned, its alignment how well it suits the labels. If the weights from before training are known,
its drift distinguishes lazy training from feature learning.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import eigsh
from torch import Tensor, nn

from theodolite.core.instrument import Instrument
from theodolite.core.model_wrappers import copied_model
from theodolite.core.reading import SIGMAS, Band, Estimate, Reading, Series
from theodolite.core.statistics import left_out_errors, student_inflation
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded, passes_afforded, sample_count
from theodolite.instruments._common.drift import drift_reading
from theodolite.instruments._common.kernel_price import kernel_samples
from theodolite.instruments._common.samples import Samples, spread_samples
from theodolite.measure import first_tensor, normalizes_batches
from theodolite.measure import rows as first_rows
from theodolite.measure.curvature import extreme_eigenpairs, gauss_newton
from theodolite.measure.kernels import (
    curvature_through_kernel,
    empirical_ntk,
    kernel_alignment,
    kernel_drift,
    kernel_spectrum,
    output_curvatures,
    sketched_ntk,
    target_rows,
)
from theodolite.theory.dynamics import step_size_edge

PAIRS, MOST, OUTPUTS, FEWEST = 1280, 256, 128, 6
"""At most so many pairs of sample and output, samples, and outputs a sample (more are too dear); samples at the least."""

DENSE, BLOCKS, MOST_LOG = 300, 8, 20.0
"""Rows up to which all eigenvalues are found to know the largest, blocks of samples left out, a logarithm's error at most."""

PRODUCTS = 12
"""Products with the Gauss-Newton matrix of all the data below which these are not tried."""

STEEPEST = 3.0
"""The power of the number of samples that a condition number grows as over data of one dimension."""

SKETCHED, NUMBERS = 1 << 25, 1 << 27
"""Parameters times outputs from which on the kernel is sketched within a budget, and numbers that its rows may take."""


RUNNING = " In evaluation mode: batch normalization uses its running means, because a row of the kernel belongs to one sample."


def read(subject: Subject) -> Iterator[Reading]:
    """Readings of the kernel on some of the data, as far as loss, step size and origin are known."""
    model = subject.model
    few = spread_samples(subject, 2)
    if few is None or not any(p.requires_grad for p in model.parameters()):
        return
    outputs = first_tensor(few.answer(model))[0].numel()
    most = afforded(subject, "gradient", passes=3 * outputs, fewest=FEWEST) if outputs <= OUTPUTS else 0
    everything = sample_count(subject)
    if outputs <= OUTPUTS:
        most = int(min(most, kernel_samples(subject, few, outputs, fewest=FEWEST)))
    samples = spread_samples(subject, min(most, _in_full(everything, outputs))) if outputs <= OUTPUTS else None
    if samples is None or len(samples) < 4:
        return
    size = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if subject.allowance.seconds < math.inf and size * outputs > SKETCHED:
        yield from _sketched(subject, samples, outputs, size)
        return
    full = empirical_ntk(model, samples.x, outputs="full")
    yield from _step(subject, samples, full)
    mean = full.diagonal(dim1=2, dim2=3).mean(-1).double()
    yield from _spectrum(mean, everything, _in_full(everything, outputs), model)
    before = _at_origin(subject, samples)
    targets = _labels(samples.targets, len(samples))
    if targets is not None:
        yield from _alignment(mean, before, targets)
    if before is not None:
        drift = _with_others(lambda rows: kernel_drift(before[rows][:, rows], mean[rows][:, rows]), len(mean))
        yield replace(drift_reading(mean, before), stderr=drift.stderr)


def _sketched(subject: Subject, samples: Samples, outputs: int, size: int) -> Iterator[Reading]:
    """Of a model too large for every output's derivatives: the mean kernel by random sums of the outputs."""
    everything = sample_count(subject)
    rows = min(len(samples), NUMBERS // size)
    draws = max(2, min(outputs, int(afforded(subject, "gradient", passes=2.0) / max(1, rows))))
    if rows < 4:
        return
    chosen = Samples(first_rows(samples.x, slice(0, rows)), None)
    mean = sketched_ntk(subject.model, chosen.x, draws=draws).cpu()
    yield from _spectrum(mean, everything, _in_full(everything, outputs), subject.model)
    targets = _labels(None if samples.targets is None else samples.targets[:rows], rows)
    if targets is not None:
        yield from _alignment(mean, None, targets)


def _in_full(everything: int, outputs: int) -> int:
    """Samples that are taken where time is no matter."""
    return min(MOST, PAIRS // outputs, everything)


def _step(subject: Subject, samples: Samples, full: Tensor) -> Iterator[Reading]:
    """The largest eigenvalue in the loss's own units, against the step limit where the step is known."""
    loss, targets = subject.loss, samples.targets
    if loss is None or targets is None:
        return
    outputs = first_tensor(samples.answer(subject.model))
    try:
        curvatures = output_curvatures(loss, outputs, targets)
    except (RuntimeError, TypeError, ValueError, AttributeError):
        # a loss of more than outputs, or not twice differentiable
        return
    seen, largest = sample_count(subject), _by_products(subject, len(full))
    if largest is None:
        seen, matrix = len(full), curvature_through_kernel(full, curvatures)
        largest = _with_others(partial(_largest, matrix, len(full)), len(full))
    band, advice = None, "The learning rate of gradient descent must stay below 2 over this."
    if subject.lr is not None:
        edge = step_size_edge(subject.lr, momentum=subject.momentum)
        band = Band(high=edge)
        advice = _advice(largest.value, edge, subject.lr)
    yield Reading(
        quantity="largest eigenvalue of the kernel in the loss",
        where=f"{seen} samples",
        measured=largest.value,
        stderr=largest.stderr,
        expected=band,
        against="health",
        meaning=f"The Gauss-Newton curvature of the loss on these samples. {advice}",
    )


def _by_products(subject: Subject, samples: int) -> Estimate | None:
    """The same eigenvalue over all the data, where these are more than the kernel's and products with them can be afforded."""
    everything, limit = sample_count(subject), subject.allowance
    if samples >= everything or limit.samples is not None:
        return None
    if afforded(subject, "product", passes=PRODUCTS, share=0.8) < everything:
        return None
    most = max(PRODUCTS, min(200, passes_afforded(subject, "product", everything)))
    try:
        found = extreme_eigenpairs(
            gauss_newton(subject.model, subject.loss, subject.data),
            count=1,
            tolerance=1e-4,
            most=lambda done: done >= most,
        )
    except (RuntimeError, TypeError, ValueError):
        # what the kernel can do on some samples may not be had of whole batches
        return None
    return Estimate(found.values[0], found.errors[0] / SIGMAS)  # a bound, which three standard errors must cover


def _largest(matrix: Tensor, samples: int, rows: Tensor) -> float:
    """The largest eigenvalue on some rows, as if they were all: a mean over fewer samples weighs each more."""
    outputs = len(matrix) // samples
    places = (rows[:, None] * outputs + torch.arange(outputs)).flatten().to(matrix.device)
    part = matrix[places][:, places]
    if len(part) <= DENSE:
        top = float(torch.linalg.eigvalsh(0.5 * (part + part.T))[-1])
    else:
        part = part.cpu()
        start = np.ones(len(part)) + np.arange(len(part)) % 7  # the same on every run, and no eigenvector by accident
        top = float(eigsh((0.5 * (part + part.T)).numpy(), k=1, v0=start, tol=1e-9, return_eigenvectors=False)[0])
    return top * samples / len(rows)


def _advice(largest: float, edge: float, lr: float) -> str:
    if largest > edge:
        return (
            f"Above the stability limit of {edge:.3g} at lr {lr:g}: full-batch gradient descent cannot settle along it."
        )
    if largest > 0.5 * edge:
        return f"Close to the stability limit of {edge:.3g}: full-batch gradient descent oscillates along it."
    return f"Well below the stability limit of {edge:.3g}."


def _spectrum(mean: Tensor, of: int, full: int, model: nn.Module) -> Iterator[Reading]:
    """Condition and effective rank grow with the number of samples: they are those of so many samples, whichever they are."""
    spectrum = kernel_spectrum(mean)
    errors = _other_samples(mean, full) if len(mean) < of else (0.0, 0.0)
    values = spectrum.values.clamp(min=0)
    condition = spectrum.condition
    singular = not math.isfinite(condition)
    if singular:
        condition = 1 / torch.finfo(torch.float32).eps
    series = Series(
        x=tuple(float(i + 1) for i in range(len(values))),
        x_label="rank",
        y_label="eigenvalue",
        log="xy",
        measured=tuple(max(float(v), 1e-12 * spectrum.largest) for v in values),
    )
    yield Reading(
        quantity="condition number of the tangent kernel",
        where=f"{len(values)} samples",
        measured=condition,
        stderr=errors[0],
        series=series,
        meaning=("Singular to rounding: it cannot distinguish some of the samples. " if singular else "")
        + f"Gradient descent needs some {condition:.3g} times more steps for the slowest direction than for the fastest; "
        "normalized inputs, a critical initialization or an adaptive optimizer reduce that."
        + (RUNNING if normalizes_batches(model) else ""),
    )
    rank = spectrum.effective_rank
    yield Reading(
        quantity="effective rank of the tangent kernel",
        where=f"{len(values)} samples",
        measured=rank,
        stderr=errors[1],
        meaning=f"About {rank:.3g} of {len(values)} directions are learned at the same speed; if few, outputs move together.",
    )


def _other_samples(mean: Tensor, full: int) -> tuple[float, float]:
    """How much condition and effective rank hang on which samples these are, and on how many there would be in full.

    Both grow with the number of samples. Blocks left out in turn show the spread, and by how much fewer samples make them
    less: that is continued to as many as would have been taken. A condition number spreads by factors. The two nearest of n
    samples of D dimensions lie n^(-2/D) apart, and the kernel of a network with kinks falls off as the distance, so that its
    smallest eigenvalue is at most so large and its largest grows as n: the condition number is n^(1 + 2/D), n^3 at the most,
    which three errors cover in any case. Smoother kernels show in the blocks.
    """

    def both(rows: Any) -> list[float]:
        part = kernel_spectrum(mean[rows][:, rows])
        return [math.log(min(part.condition, 1 / torch.finfo(torch.float32).eps)), part.effective_rank]

    count, whole = len(mean), np.array(both(np.arange(len(mean))))
    blocks = min(BLOCKS, count)
    place = np.arange(count) % blocks
    parts = np.array([both(np.flatnonzero(place != block)) for block in range(blocks)])
    spread = np.sqrt((blocks - 1) / blocks * ((parts - parts.mean(0)) ** 2).sum(0)) * student_inflation(blocks)
    less, further = whole - parts.mean(0), math.log(max(full, count) / count)
    growth = less * np.array([further / math.log(blocks / (blocks - 1)), blocks * math.expm1(further)])
    growth[0] = max(growth[0], STEEPEST * further)
    logs, rank = np.hypot(spread, growth / 2)
    return math.exp(whole[0]) * math.expm1(min(SIGMAS * float(logs), MOST_LOG)) / SIGMAS, float(rank)


def _alignment(mean: Tensor, before: Tensor | None, targets: Tensor) -> Iterator[Reading]:
    """With the labels, now and at the start, beside what labels dealt at random would give."""
    chance = _by_chance(mean, targets)
    for when, kernel in (("now", mean), ("at the start", before)):
        if kernel is None:
            continue
        found = _with_others(partial(_aligned, kernel, targets), len(kernel))
        yield Reading(
            quantity="alignment of the kernel with the targets",
            where=when,
            measured=found.value,
            stderr=found.stderr,
            expected=Band(low=chance),
            against="health",
            meaning=f"1 would learn the targets in one step, {chance:.2g} is chance. "
            + (
                "Low: the kernel has little of the targets' structure; more width or training would help."
                if found.value < 2 * chance
                else "Samples with the same target help each other."
            ),
        )


def _aligned(kernel: Tensor, targets: Tensor, rows: Tensor) -> float:
    return kernel_alignment(kernel[rows][:, rows], targets[rows])


def _by_chance(kernel: Tensor, targets: Tensor) -> float:
    """The mean alignment over random orders of the targets: traces over norms."""
    n = len(kernel)
    center = torch.eye(n, dtype=torch.float64) - 1 / n
    K, Y = center @ kernel.cpu() @ center, center @ target_rows(targets)
    gram = Y @ Y.T
    return float(K.trace() * gram.trace() / ((n - 1) * K.norm() * gram.norm()).clamp(min=1e-300))


def _at_origin(subject: Subject, samples: Samples) -> Tensor | None:
    """The kernel with the weights from before training; None where there are none that fit."""
    if subject.origin is None:
        return None
    start = copied_model(subject.model)
    own = dict(start.named_parameters())
    if any(
        name not in subject.origin or tuple(subject.origin[name].shape) != tuple(p.shape) for name, p in own.items()
    ):
        return None
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(subject.origin[name].read())
    return empirical_ntk(start, samples.x).double()


def _labels(targets: Tensor | None, number: int) -> Tensor | None:
    """Targets that say more than one thing, one for each sample."""
    if targets is None or len(targets) != number or targets.is_complex():
        return None
    if not targets.is_floating_point() and (targets.ndim != 1 or int(targets.min()) < 0 or int(targets.max()) > 10_000):
        return None
    targets = targets.detach().cpu()
    return None if bool((targets == targets[0]).all()) else targets


def _with_others(quantity: Callable[[Tensor], float], number: int) -> Estimate:
    """A quantity of all samples at hand, with the error that leaving out some of them in turn tells."""
    (error,) = left_out_errors(lambda rows: [quantity(torch.as_tensor(rows))], number, of=10**9)
    return Estimate(quantity(torch.arange(number)), error)


instrument = Instrument(
    question="What does the tangent kernel say about learning rate, feature learning and labels?",
    read=read,
    needs={"model", "data"},
    cost="backward",
    sees={"gradient": 40},
    laws=("quadratic-step-limit", "ntk-freezing", "lazy-linearization", "kernel-gd-decay"),
)
