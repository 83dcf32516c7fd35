"""Does the model do better than the infinitely wide network of its shape?

For plain multilayer perceptrons: the tangent kernel of infinitely wide layers with the same activations and variances (those
from before training, if known), fitted to part of the data by ridge regression. Each sample is predicted from all others. A
model that does better has learned features that no lazy network has (or has seen the samples).
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.statistics import share_error
from theodolite.core.subject import Subject
from theodolite.instruments._common.layers import layers_of, signals_of
from theodolite.instruments._common.samples import spread_samples
from theodolite.measure import first_tensor
from theodolite.theory.kernels import leave_one_out_residuals, mlp_kernels, one_hot_targets
from theodolite.theory.kernels._map_sequences import Layers, dense_layers

MOST = 800
RIDGES = (1e-6, 1e-4, 1e-2)
"""Ridges tried, relative to the mean of the kernel's diagonal; the one of least error is taken."""


def read(subject: Subject) -> Iterator[Reading]:
    """The accuracy (or explained share) of kernel and model on the same samples, and how often they agree."""
    layers = _layers(subject)
    samples = spread_samples(subject, MOST) if layers is not None else None
    if layers is None or samples is None or samples.targets is None or not isinstance(samples.x, Tensor):
        return
    with torch.no_grad():
        answers = first_tensor(subject.model(samples.x)).double().cpu()
    targets = samples.targets.cpu()
    kernel = mlp_kernels(layers, samples.x.flatten(1).double().cpu()).ntk
    if not bool(torch.isfinite(kernel).all()) or len(targets) != len(kernel) or len(kernel) < 20:
        return
    if not targets.is_floating_point() and targets.ndim == 1 and answers.ndim == 2 and int(targets.min()) >= 0:
        if int(targets.max()) < answers.shape[1]:
            yield from _classes(kernel, answers, targets)
    elif targets.is_floating_point() and targets.numel() == answers.numel():
        yield from _numbers(kernel, answers.reshape(len(answers), -1), targets.double().reshape(len(targets), -1))


def _layers(subject: Subject) -> Layers | None:
    """The specification of a plain perceptron; None for any other model."""
    seen = signals_of(subject)
    known = {layer.name: layer for layer in layers_of(subject)}
    names = [f"{signal.layer}.weight".lstrip(".") for signal in seen]
    plain = [
        s.kind == "Linear" and (s.between == "the input" if place == 0 else s.function is not None)
        for place, s in enumerate(seen)
    ]
    if len(seen) < 2 or not all(plain) or set(names) != set(known) or len(set(names)) != len(names):
        return None
    ordered = [known[name] for name in names]
    activations = [layer.activation for layer in ordered[1:]]
    if any(activation is None for activation in activations):
        return None
    biases = [layer.bias_variance.value if layer.bias_variance is not None else 0.0 for layer in ordered]
    return dense_layers(
        [layer.weight_variance.value for layer in ordered],
        bias_variances=biases,
        activation=[a for a in activations if a is not None],
    )


def _left_out(kernel: Tensor, targets: Tensor) -> Tensor:
    """Every sample answered from all others, with the ridge that errs least."""
    size = float(kernel.diagonal().mean())
    rests = [leave_one_out_residuals(kernel, targets, ridge=ridge * size) for ridge in RIDGES]
    return targets - min(rests, key=lambda rest: float(rest.square().sum()))


def _classes(kernel: Tensor, answers: Tensor, targets: Tensor) -> Iterator[Reading]:
    wide = _left_out(kernel, one_hot_targets(targets, classes=answers.shape[1])).argmax(1)
    model = answers.argmax(1)
    n = len(targets)
    shares = [
        float((said == other).double().mean()) for said, other in ((wide, targets), (model, targets), (model, wide))
    ]
    chance = float(torch.bincount(targets).max()) / n
    yield Reading(
        quantity="accuracy of the infinitely wide network",
        where=f"{n} samples, each left out",
        measured=shares[0],
        stderr=share_error(shares[0], n),
        expected=Band(low=chance),
        against="health",
        meaning=f"The tangent kernel of layers like these answers {shares[0]:.1%} of unseen samples correctly; the "
        f"largest class alone would give {chance:.1%}. Close to that, the kernel of this architecture does not suit the data.",
    )
    yield Reading(
        quantity="accuracy of the model",
        where=f"the same {n} samples",
        measured=shares[1],
        stderr=share_error(shares[1], n),
        expected=Band(low=max(0.0, shares[0] - 3 * share_error(shares[0], n))),
        against="health",
        meaning=_verdict(shares[1] - shares[0]),
    )
    yield Reading(
        quantity="samples on which model and infinitely wide network agree",
        where=f"the same {n} samples",
        measured=shares[2],
        stderr=share_error(shares[2], n),
        meaning="Where the two differ either features were learned or the kernel is too simple; look at those samples.",
    )


def _numbers(kernel: Tensor, answers: Tensor, targets: Tensor) -> Iterator[Reading]:
    mean = targets.mean(0)
    total = float((targets - mean).square().sum())
    if total <= 0:
        return
    wide = _left_out(kernel, targets - mean) + mean
    n = len(targets)
    shares = [1 - float((said - targets).square().sum()) / total for said in (wide, answers)]
    errors = [float((said - targets).square().sum(1).std()) * math.sqrt(n) / total for said in (wide, answers)]
    yield Reading(
        quantity="explained share of the infinitely wide network",
        where=f"{n} samples, each left out",
        measured=shares[0],
        stderr=errors[0],
        expected=Band(low=0.0),
        against="health",
        meaning=f"The tangent kernel of layers like these explains {shares[0]:.1%} of the variance of targets it has not "
        "seen. Near 0, this architecture's kernel does not suit the data.",
    )
    yield Reading(
        quantity="explained share of the model",
        where=f"the same {n} samples",
        measured=shares[1],
        stderr=errors[1],
        expected=Band(low=shares[0] - 3 * errors[0]),
        against="health",
        meaning=_verdict(shares[1] - shares[0]),
    )


def _verdict(gain: float) -> str:
    if gain < -0.02:
        return (
            "Worse than the kernel of its own infinite width, which needs no training; try longer training, a critical "
            "initialization or another learning rate."
        )
    if gain < 0.02:
        return "As good as the kernel of its own infinite width: no sign of features beyond lazy training."
    return (
        "Better than the kernel of its own infinite width: it has learned features, or it was trained on these samples; "
        "compare on data it has not seen."
    )


instrument = Instrument(
    question="Does the model do better than the infinitely wide network of its shape?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    laws=("wide-net-kernel-gd", "kernel-ridge", "ntk-infinite-recursion"),
)
