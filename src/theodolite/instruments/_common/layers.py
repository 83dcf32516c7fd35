"""What several instruments ask: the layers of a subject, and what feeds each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from theodolite.core.reading import Estimate
from theodolite.core.subject import Subject
from theodolite.instruments._common.weights import weighed

if TYPE_CHECKING:
    from torch import nn

    from theodolite.measure.propagation import Signal
    from theodolite.theory import Activation


@dataclass(frozen=True)
class FedLayer:
    """A layer's variances and the activation that feeds it; None where there is none or it cannot be told, and why.

    ``chain`` is how many layers are fed one by the other through activations alone in the chain it stands in, between a sum,
    a normalization or the like and the next; 0 where that was not seen.
    """

    name: str
    weight_variance: Estimate
    bias_variance: Estimate | None
    activation: Activation | None
    between: str
    chain: int = 0


def layers_of(subject: Subject) -> list[FedLayer]:
    """The layers in the order of the parameters, with their weights from before training where those are known."""
    found = {name: stored.value for name, stored in weighed(subject, "spread")["spread"].items() if stored.value}
    weights = [name for name in subject.origin or subject.weights if name in found and found[name]["axes"] > 1]
    fed, chains = _fed_by(subject, weights), chain_lengths(signals_of(subject))
    return [
        FedLayer(name, _variance(found[name]), _bias_variance(name, found), *fed[name], chains.get(name, 0))
        for name in weights
    ]


RESET = ("a sum", "a normalization", "attention")
"""What comes between layers of networks in which depth does not multiply: residual sums and normalizations."""


def is_reset(seen: Sequence[Signal]) -> bool:
    """Whether sums, normalizations or attention between its layers set the signal anew on its way."""
    return any(word in signal.between for signal in seen for word in RESET)


def chain_lengths(seen: Sequence[Signal]) -> dict[str, int]:
    """For each layer, in the order in which they ran, the length of the chain of layers fed through activations alone."""
    chains: list[list[str]] = []
    for signal in seen:
        if signal.function is None or not chains:
            chains.append([])
        else:
            chains[-1].append(f"{signal.layer}.weight".lstrip("."))
    return {name: len(chain) for chain in chains for name in chain}


def _variance(found: Mapping[str, float]) -> Estimate:
    return Estimate(found["variance"], found["stderr"])


def _bias_variance(name: str, found: Mapping[str, Mapping[str, float]]) -> Estimate | None:
    head, _, tail = name.rpartition("weight")
    bias = found.get(f"{head}bias{tail}")
    return _variance(bias) if bias is not None and bias["axes"] == 1 else None


def signals_of(subject: Subject) -> tuple[Signal, ...]:
    """The signals of the first batch, or nothing where there is no data or but one sample; of the visit, where there was one."""
    if subject.model is None or subject.data is None:
        return ()
    from theodolite.instruments._common.data_visit import weights_state
    from theodolite.measure.propagation import signals

    state = weights_state(subject.model)
    if subject.seen.get("features at") == state:
        return subject.seen["features"].signals
    if subject.seen.get("signals", (None,))[0] != state:
        batch = next(subject.batches())
        found = signals(subject.model, *batch.inputs, **batch.keywords) if len(batch) > 1 else ()
        subject.seen["signals"] = state, found
    return subject.seen["signals"][1]


def signal_activation(signal: Signal) -> Activation | None:
    """The nonlinearity that feeds the layer, known by its moments; None where it is not an elementwise function."""
    if signal.function is None:
        return None
    from theodolite.theory import Activation

    try:
        return Activation(signal.function)
    except ValueError:  # learned, random or otherwise not a function of one number
        return None


def _fed_by(subject: Subject, names: Sequence[str]) -> dict[str, tuple[Activation | None, str]]:
    """From the forward pass where there is one; else from the name given, or the one kind of activation module."""
    seen = {f"{signal.layer}.weight".lstrip("."): signal for signal in signals_of(subject)}
    if seen:
        blank = "There is no activation before it, so theory gives no critical value."
        return {name: _described(seen[name]) if name in seen else (None, blank) for name in names}
    source: str | nn.Module | None = subject.activation or _only_activation(subject.model)
    if source is None:
        unknown = "A checkpoint does not say which activation comes before it; pass --activation for a critical value."
        return dict.fromkeys(names, (None, unknown))
    from theodolite.theory import Activation

    first = "The first layer sees the inputs: its variance only sets the scale of the signal."
    sigma = Activation(source)
    return {name: (sigma, "") if index else (None, first) for index, name in enumerate(names)}


def _described(signal: Signal) -> tuple[Activation | None, str]:
    sigma = signal_activation(signal)
    if sigma is not None:
        return sigma, ""
    if signal.between == "the input":
        return None, "It sees the inputs: its variance only sets the scale of the signal."
    return (
        None,
        f"Before it comes {signal.between or signal.activation}, for which theory gives no critical value here.",
    )


def _only_activation(model: nn.Module | None) -> nn.Module | None:
    if model is None:
        return None
    from theodolite.measure.propagation.signal_flow import ACTIVATIONS

    known = {name.replace("_", "") for name in ACTIVATIONS}
    found = [m for m in model.modules() if type(m).__name__.lower() in known]
    return found[0] if found and len({repr(module) for module in found}) == 1 else None
