"""Would this learning rate still be right if the network were wider?

Copies two, four and eight times as wide, each freshly initialized, take a few small steps at the same learning rate. Two
exponents in the width are measured per layer: of the layer's output at initialization, and of how much a few steps change that
output. Theory predicts both. If the change grows with the width, the learning rate of that layer must fall with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import torch
from torch import nn

from theodolite.construct.dynamics import layer_kinds
from theodolite.core.instrument import Instrument
from theodolite.core.optimizer_steps import AdamDescent, Descent
from theodolite.core.reading import Band, Estimate, Reading
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.batches import first_rows
from theodolite.evidence.widening import widened_copy
from theodolite.instruments._common.data_visit import passes_afforded
from theodolite.io.batches import Batch
from theodolite.measure.dynamics import layer_moves, scaling_exponents
from theodolite.theory.dynamics import layer_scaling
from theodolite.theory.dynamics.scaling_rules import Parametrization, StepRule, TensorKind

STEPS, ROWS = 4, 64
PLANS = ((ROWS, (1, 2, 4, 8), 5), (16, (1, 2, 4, 8), 5), (16, (1, 2, 3, 4), 4), (4, (1, 2, 3, 4), 3))
"""Samples of a step, widths and draws of each: the first of these that is paid for, the last one in any case."""

SMALL = {"adam": 1e-4, "sgd": 1e-3, "orthogonal": 1e-4}
"""Steps so small that layers do not act on each other: the exponents do not depend on the size."""

LARGEST = 500_000
"""Parameters of a network that is still widened eight times."""

SIGNED = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Lion")

EXPONENT = 0.15
"""An exponent that does not matter: at 16 times the width a factor of 1.5."""


def read(subject: Subject) -> Iterator[Reading]:
    """The exponents of every layer, beside those of the standard parametrization."""
    rule = rule_of(subject.optimizer)
    if rule is None or not _is_small(subject):
        return
    rows, widths, draws = _plan(subject)
    batches = [first_rows(batch, rows) for batch in step_batches(subject, STEPS)]
    first = first_rows(batches[0], 4)

    def made(times: int) -> nn.Module | None:
        return widened_copy(subject.model, times, *first.inputs, **first.keywords)

    moves: dict[float, list[Any]] = {}
    with untouched(None):
        for times in widths:
            for seed in range(draws):
                torch.manual_seed(seed)
                model = made(times)
                if model is None:
                    return
                steps = (Descent if rule == "sgd" else AdamDescent)(model.parameters(), lr=SMALL[rule])
                moves.setdefault(float(times), []).append(
                    layer_moves(model.train(), steps, lambda m, b: subject.loss_on(b, m), batches)
                )
        wide, narrow = made(widths[-1]), made(1)
    if wide is None or narrow is None:
        return
    kinds = layer_kinds(wide, narrow)
    yield from scaling_readings(scaling_exponents(moves), kinds, rule=rule, parametrization="standard")


def _plan(subject: Subject) -> tuple[int, tuple[int, ...], int]:
    """Samples of a step, widths and draws that the budget pays for; a pass costs as the square of the width."""
    for rows, widths, draws in PLANS:
        passes = (STEPS + 2) * draws * sum(times**2 for times in widths)
        if passes <= passes_afforded(subject, "gradient", rows):
            break
    return rows, widths, draws


def rule_of(optimizer: Any) -> StepRule | None:
    """How an optimizer makes a step of a gradient; plain descent where there is none, None where it is not known."""
    name = type(optimizer).__name__
    if optimizer is None or name == "SGD":
        return "sgd"
    return "adam" if name in SIGNED else "orthogonal" if name == "Muon" else None


def step_batches(subject: Subject, steps: int) -> list[Batch]:
    """Batches to step on and one more to look at, the first again where there are no more."""
    return [first_rows(b, ROWS) for b in islice(cycle(list(islice(subject.batches(), steps + 1))), steps + 1)]


def _is_small(subject: Subject) -> bool:
    return sum(p.numel() for p in subject.model.parameters()) <= LARGEST


def finds(subject: Subject) -> bool:
    """Small networks that are stepped by a known rule."""
    return subject.model is not None and rule_of(subject.optimizer) in ("sgd", "adam") and _is_small(subject)


def scaling_readings(
    exponents: Mapping[str, Mapping[str, Estimate]],
    kinds: Mapping[str, TensorKind],
    *,
    rule: StepRule,
    parametrization: Parametrization,
) -> Iterator[Reading]:
    """Two readings a layer, of its initial size and of its own change, beside theory."""
    told = [name for name in exponents if name in kinds and kinds[name] != "fixed"]
    for what in ("gain", "change"):
        for name in told:
            found, kind = exponents[name][what], kinds[name]
            if what == "gain" and kind in ("vector", "embedding"):
                continue  # nothing of it is summed over units
            predicted = getattr(layer_scaling(kind, rule=rule, parametrization=parametrization), what)
            yield Reading(
                quantity=QUANTITIES[what],
                where=name or "the model itself",
                measured=found.value,
                stderr=found.stderr,
                expected=Band.around(predicted, abs=EXPONENT),
                meaning=_words(name, what, kind, rule, found.value, predicted),
                family=len(told),
            )


QUANTITIES = {
    "gain": "width exponent of a layer's output at initialization",
    "change": "width exponent of the change in a layer's output",
}


def wrong_layers(readings: Sequence[Reading]) -> tuple[str, ...]:
    """The layers that are not as they should be: by their initial sizes first, which spoil what is measured of others' steps."""
    for quantity in QUANTITIES.values():
        found = tuple(r.where for r in readings if r.quantity == quantity and r.alarming)
        if found:
            return found
    return ()


def _words(name: str, what: str, kind: str, rule: str, value: float, predicted: float) -> str:
    layer = f"{kind} layer {name}" if name else "the model's own tensor"
    if what == "gain":
        excess = value - predicted
        if abs(excess) <= EXPONENT:
            return f"The output of {layer} grows as width^{value:.2f}, as theory predicts (width^{predicted:g})."
        return (
            f"The output of {layer} grows as width^{value:.2f} and should grow as width^{predicted:g}: multiply the standard "
            f"deviation of its initialization by width^{-excess:.2g}."
        )
    if abs(value) <= EXPONENT:
        return f"Steps change the output of {layer} equally at every width: its learning rate transfers."
    way, remedy = ("grows", "fall") if value > 0 else ("fades", "grow")
    power = f"width^{abs(round(2 * value) / 2):g}" if abs(round(2 * value) / 2) != 1 else "the width"
    return (
        f"The change that {rule} steps make in {layer} {way} as width^{value:.2f}: its learning rate must {remedy} as "
        f"{'1 over ' if value > 0 else ''}{power}. th.transfer does that."
    )


instrument = Instrument(
    question="Would this learning rate still be right if the network were wider?",
    read=read,
    needs={"model", "data", "loss", "lr"},
    cost="train",
    sees={"gradient": 2160},
    laws=("standard-steps-grow", "mean-field-scaling"),
    finds=finds,
)
