r"""Are regression targets so large or so far from zero that the outputs cannot reach them in time?

A network starts with outputs of about 1. Targets of mean m and standard deviation s start at a loss of $m^2+s^2$, of which only
$s^2$ is to be learned: a bounded step (Adam's) needs about $m/\mathrm{lr}$ steps to get there, and a plain one sees gradients s
times too large. Targets whose mean and standard deviation are within a factor of 5 of 1 are accepted. Otherwise the same
training on standardized targets, tried on a copy whose outputs are brought back into the units of the targets, decides. Where
some columns of the targets are numbers and others are not, those that the loss compares with an output are standardized. If the
inputs are not scaled either, both may need scaling before either helps.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments.inputs_not_scaled import standardized_inputs, unscaled_inputs
from theodolite.core.ailment import Ailment, Finding, figure
from theodolite.core.subject import Subject
from theodolite.evidence.batches import asked_batch, samples
from theodolite.evidence.drawn_outputs import members_of, quiet, rebuilt
from theodolite.evidence.interventions import Intervention, Outcome, found_by
from theodolite.evidence.kernel_machine import COLUMNS
from theodolite.evidence.loss_checks import drawn_answers
from theodolite.evidence.task import task
from theodolite.evidence.thresholds import NOTHING, ROUNDING, SAME
from theodolite.evidence.trial import Change
from theodolite.io.batches import Batch

LARGE = 5.0
"""Deviations beyond which targets are not scaled; means beyond the first of them too."""


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Standardized targets, and inputs too where these are not scaled either."""
    sample = samples(subject)
    y = None if sample is None else sample.target
    if y is None or not y.is_floating_point() or not bool(torch.isfinite(y).all()):
        return
    pairs = {} if task(subject).kind == "numbers" else compared_columns(subject)
    if task(subject).kind != "numbers" and not pairs:
        return
    y = y.double()
    mean, std = y.mean(0), y.std(0, correction=0)
    if std.numel() > COLUMNS:  # pixels have one unit, and some of them hardly any variance
        mean, std = y.mean(), y.std(correction=0)
    own = list(pairs) if pairs else slice(None)
    size, offset = float(std[own].mean() if std.ndim else std), float((mean[own] if mean.ndim else mean).abs().max())
    if size == 0 or (NOTHING <= size <= LARGE and offset <= LARGE * max(1.0, size)):
        return
    width = torch.where(std > 0, std, torch.ones_like(std))
    if pairs:  # the rest, such as classes, stays as it is
        rest = torch.tensor([column not in pairs for column in range(len(mean))], device=mean.device)
        mean, width = mean.masked_fill(rest, 0.0), width.masked_fill(rest, 1.0)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        target: Tensor = batch.target
        return subject.loss_on(replace(batch, target=((target.double() - mean) / width).to(target.dtype)), model)

    def units_of(answer: Any) -> Any:
        """An answer in the units of the user."""
        members = members_of(answer)
        one = members[task(subject).member]
        if pairs:
            restored = one.clone()
            for column, place in pairs.items():
                restored[:, place] = (one[:, place].double() * width[column] + mean[column]).to(one.dtype)
        else:
            restored = (one.reshape(-1, *y.shape[1:]).double() * width + mean).to(one.dtype).reshape(one.shape)
        return rebuilt(answer, [restored if t is one else t for t in members])

    def prepare(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model.register_forward_hook(lambda module, args, answer: None if module.training else units_of(answer))

    plain = Change("targets standardized", loss=loss, prepare=prepare)
    told = (float(mean[own].mean() if mean.ndim else mean), size, [*pairs.items()])
    yield Intervention(plain, _found(*told, both=False), rank=12, sign=True)
    scales = unscaled_inputs(subject)
    if scales is not None:
        of_inputs = standardized_inputs(subject, scales)[0]

        def prepare_both(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
            for change in (of_inputs, plain):
                if change.prepare is not None:
                    change.prepare(model, optimizer)

        both = replace(plain, name="inputs and targets standardized", rows=of_inputs.rows, prepare=prepare_both)
        yield Intervention(both, _found(*told, both=True), rank=14, sign=True)


def compared_columns(subject: Subject) -> dict[int, int]:
    """Of each column of targets that the loss compares with one of the outputs by their difference, which output that is.

    Such a loss stays where both are moved by as much, and changes where one is. Other columns may hold classes.
    """
    answers, target = drawn_answers(subject), asked_batch(subject).target
    if not answers or answers[0].ndim != 2 or not isinstance(target, Tensor) or target.ndim != 2:
        return {}
    if len(target) != len(answers[0]) or max(target.shape[1], answers[0].shape[1]) > COLUMNS:
        return {}
    answer, found = answers[0], dict[int, int]()
    assert subject.loss is not None
    with torch.no_grad(), quiet():
        own = float(subject.loss(answer, target))
        for column in range(target.shape[1]):
            by = float(target[:, column].std())
            moved = target.clone()
            moved[:, column] += by
            try:
                apart = float(subject.loss(answer, moved)) - own
                seen = abs(apart) > SAME / ROUNDING * abs(own)  # beyond rounding
                for place in range(answer.shape[1]) if seen else ():
                    along = answer.clone()
                    along[:, place] += by
                    if abs(float(subject.loss(along, moved)) - own) <= ROUNDING * abs(apart):
                        found[column] = place
            except (RuntimeError, ValueError, IndexError):  # classes beyond the last
                continue
    return found


def _found(mean: float, std: float, pairs: list[tuple[int, int]], *, both: bool) -> Callable[[Outcome], Finding]:
    columns, places = (
        ([*both_of] if len(both_of) > 1 else both_of[0] for both_of in zip(*pairs, strict=True)) if pairs else ("", "")
    )
    y, output = (f"y[:, {columns}]", f"output[:, {places}]") if pairs else ("y", "output")
    remedy = f"{y} = ({y} - {mean:.4g}) / {std:.4g} for training, and {output} * {std:.4g} + {mean:.4g} at inference"
    what = "Inputs and targets are not scaled" if both else "Targets are not scaled"
    which = f"the targets {y}" if pairs else "the targets" if both else "they"
    return found_by(
        f"{what}: {which} have mean {figure(mean)} and standard deviation {figure(std)}, while a network starts with outputs of "
        "about 1.",
        remedy + ("; x = (x - x_train.mean(0)) / x_train.std(0) too" if both else ""),
        {"standardize": "targets"},
        where="targets",
    )


ailment = Ailment(
    question="Are targets scaled?",
    needs={"model", "data", "loss", "optimizer"},
    interventions=interventions,
    laws=("edge-of-stability",),
)
