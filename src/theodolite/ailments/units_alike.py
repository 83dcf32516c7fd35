"""Are units copies of each other, in weights and in gradient, so that they always will be?

Exact: units with equal weights and equal gradients stay equal under every optimizer that treats entries the same way, so a
layer of copies is one unit wide. A last layer or a branch that starts at zero on purpose is fine: its gradients differ from row
to row. Dropout separates copies, so gradients are measured in training mode. Units that were not copies before training, where
that is known, are not reported; copies that rounding has separated since then show in a trial of another start.
"""

from collections.abc import Iterator

from theodolite.core.ailment import Ailment, Finding, evidence
from theodolite.core.subject import Subject
from theodolite.evidence.depth_remedies import depth_interventions, remedy_for
from theodolite.evidence.interventions import Intervention
from theodolite.evidence.layer_signals import activation_in, signals, signals_at_start
from theodolite.evidence.thresholds import CRITICAL, WELL
from theodolite.measure.propagation.one_pass import VitalSigns


def judge(subject: Subject) -> Iterator[Finding]:
    signs = signals(subject)
    found = _copies(subject, signs)
    if found:  # units that began different were made equal by something else: weights that are clipped, say
        first = _copies(subject, signals_at_start(subject))
        found = {name: share for name, share in found.items() if name in first}
    if not found or signs is None:
        return
    says, where = _told(found)
    text, suggested = remedy_for(activation_in(signs))
    yield Finding(
        severity="critical" if found[where][0] >= WELL else "warning",
        where=where,
        says=f"{says} Training can never make them different.",
        remedy=f"{text}: random weights, never a constant",
        suggested=suggested,
        evidence=tuple(
            evidence("share of units that copy another", value[0], where=name) for name, value in found.items()
        ),
    )


def interventions(subject: Subject) -> Iterator[Intervention]:
    """Another start, where units began as copies: rounding may have drawn them apart since, and they are still much alike."""
    found = _copies(subject, signals_at_start(subject))
    if found:
        says, where = _told(found)
        yield from depth_interventions(subject, f"{says} They were copies from the start.", rank=14, where=where)


def _told(found: dict[str, tuple[float, int]]) -> tuple[str, str]:
    where, (share, units) = max(found.items(), key=lambda item: item[1][0])
    kinds, others = max(1, round(units * (1 - share))), len(found) - 1
    like = "" if not others else f"; {others} more {'layer is' if others == 1 else 'layers are'} the same"
    says = f"the {units} units of layer {where} share {kinds} set{'s' * (kinds > 1)} of weights and gradients{like}."
    return f"Units are copies: {says}", where


def _copies(subject: Subject, signs: VitalSigns | None) -> dict[str, tuple[float, int]]:
    """The layers before the last with copies: the share of units that copy another, and units."""
    if signs is None:
        return {}
    found = {
        layer.name: (layer.copies, layer.units)
        for layer in signs.layers[:-1]
        if layer.copies >= CRITICAL and layer.units > 2
    }
    sizes = dict(subject.model.named_parameters()) if subject.model is not None else {}
    last = signs.layers[-1].name if signs.layers else ""
    for name in signs.alike:
        owner = name.rpartition(".")[0]
        if owner != last and owner not in found and len(sizes[name]) > 2:
            found[owner] = (1.0 - 1.0 / len(sizes[name]), len(sizes[name]))
    return found


ailment = Ailment(
    question="Are units copies of each other?",
    needs={"model", "data", "loss"},
    judge=judge,
    interventions=interventions,
)
