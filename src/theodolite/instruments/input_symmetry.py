"""Does the network treat all directions of its input the same, and what does that cost if few features matter?

A network whose inputs go only into fully connected layers can be rotated together with its data: f(Ux; W U^T) = f(x; W).
Trained by gradient descent from a start without a preferred direction it is rotation invariant, and needs about as many
examples as inputs to learn a target that is one feature. The symmetry is measured, not read off the list of layers.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.state import untouched
from theodolite.core.statistics import left_out_errors
from theodolite.core.subject import Subject
from theodolite.instruments._common.data_visit import afforded, sample_count
from theodolite.io.batches import Batch
from theodolite.measure import first_tensor
from theodolite.measure.bias import random_rotation
from theodolite.measure.functional import called_with
from theodolite.theory.bias import hadamard_lower_bound, multiplicative_loss

ROWS, FEWEST = 64, 8
SMALL, MOST_INPUTS = 512, 1 << 20  # inputs that are turned by a matrix, and at all
SEED = 0  # of the rotation; any will do
ROUNDED = 4  # units of the last place by which outputs may differ from one run to the next


def read(subject: Subject) -> Iterator[Reading]:
    """The change of the outputs under a rotation of inputs and first weights, and the least loss on a sparse target."""
    batch = next(subject.batches())
    found = _input(batch)
    if found is None:
        return
    x = found[: afforded(subject, "forward", passes=5, fewest=FEWEST)][:ROWS]
    inputs = x[0].numel()
    if not 2 <= inputs <= MOST_INPUTS:
        return
    with untouched(subject.model), torch.no_grad():
        layers = _fed_by_input(subject.model, x, inputs)
        if layers is None:
            return
        gaps, floor = _gaps(subject.model, layers, x)
    gap, error = float(gaps.max()), ROUNDED * torch.finfo(x.dtype).eps
    if len(x) < min(ROWS, len(found)):
        error += left_out_errors(lambda rows: [float(gaps[rows].max())], len(x), of=min(ROWS, len(found)))[0]
    where = ", ".join(layers)
    symmetric = bool(layers) and gap <= floor
    yield Reading(
        quantity="change of the outputs when inputs and first weights are rotated together",
        where=where,
        measured=gap,
        stderr=error,
        expected=Band(high=floor) if layers else None,
        against="chance",
        meaning=_symmetry_words(bool(layers), symmetric),
    )
    if symmetric:
        yield _cost(sample_count(subject), inputs, where, subject.momentum)


def _cost(count: int, inputs: int, where: str, momentum: float) -> Reading:
    bound = hadamard_lower_bound(count, inputs)
    how = (
        "Gradient descent with momentum is rotation invariant"
        if momentum
        else "Gradient descent and momentum are rotation invariant; Adam is not, but has not been seen to do better"
    )
    if bound == 0:
        said = (
            f"{count} examples are no fewer than the {inputs} inputs: rotation invariance need not cost anything here."
        )
    else:
        order = min(1.0, multiplicative_loss(count, inputs))
        said = (
            f"With {count} examples of {inputs} inputs a rotation-invariant learner has at least this loss (in variances of the "
            f"target) if a single feature decides; multiplicative updates reach about {order:.2g}: try theodolite.nn.Spindly as "
            "first layer, or select features."
        )
    return Reading(
        quantity="least loss on a target of one feature", where=where, measured=bound, meaning=f"{said} {how}."
    )


def _symmetry_words(fed: bool, symmetric: bool) -> str:
    if not fed:
        return (
            "The inputs do not go into a plain fully connected layer, but into one that uses their position, or whose weights "
            "are computed: the bounds for rotation-invariant learners do not apply."
        )
    if symmetric:
        return "The outputs stay the same: before training the network prefers no direction of its input."
    return (
        "The outputs change: before or next to the first layer the inputs are used feature by feature, for instance by a "
        "normalization. The network is not rotation invariant."
    )


def _input(batch: Batch) -> Tensor | None:
    """The one floating input, or None."""
    given = batch.tensors()
    only = len(given) == 1 and len(batch.inputs) == 1 and given[0].is_floating_point() and given[0].ndim > 1
    return given[0] if only else None


def _fed_by_input(model: nn.Module, x: Tensor, inputs: int) -> dict[str, nn.Linear] | None:
    """The linear layers that see a number for each input feature before any other layer did; None if nothing learned is seen."""
    order: list[tuple[str, nn.Module, int]] = []

    def note(name: str, module: nn.Module, given: tuple[Any, ...], _: Any) -> None:
        seen = next(iter(given), None)
        wide = seen.flatten(1).shape[1] if isinstance(seen, Tensor) and seen.ndim > 1 else 0
        order.append((name, module, wide))

    own = [(name, m) for name, m in model.named_modules() if any(True for _ in m.parameters(recurse=False))]
    with ExitStack() as stack:
        for name, module in own:
            stack.enter_context(module.register_forward_hook(partial(note, name)))
        model(x)
    if not order:
        return None
    first = order[0]
    if not isinstance(first[1], nn.Linear) or first[1].in_features != inputs or first[2] != inputs:
        return {}
    same = _values_into(model, x, [(n, m) for n, m, wide in order if isinstance(m, nn.Linear) and wide == inputs])
    return {name: module for name, module, given in same if torch.equal(given, same[0][2])}


def _values_into(
    model: nn.Module, x: Tensor, layers: list[tuple[str, nn.Linear]]
) -> list[tuple[str, nn.Linear, Tensor]]:
    seen: list[tuple[str, nn.Linear, Tensor]] = []

    def keep(name: str, module: nn.Linear, given: tuple[Tensor, ...], _: Any) -> None:
        seen.append((name, module, given[0].flatten(1)))

    with ExitStack() as stack:
        for name, module in layers:
            stack.enter_context(module.register_forward_hook(partial(keep, name)))
        model(x)
    return seen


def _gaps(model: nn.Module, layers: dict[str, nn.Linear], x: Tensor) -> tuple[Tensor, float]:
    """The largest change of each sample's outputs over their root mean square, and what rounding may make of it."""
    turn = _turn(x[0].numel(), x.device)
    turned = turn(x.flatten(1).double()).to(x.dtype).reshape(x.shape)
    weights = {
        f"{name}.weight".lstrip("."): turn(layer.weight.double()).to(layer.weight.dtype)
        for name, layer in layers.items()
    }
    before, after = first_tensor(model(x)), first_tensor(called_with(model, weights, (turned,)))
    size = float(before.double().square().mean().sqrt())
    gaps = (after.double() - before.double()).abs().reshape(len(x), -1).amax(1) / (size or 1.0)
    # sums over many inputs and a few layers round in their last three digits
    return gaps.cpu(), 1e3 * torch.finfo(x.dtype).eps


def _turn(inputs: int, device: torch.device) -> Callable[[Tensor], Tensor]:
    """A random rotation of rows: a matrix where that is small, else random signs and Hartley's transform, twice."""
    generator = torch.Generator().manual_seed(SEED)
    if inputs <= SMALL:
        matrix = random_rotation(inputs, generator).to(device)
        return lambda rows: rows @ matrix.T
    signs = (torch.randint(0, 2, (2, inputs), generator=generator, dtype=torch.float64) * 2 - 1).to(device)

    def turned(rows: Tensor) -> Tensor:
        for sign in signs:
            waves = torch.fft.fft(rows * sign, norm="ortho")
            rows = waves.real - waves.imag
        return rows

    return turned


instrument = Instrument(
    question="Does the network treat all directions of its input the same?",
    read=read,
    needs={"model", "data"},
    cost="forward",
    sees={"forward": 32},
    laws=("rotation-lower-bound", "rotation-test", "hadamard-least-squares"),
)
