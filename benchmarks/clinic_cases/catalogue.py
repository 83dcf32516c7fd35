"""All cases of the clinic, by the public names of their ailments."""

import sys

from . import healthy, sick_data, sick_network, sick_training, sick_weights
from .case import Case
from .data import is_there

AILMENTS = {
    "data": "inputs-not-scaled inputs-not-finite labels-unrelated labels-conflict classes-unbalanced targets-not-scaled",
    "the network": (
        "signal-vanishes signal-explodes gradient-vanishes gradient-explodes inputs-merge units-alike units-dead "
        "units-saturated outputs-squashed loss-mismatched layer-cut-off too-narrow rank-lost"
    ),
    "training": (
        "step-too-large step-too-small not-in-optimizer gradient-accumulates batch-noise schedule-ended trained-too-short "
        "overfits memorises-noise precision-too-low statistics-differ regularised-too-hard"
    ),
    "weights alone": "weights-not-finite layer-untrained entries-outlying layers-identical",
}
AILMENTS = {place: tuple(names.split()) for place, names in AILMENTS.items()}


def cases(*, every: bool = False) -> list[Case]:
    """The cases whose data can be read here, one line for each set that is missing; all of them where `every` is set."""
    found = [case for part in (healthy, sick_data, sick_network, sick_training, sick_weights) for case in part.cases()]
    missing = sorted({case.data for case in found if not is_there(case.data)})
    if every or not missing:
        return found
    for name in missing:
        count = sum(case.data == name for case in found)
        print(
            f"{name}: not found, {count} cases left out; set THEODOLITE_DATA to the folder of the data", file=sys.stderr
        )
    return [case for case in found if case.data not in missing]
