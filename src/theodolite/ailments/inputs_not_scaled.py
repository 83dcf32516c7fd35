r"""Are the inputs so large, so far from zero or so different in scale that training suffers?

The first layer contributes $x\cdot x'/n_0$ to the tangent kernel. Its top eigenvalue, and with it the curvature that limits the
learning rate to $2/\lambda$, grows with the mean square of the inputs (offset included); its condition number grows with the
squared ratio of column scales. A mean square from 0.05 to 10 with column ranges within a factor of 10 is accepted (pixels in
[0, 1] have about 0.1 to 0.3). Otherwise the same training with standardized inputs, tried on a copy, decides. A network that
normalizes its inputs gains nothing from it and is not reported; integer inputs are not checked, nor columns of codes that it
looks up. A number in place of missing entries, such as -999, makes all other values of its column look the same, scaled or not:
the same training with their mean in its place, tried on a copy, decides.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, figure, times
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import batches, first_rows, samples
from theodolite.evidence.drawn_outputs import members_of, quiet
from theodolite.evidence.interventions import Intervention, Outcome, finding_of, found_by
from theodolite.evidence.thresholds import A_FEW, CRITICAL, NOTHING, RARELY, ROUNDING, ROWS, THOUSANDFOLD
from theodolite.evidence.trial import Change
from theodolite.io.batches import Batch
from theodolite.measure.propagation.input_sizes import InputScales, input_scales

LARGE = 10.0
"""Mean squares of inputs, and ratios of column ranges, beyond which they are not scaled."""


@once("unscaled inputs")
def unscaled_inputs(subject: Subject) -> InputScales | None:
    """The scales of inputs that are far from unit size, or whose columns differ much; None of others."""
    sample = samples(subject)
    x = None if sample is None else sample.numbers
    if x is None or len(x) < 2 or not bool(torch.isfinite(x).all()):
        return None
    codes = _codes(subject, x)
    scales = input_scales(x if codes is None else x[:, ~codes])
    if RARELY <= scales.mean_square <= LARGE and scales.spread <= LARGE:
        return None
    if codes is None:
        return scales
    center, width = torch.zeros_like(x[0]).float(), torch.ones_like(x[0]).float()
    center[~codes], width[~codes] = scales.center.to(center), scales.width.to(width)
    return replace(scales, center=center, width=width)


def _codes(subject: Subject, x: Tensor) -> Tensor | None:
    """The columns of a table that the model reads as codes, as it does where it looks them up; None where there are none.

    They are whole numbers, and no answer has a slope in them while it has one in others.
    """
    whole = (x == x.round()).all(0) & (x >= 0).all(0) if x.ndim == 2 else None
    if subject.model is None or whole is None or not bool(whole.any()) or bool(whole.all()):
        return None
    batch = first_rows(batches(subject)[0], ROWS)
    place = next((i for i, t in enumerate(batch.inputs) if isinstance(t, Tensor) and t.shape[1:] == x.shape[1:]), None)
    if place is None or not batch.inputs[place].is_floating_point():
        return None
    free = batch.inputs[place].detach().clone().requires_grad_()
    given = replace(batch, inputs=(*batch.inputs[:place], free, *batch.inputs[place + 1 :]))
    with untouched(subject.model), torch.enable_grad(), quiet():
        answers = sum(t.float().square().sum() for t in members_of(subject.answer(given)))
        slope = torch.autograd.grad(answers, free, allow_unused=True)[0] if isinstance(answers, Tensor) else None
    if slope is None:
        return None
    codes = whole & ~slope.any(0)
    return codes if bool(codes.any()) and bool(slope.any()) else None


def standardized_rows(scales: InputScales) -> Any:
    """The change of a batch whose inputs are standardized."""

    def on(value: Any) -> Any:
        floating = isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1
        return scales.standardized(value) if floating else value

    def rows(batch: Batch) -> Batch:
        keywords: Mapping[str, Any] = {name: on(value) for name, value in batch.keywords.items()}
        return replace(batch, inputs=tuple(map(on, batch.inputs)), keywords=keywords)

    return rows


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Standardized inputs, at the training's own step and at ten times it; before that, without marks of missing entries."""
    yield from _filled(subject)
    scales = unscaled_inputs(subject)
    if scales is None:
        return
    change, inside = standardized_inputs(subject, scales)
    yield Intervention(change, lambda outcome: _found(outcome, scales, inside), rank=10, sign=True)
    yield Intervention(change.at_lr(10.0), lambda outcome: _found(outcome, scales, inside), rank=11, sign=True)
    logged = _on_a_log_scale(subject)
    if logged is not None:
        yield Intervention(Change("inputs on a log scale", rows=logged), _found_logs, rank=13, sign=True)


def _filled(subject: Subject) -> Iterator[Intervention]:
    """The mean of the others in the place of a number that several entries of a column have, ten ranges of the others away."""
    sample = samples(subject)
    x = None if sample is None else sample.numbers
    if x is None or x.ndim != 2 or not bool(torch.isfinite(x).all()):
        return
    ends = torch.stack([x.amin(0), x.amax(0)])
    far = ends.gather(0, (ends - x.median(0).values).abs().argmax(0, keepdim=True))  # (1, d)
    is_mark = x == far
    others = torch.where(is_mark, torch.nan, x.double())
    middle, count = others.nanmean(0), is_mark.sum(0)
    rest = torch.where(is_mark, middle.nan_to_num(), x.double())
    ranges = rest.amax(0) - rest.amin(0)
    gap = (rest - far).abs().amin(0)
    marked = (count >= A_FEW) & (count <= CRITICAL * len(x)) & (ranges > 0) & (gap > LARGE * ranges)
    if not bool(marked.any()):
        return
    width = rest.std(0, correction=0)

    def on(value: Any) -> Any:
        if not (isinstance(value, Tensor) and value.is_floating_point() and value.shape[1:] == x.shape[1:]):
            return value
        filled = (torch.where(value == far, middle, value.double()) - middle) / width.clamp(min=1e-300)
        return torch.where(marked, filled, value.double()).to(value.dtype)

    def rows(batch: Batch) -> Batch:
        return replace(
            batch, inputs=tuple(map(on, batch.inputs)), keywords={name: on(v) for name, v in batch.keywords.items()}
        )

    first = int(marked.int().argmax())
    says = (
        f"A number that stands for missing entries hides the others: {float(far[0, first]):.4g} in {int(count[first])} of "
        f"{len(x)} entries of column {first}, whose others lie within {float(ranges[first]):.3g} of each other"
        + ("." if int(marked.sum()) == 1 else f", and alike in {int(marked.sum()) - 1} more columns.")
    )
    remedy = (
        "put the mean of the others in its place before scaling: x[x == mark] = torch.nan; x = torch.where(x.isnan(), "
    )
    remedy += "x_train.nanmean(0), x), then (x - x.mean(0)) / x.std(0); a column that says where it was missing helps"
    change = Change("missing entries filled", rows=rows)
    yield Intervention(change, found_by(says, remedy, {"fill": "missing"}, where=f"column {first}"), rank=9, sign=True)


def standardized_inputs(subject: Subject, scales: InputScales) -> tuple[Change, str]:
    """The change to standardized inputs, and what to say where only some layers are given them so."""
    layers, name = _first_layers(subject, scales), "inputs standardized"
    if not layers:
        return Change(name, rows=standardized_rows(scales)), ""
    said = f" for layer {' and '.join(layers)} alone, because the rest of the network needs x as it is"
    return Change(name, prepare=partial(_standardized_before, layers, scales)), said


def _first_layers(subject: Subject, scales: InputScales) -> list[str]:
    """The layers that are given the inputs as they are, in a network that needs these in their own units elsewhere.

    So does one that takes its own slope in a time, or adds to a picture: there other inputs are another question.
    """
    model, batch = subject.model, first_rows(batches(subject)[0], ROWS)
    given = [t for t in batch.tensors() if t.is_floating_point() and t.ndim > 1]
    found: list[str] = []

    def look(name: str, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], Tensor) and any(torch.equal(args[0].detach(), t) for t in given):
            found.append(name)

    with untouched(model), torch.no_grad(), quiet():
        for name, module in model.named_modules():
            if not any(module.children()):
                module.register_forward_pre_hook(lambda module, args, name=name: look(name, args))
        outside = members_of(subject.answer(standardized_rows(scales)(batch)))
        found.clear()
        subject.answer(batch)
    layers = list(dict.fromkeys(found))
    with untouched(model), torch.no_grad(), quiet():
        _standardized_before(layers, scales, model)
        answers = members_of(subject.answer(batch))
    same = all(
        float((a - b).abs().max()) <= ROUNDING * float(b.abs().max()) for a, b in zip(answers, outside, strict=True)
    )
    return [] if same else layers


def _standardized_before(layers: list[str], scales: InputScales, model: nn.Module, *_: object) -> None:
    """The change that standardizes what these layers are given."""
    for name in layers:
        model.get_submodule(name).register_forward_pre_hook(
            lambda module, args: (scales.standardized(args[0]), *args[1:])
        )


def _on_a_log_scale(subject: Subject) -> Any:
    """The change of a batch to standardized logarithms, where inputs are positive and spread over decades; else None."""
    sample = samples(subject)
    x = None if sample is None else sample.numbers
    if x is None or x.ndim != 2 or bool((x < 0).any()):
        return None
    middle = x.double().median(0).values
    wide = x.double().amax(0) > THOUSANDFOLD * middle.clamp(min=1.0)
    if not bool(wide.any()):
        return None
    scales = input_scales(torch.where(wide, x.double().log1p(), x.double()).to(x.dtype))
    inner = standardized_rows(scales)

    def rows(batch: Batch) -> Batch:
        def logged(value: Any) -> Any:
            floating = isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1
            return (
                torch.where(wide, value.double().clamp(min=0).log1p(), value.double()).to(value.dtype)
                if floating
                else value
            )

        keywords = {name: logged(value) for name, value in batch.keywords.items()}
        return inner(replace(batch, inputs=tuple(map(logged, batch.inputs)), keywords=keywords))

    return rows


_found_logs = found_by(
    "Inputs are not scaled: they span many orders of magnitude, so a few large ones hide all others.",
    "x = torch.log1p(x), then (x - x_train.mean(0)) / x_train.std(0)",
    {"standardize": "logarithms of inputs"},
    where="inputs",
)


def _found(outcome: Outcome, scales: InputScales, inside: str) -> Finding:
    size = (
        f"Inputs are not scaled: they have mean {figure(scales.offset)} and standard deviation {figure(scales.scale)}"
    )
    if scales.spread > LARGE:
        size += f", and the ranges of their columns differ by a factor of {times(scales.spread)}"
    scalar = scales.center.numel() == 1
    how = "x = (x - x_train.mean(0)) / x_train.std(0), by column or channel"
    if scalar:
        center, width = float(scales.center), float(scales.width)
        less = "x" if abs(center) < NOTHING * width else f"(x {'-' if center > 0 else '+'} {abs(center):.4g})"
        how = f"x = {less} / {width:.4g}"
    factor = outcome.trial.change.lr
    step = "" if factor == 1 else f"; with lr x {factor:g}"
    return finding_of(
        outcome,
        f"{size}.",
        f"{how}{inside}, with statistics of the training data, in training and at inference{step}",
        {"standardize": "inputs"},
        where="inputs",
    )


ailment = Ailment(
    question="Are inputs scaled?",
    needs={"model", "data", "loss", "optimizer"},
    interventions=interventions,
    laws=("edge-of-stability",),
)
