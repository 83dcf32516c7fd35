"""Is a layer too narrow for what must pass through it?

A layer of k units limits the rank of everything after it to k. A ReLU network of any depth with hidden widths of at most the
input dimension d cannot approximate a large class of functions (Hanin and Sellke 2017: continuous functions need width d + 1),
and the least width in $L^p$ is max(d + 1, outputs) (Park et al. 2021). Here d is the intrinsic dimension of the data (from
ratios of neighbor distances), with its error. A layer narrower than half of d is the symptom; a copy with wider hidden layers,
initialized again and trained the same way, decides; so it does where a run learned something, but less than half of what
twice the width learns in as many steps. A bottleneck that is narrow on purpose, but not narrower than the data's
dimension, is not reported. All the rows of a small table, such as a logic gate, are fitted by as many units; with fewer a
training may get stuck, and what more units win is tried, too. Layers without an activation between them are one linear layer,
which is exact; whether that matters is tried by adding activations on a copy.
"""

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding, few_of
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import batches, first_rows, is_thinned, judged_is_trained, samples
from theodolite.evidence.interventions import Intervention, Outcome, finding_of, found_by
from theodolite.evidence.layer_signals import signals
from theodolite.evidence.start import largest_lr, steps_made
from theodolite.evidence.task import class_counts
from theodolite.evidence.thresholds import A_FEW, CRITICAL, FEWEST, MANY, NOTHING, PART, ROUNDING
from theodolite.evidence.trial import Change, present_skill
from theodolite.evidence.widening import layers_run, widened_copy
from theodolite.measure.dimension.by_distances import twonn_fit

UNITS = 64
"""Units that the narrowest layer is tried with; one of as many is not narrow."""


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Activations between layers that have none, else a wider copy."""
    signs = signals(subject)
    if subject.model is None or signs is None or not signs.layers:
        return
    names = [layer.name for layer in signs.layers[:-1]]
    if _is_affine(subject):
        change = Change("an activation after each layer", prepare=partial(_bent, names))
        says = f"{len(names) + 1} layers without an activation between them are one linear layer, however wide."
        found = found_by(says, f"nn.ReLU() after {few_of(names)}", {"activation": "relu"}, where=names[0])
        yield Intervention(change, found, rank=6, sign=True)
        return
    yield from _wider(subject)


def _is_affine(subject: Subject) -> bool:
    """Whether several layers in a row make one linear layer: their last output at a midpoint is the mean of those at the ends."""
    model, signs, batch = subject.model, signals(subject), batches(subject)[0]
    assert signs is not None
    plain = len(batch.inputs) == 1 and not batch.keywords and isinstance(batch.inputs[0], Tensor)
    x = batch.inputs[0] if plain else torch.zeros(0)
    if (
        len(signs.layers) < 2
        or not x.is_floating_point()
        or len(x) < A_FEW
        or any(part.activation for part in signs.layers[:-1])
    ):
        return False
    kept: list[Tensor] = []
    half = len(x) // 2
    with untouched(model), torch.no_grad():
        last = model.get_submodule(signs.layers[-1].name)
        last.register_forward_hook(lambda module, args, output: kept.append(output))
        for part in (x[:half], x[half : 2 * half], (x[:half] + x[half : 2 * half]) / 2):
            model(part)
    if len(kept) <= 2 or not all(isinstance(part, Tensor) for part in kept):
        return False
    bend = (kept[0] + kept[1]) / 2 - kept[2]
    return float(bend.abs().max()) <= ROUNDING * float(kept[2].abs().max())


def _bent(names: list[str], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The change that puts a ReLU after each of these layers."""
    for name in names:
        model.get_submodule(name).register_forward_hook(lambda module, args, output: output.relu())


def _wider(subject: Subject) -> Iterator[Intervention]:
    model, sample = subject.model, samples(subject)
    if sample is None or len(sample.inputs) != 1 or is_thinned(subject):
        return
    two = first_rows(batches(subject)[0], 2)
    ran = layers_run(model, *two.inputs, **two.keywords)
    numbers = {name: _numbers(*pair, sample.inputs[0]) for name, pair in ran.items()}
    name = min(list(numbers)[:-1], key=lambda one: numbers[one], default=None)
    # a softmax of low rank tells many tokens apart (Yang et al. 2018 have 0.03 where it begins to cost)
    part = CRITICAL if sample.inputs[0].is_floating_point() else PART
    if name is None or numbers[name] >= UNITS:
        return
    need = _needed(subject, sample.inputs[0])
    rows = len(torch.unique(sample.inputs[0].flatten(1), dim=0)) if judged_is_trained(subject) else 0
    is_narrow = numbers[name] < part * need
    is_small = numbers[name] < rows
    if not is_narrow and not is_small and not (steps_made(subject) and NOTHING < present_skill(subject) < CRITICAL):
        return
    times = max(2, math.ceil(UNITS / max(1, numbers[name]))) if is_narrow or is_small else 2

    few = f"{need:.1f} dimensions" if is_narrow else f"{rows} different rows" if is_small else ""

    def build() -> nn.Module | None:
        torch.manual_seed(0)
        return widened_copy(model, times, *two.inputs, **two.keywords)

    def found(outcome: Outcome) -> Finding:
        lr = float(f"{largest_lr(subject) * outcome.trial.change.lr:.2g}")
        return finding_of(
            outcome,
            f"The network is too narrow: only {numbers[name]} number{' passes' if numbers[name] == 1 else 's pass'} through "
            f"layer {name}, and {f'the data have {few}' if few else 'one twice as wide learns more than twice as much'}.",
            f"{times} times as many units in every hidden layer: {numbers[name] * times} in layer {name}"
            + ("" if outcome.trial.change.lr == 1.0 else f", with lr={lr:g}"),
            {"width": numbers[name] * times} | ({} if outcome.trial.change.lr == 1.0 else {"lr": lr}),
            where=name,
        )

    wide = Change(f"{times} times as wide", network=build)
    if not few:
        yield Intervention(wide, found, rank=45, least=CRITICAL)
        return
    yield Intervention(wide, found, rank=26 if is_narrow else 45, sign=is_narrow)
    # the step that a network bears falls with its width; where the smaller step is enough it is the cause
    yield Intervention(wide.at_lr(0.1), found, rank=45, sign=is_narrow)


def _needed(subject: Subject, x: Tensor) -> float:
    """The dimension of the inputs, less two standard errors; of tokens that of the simplex of the classes to tell.

    That is the rank of what a softmax asks for. A few numbers tell any number of tokens apart.
    """
    if not x.is_floating_point():
        counts = class_counts(subject)
        return 0.0 if counts is None else float(min(len(torch.unique(x)), int((counts > 0).sum())) - 1)
    rows = torch.unique(x.flatten(1)[:MANY], dim=0)
    if len(rows) < FEWEST:
        return 0.0
    try:
        dimension = twonn_fit(rows.cpu().double()).estimate
    except ValueError:  # data on a lattice, whose neighbors are all equally far: no dimension can be read
        return 0.0
    return float(min(dimension.value - 2 * dimension.stderr, rows.shape[1]))


def _numbers(module: nn.Module, output: Tensor, x: Tensor) -> int:
    """How many numbers pass a layer: of a sample, or of one place where these are tokens or hand on a state."""
    state = isinstance(module, nn.RNNBase)
    return output.shape[-1] if state or not x.is_floating_point() else output[0].numel()


ailment = Ailment(
    question="Is a layer too narrow?", needs={"model", "data", "loss", "optimizer"}, interventions=interventions
)
