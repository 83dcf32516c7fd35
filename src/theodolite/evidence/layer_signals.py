"""Every layer's signs in one pass forward and back, at the present weights and at those before training."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from theodolite.core.checks import tensors_in
from theodolite.core.state import untouched
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import A_PASS, batches, first_rows, joined, price
from theodolite.evidence.drawn_outputs import quiet
from theodolite.evidence.start import at_weights, origin_tensors
from theodolite.evidence.task import is_finite
from theodolite.evidence.thresholds import AT_ONCE, PARTS, RARELY, SAMPLES, THOUSANDFOLD
from theodolite.evidence.work import work_of
from theodolite.io.batches import Batch
from theodolite.measure.propagation.one_pass import LayerSigns, VitalSigns, vital_signs


@once("signals")
def signals(subject: Subject) -> VitalSigns | None:
    """Every layer at the present weights, in training mode; None without a loss, or where its own forward fails."""
    return _signals(subject, None)


def signals_at_start(subject: Subject) -> VitalSigns | None:
    """Every layer at the weights before training; the present ones where those are not known."""
    before = origin_tensors(subject)
    if before is None:
        return signals(subject)
    return subject.once("signals at start", lambda: _signals(subject, before))


def _signals(subject: Subject, weights: Mapping[str, Tensor] | None) -> VitalSigns | None:
    model, loss = subject.model, subject.loss
    if model is None or loss is None or not subject.has("loss") or (weights is None and not is_finite(subject)):
        return None
    batch = _looked_at(subject)
    work_of(subject).spend(price(subject).step(len(batch)))

    def loss_of() -> tuple[Tensor, Tensor]:
        answer = subject.answer(batch)
        return loss(answer, batch.target), next(tensors_in(answer))

    try:
        with at_weights(model, weights), untouched(model, training=True), quiet():
            return vital_signs(model, loss_of)
    except (RuntimeError, TypeError, ValueError, IndexError):  # their own forward fails in training mode, say
        return None


def _looked_at(subject: Subject) -> Batch:
    whole, cost = batches(subject), price(subject)
    most = SAMPLES
    if cost.sample > 0 and not math.isinf(work_of(subject).budget):
        most = max(PARTS, min(most, int(A_PASS * work_of(subject).budget / cost.sample)))
    if subject.model is not None and sum(p.numel() for p in subject.model.parameters()) >= AT_ONCE:
        most = min(most, max(PARTS, len(whole[0])))  # the memory of a batch of training is what there is
    few, samples = [], 0
    for batch in whole:
        few.append(batch)
        samples += len(batch)
        if samples >= most:
            break
    one = joined(few) if len(few) > 1 else [few[0]]
    return first_rows(one[0] if one else few[0], most)


def hidden(signs: VitalSigns) -> tuple[LayerSigns, ...]:
    """The layers before the last that ran."""
    return signs.layers[:-1]


def activation_in(signs: VitalSigns) -> str | None:
    """The activation that most hidden layers have."""
    names = Counter(layer.activation for layer in hidden(signs) if layer.activation)
    return names.most_common(1)[0][0] if names else None


def gradient_ratio(signs: VitalSigns) -> float:
    """The relative gradient of the first third of the layers beside that of the last; not a number for fewer than three."""
    relative = [layer.relative_gradient for layer in signs.layers]
    known = [value for value in relative if value is not None]
    if len(known) <= 2 or len(known) < len(relative):
        return math.nan
    cut = max(1, len(known) // 3)
    first, last = (sorted(part)[len(part) // 2] for part in (known[:cut], known[-cut:]))
    return first / last if last > 0 else math.nan


def signal_ratio(signs: VitalSigns) -> float:
    """The mean square of what the last layer is given beside that of what the first is given."""
    if len(signs.layers) < 2 or not signs.layers[0].input_square > 0:
        return math.nan
    return signs.layers[-1].input_square / signs.layers[0].input_square


def width_spread(signs: VitalSigns) -> float:
    """The deviation of the logarithm of a mean square that finite width explains at a critical initialization of ReLU."""
    return math.sqrt(sum(5.0 / max(1, layer.units) for layer in hidden(signs)))


def weights_ratio(signs: VitalSigns) -> float:
    """The factor on a mean square that the hidden layers' weights alone would make, with half of the units open."""
    return math.prod(0.5 * layer.weight_norm**2 / max(1, layer.units) for layer in hidden(signs))


def unlike_ratio(signs: VitalSigns) -> float:
    """The share by which samples differ at the last layer, beside that of the input."""
    if not signs.layers:
        return math.nan
    first, last = signs.layers[0].input_unlike, signs.layers[-1].input_unlike
    return last / first if first > 0 else 1.0


def merged_places(signs: VitalSigns) -> tuple[float, float, str] | None:
    """The shares by which places of a sample differ at the first layer and where least, and that layer; None where they still do.

    Attention mixes places, and without paths around it they become the same: at two layers at least, and not from the start.
    """
    places = [(layer.input_places, layer.name) for layer in signs.layers if layer.input_places is not None]
    merged = [one for one in places[1:] if THOUSANDFOLD * one[0] < 1]
    return (places[0][0], *min(merged)) if len(merged) >= 2 and places[0][0] > RARELY else None


def parameters_held(subject: Subject) -> set[int]:
    """The parameters that some group of the optimizer holds, by identity."""
    groups: list[Any] = [] if subject.optimizer is None else subject.optimizer.param_groups
    return {id(p) for group in groups for p in group["params"]}
