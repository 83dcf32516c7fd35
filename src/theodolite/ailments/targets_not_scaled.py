r"""Are regression targets so large or so far from zero that the outputs cannot reach them in time?

A network starts with outputs of about 1. Targets of mean m and standard deviation s start at a loss of $m^2+s^2$, of which only
$s^2$ is to be learned: a bounded step (Adam's) needs about $m/\mathrm{lr}$ steps to get there, and a plain one sees gradients s
times too large. Targets whose mean and standard deviation are within a factor of 5 of 1 are accepted. Otherwise the same
training on standardized targets, tried on a copy whose outputs are brought back into the units of the targets, decides. Where
some columns of the targets are numbers and others are not, those that the loss compares with an output are standardized. If the
inputs are not scaled either, both may need scaling before either helps.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.ailments.inputs_not_scaled import standardized_inputs, unscaled_inputs
from theodolite.core.ailment import Ailment, Finding, figure
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import asked_batch, samples
from theodolite.evidence.drawn_outputs import drawn_outputs, members_of, quiet, rebuilt
from theodolite.evidence.interventions import Intervention, Outcome, found_by
from theodolite.evidence.kernel_machine import COLUMNS
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
    y = y.double().reshape(len(y), -1) if pairs else y.double()
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
        scaled = (target.double().reshape(-1, *y.shape[1:]) - mean) / width
        return subject.loss_on(replace(batch, target=scaled.to(target.dtype).reshape(target.shape)), model)

    def units_of(answer: Any) -> Any:
        """An answer in the units of the user."""
        members = [one.clone() for one in members_of(answer)]
        for column, places in pairs.items():
            for member, place in places:
                one = members[member].reshape(len(members[member]), -1)[:, place]
                one.copy_(one.double() * width[column] + mean[column])
        if not pairs:
            one = members[task(subject).member]
            one.copy_((one.reshape(-1, *y.shape[1:]).double() * width + mean).reshape(one.shape))
        return rebuilt(answer, members)

    def prepare(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model.register_forward_hook(lambda module, args, answer: None if module.training else units_of(answer))

    plain = Change("targets standardized", loss=loss, prepare=prepare)
    told = (float(mean[own].mean() if mean.ndim else mean), size, _names_of(subject, pairs))
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


Places = list[tuple[int, int]]
"""Outputs, each by the tensor of an answer and the column in it."""


def compared_columns(subject: Subject) -> dict[int, Places]:
    """Of each column of targets that the loss compares with some of the outputs by their difference, which outputs these are.

    Such a loss stays where all of them are moved by as much, and changes where one is. Quantiles are several outputs beside one
    target. Other columns may hold classes.
    """
    batch, target = asked_batch(subject), asked_batch(subject).target
    if not isinstance(target, Tensor) or target.ndim not in (1, 2) or not target.is_floating_point():
        return {}
    with untouched(subject.model), torch.no_grad(), quiet():
        answer = subject.answer(batch)
    drawn = drawn_outputs(answer, target)[0]
    if any(z.ndim > 2 or len(z) != len(target) for z in drawn):
        return {}
    if max([target[:1].numel(), *(z[:1].numel() for z in drawn)]) > COLUMNS:
        return {}
    for dtype in (torch.float64, target.dtype):  # some columns are small beside the rest of a loss
        with suppress(RuntimeError, ValueError, TypeError, IndexError):  # of a loss with numbers of its own in float32
            return _compared(subject.loss, answer, [z.to(dtype) for z in drawn], target.to(dtype))
    return {}


def _compared(
    loss: Callable[[Any, Any], Tensor], answer: Any, drawn: list[Tensor], target: Tensor
) -> dict[int, Places]:
    def at(outputs: Sequence[Tensor], wanted: Tensor) -> tuple[float, list[Tensor]]:
        free = [z.clone().requires_grad_() for z in outputs]
        with torch.enable_grad(), quiet():
            value = loss(rebuilt(answer, free), wanted)
            slopes = torch.autograd.grad(value.sum(), free, materialize_grads=True)
        return float(value.detach()), [slope.reshape(len(slope), -1) for slope in slopes]

    own, slopes = at(drawn, target)
    beyond = SAME / ROUNDING * torch.finfo(target.dtype).eps / torch.finfo(torch.float32).eps  # rounding
    far = 2 * max(float(t.abs().max()) for t in (target, *drawn))
    found: dict[int, Places] = {}
    for column in range(target[:1].numel()):
        moved = target.clone()
        by = moved.reshape(len(target), -1)[:, column].std(correction=0)
        moved.reshape(len(target), -1)[:, column] += by
        try:
            value, others = at(drawn, moved)
        except (RuntimeError, ValueError, IndexError):  # classes beyond the last
            continue
        apart = abs(value - own)
        if not apart > beyond * abs(own):
            continue
        turned = [(one != other).any(0) for one, other in zip(slopes, others, strict=True)]
        for way in (1, -1):  # an absolute error turns its slope only where the target passes the output
            beyond_all = moved.clone()
            beyond_all.reshape(len(target), -1)[:, column] += way * far
            with suppress(RuntimeError, ValueError, IndexError):
                passed = at(drawn, beyond_all)[1]
                turned = [t | (one != other).any(0) for t, one, other in zip(turned, slopes, passed, strict=True)]
        asked = [(member, place) for member, t in enumerate(turned) for place in t.nonzero().flatten().tolist()]
        for places in [asked, *([one] for one in asked)]:
            along = [z.clone() for z in drawn]
            for member, place in places:
                along[member].reshape(len(target), -1)[:, place] += by
            if places and abs(at(along, moved)[0] - own) <= ROUNDING * apart:
                found[column] = places
                break
    return found


def _names_of(subject: Subject, pairs: dict[int, Places]) -> tuple[str, str]:
    """The targets and the outputs that these are, as one would type them."""
    if not pairs:
        return "y", "output"
    batch = asked_batch(subject)
    with untouched(subject.model), torch.no_grad(), quiet():
        own = members_of(subject.answer(batch))
    places = sorted({one for some in pairs.values() for one in some})

    def columns(name: str, like: Tensor, chosen: list[int]) -> str:
        if len(chosen) == like[:1].numel():
            return name
        return f"{name}[:, {chosen if len(chosen) > 1 else chosen[0]}]"

    names = [
        columns(f"output[{member}]" if len(own) > 1 else "output", own[member], [p for m, p in places if m == member])
        for member in sorted({member for member, _ in places})
    ]
    return columns("y", batch.target, sorted(pairs)), " and ".join(names)


def _found(mean: float, std: float, names: tuple[str, str], *, both: bool) -> Callable[[Outcome], Finding]:
    y, output = names
    remedy = f"{y} = ({y} - {mean:.4g}) / {std:.4g} for training, and {output} * {std:.4g} + {mean:.4g} at inference"
    what = "Inputs and targets are not scaled" if both else "Targets are not scaled"
    which = f"the targets {y}" if y != "y" else "the targets" if both else "they"
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
