"""Can this network fit any targets on this data, by its widths alone?

Known for chains of linear layers with ReLU or hard-tanh: a construction shows how many points such widths certainly fit, and
counting linear pieces shows beyond how many points some targets are out of reach. There is no such theorem here for other
networks and activations; for these the number of parameters per sample is shown, without a band.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from theodolite.core.instrument import Instrument
from theodolite.core.reading import Band, Reading
from theodolite.core.subject import Subject
from theodolite.theory.capacity import (
    certain_capacity,
    classifier_capacity,
    construction_capacity,
    impossible_from,
    theorem_widths,
)
from theodolite.theory.capacity.memory_bounds import MemorizingActivation

NEUTRAL = (nn.Sequential, nn.Flatten, nn.Identity, nn.Dropout)


@dataclass(frozen=True)
class _Chain:
    """The hidden widths, outputs and activation of a network of linear layers, or why it is not one."""

    widths: tuple[int, ...] = ()
    outputs: int = 0
    activation: MemorizingActivation = "relu"
    unlike: str = ""


def _chain_of(model: nn.Module) -> _Chain:
    """Hidden widths in order, where the model is a plain chain of linear layers with one known activation between."""
    if not isinstance(model, nn.Sequential):
        return _Chain(
            unlike=f"a {type(model).__name__} is not an nn.Sequential, so the order of its layers cannot be read"
        )
    linear: list[nn.Linear] = []
    between: list[str] = []
    for module in model.modules():
        if isinstance(module, NEUTRAL):
            continue
        if isinstance(module, nn.Linear):
            linear.append(module)
            between.append("")
        elif isinstance(module, nn.ReLU | nn.Hardtanh) and between and not between[-1]:
            between[-1] = type(module).__name__.lower()
        else:
            return _Chain(unlike=f"it has {type(module).__name__}, for which there is no such theorem here")
    hidden = linear[:-1]
    kinds = set(between[:-1])
    if not hidden or len(kinds) != 1 or "" in kinds or between[-1]:
        return _Chain(unlike="it is not linear layers with one activation between each two and none at the end")
    kind: MemorizingActivation = "relu" if kinds == {"relu"} else "hardtanh"
    return _Chain(tuple(layer.out_features for layer in hidden), linear[-1].out_features, kind)


def read(subject: Subject) -> Iterator[Reading]:
    """The samples beside what the widths certainly hold; else the parameters beside the numbers to be fitted."""
    samples, classes = 0, True
    for batch in subject.data:
        samples += len(batch)
        classes &= batch.target is not None and not batch.target.is_floating_point()
    chain = _chain_of(subject.model)
    if chain.unlike:
        yield _counted(subject, samples, chain)
        return
    certain = _certain(chain, classes)
    never = impossible_from(chain.widths, activation=chain.activation)
    advised = theorem_widths(
        samples, activation=chain.activation, outputs=chain.outputs, classes=chain.outputs if classes else None
    )
    words = " x ".join(str(width) for width in chain.widths)
    if samples <= certain:
        fits = "It can fit any targets exactly, so a perfect training score says nothing about what was learned."
    elif samples < never:
        fits = "Whether it can fit any targets is not known; it can probably fit yours if they are smooth."
    else:
        fits = "There are targets that it cannot fit."
    yield Reading(
        quantity="samples, relative to what the widths certainly fit",
        where=f"{words}, {chain.activation}",
        measured=float(samples),
        expected=Band(high=float(certain))
        if samples <= certain
        else None,  # beyond it theory is silent of these targets
        meaning=f"Hidden layers of {words} certainly hold {certain} points of {chain.outputs} outputs, and there are {samples}. "
        f"{fits} Some targets on {never} points of a line cannot be fitted. Widths of {' x '.join(map(str, advised))} "
        "certainly hold the data.",
    )


def _certain(chain: _Chain, classes: bool) -> int:
    found = certain_capacity(chain.widths, activation=chain.activation, outputs=chain.outputs)
    if classes and len(chain.widths) == 3:
        found = max(found, classifier_capacity(chain.widths, classes=chain.outputs, activation=chain.activation))
    if classes and len(chain.widths) == 2 and chain.outputs == 2:  # the sign of one value is enough for two classes
        found = max(found, construction_capacity(*chain.widths, activation=chain.activation))
    return found


def _counted(subject: Subject, samples: int, chain: _Chain) -> Reading:
    parameters = sum(parameter.numel() for parameter in subject.model.parameters())
    return Reading(
        quantity="parameters per sample",
        measured=parameters / samples,
        where=subject.name,
        meaning=f"{parameters} parameters for {samples} samples. How much they can certainly fit is not known: {chain.unlike}. "
        "A theorem exists only for chains of linear layers with ReLU or hard-tanh.",
    )


instrument = Instrument(
    question="Can this network fit any targets of this data?",
    read=read,
    needs={"model", "data"},
    cost="free",
    laws=("memorized-exactly", "most-pieces", "zigzag-needs-pieces"),
)
