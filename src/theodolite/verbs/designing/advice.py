"""Before training: which initialization, how deep a signal lives under it, and how large a step may be."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import torch
from rich.console import RenderableType
from torch import nn

from theodolite import __version__
from theodolite.construct.propagation import gradient_spread
from theodolite.core.checks import InputError
from theodolite.core.question import Answer, Question
from theodolite.io.workers import one_thread
from theodolite.report.opening import Opening
from theodolite.report.overview import design_table, design_tables, step_words
from theodolite.theory import Activation
from theodolite.theory.capacity import MemoryBounds, memory
from theodolite.theory.kernels import KernelLearning, LearningRates, kernel_learning, mlp_kernels
from theodolite.theory.propagation import Criticality, criticality
from theodolite.verbs._presented import PresentableAnswers, Sheet
from theodolite.verbs.designing.findings import diagnosis_of_design
from theodolite.verbs.designing.modules import DesignedNetwork, columns, designed_network
from theodolite.verbs.designing.options import Option, columns_of, network_of, options_of, rates_of, signal_of
from theodolite.verbs.designing.trials import SEED, signal_readings, step_reading
from theodolite.verbs.diagnosis import Diagnosis


@dataclass(frozen=True)
class Design(PresentableAnswers):
    """The critical point of an activation, the usual initializations, and a test of each at this size.

    ``rates`` are the learning rates that theory allows with the first initialization, and ``kernel`` is what the tangent
    kernel of the infinitely wide network says about learning the data, if there is any.
    """

    activation: str
    depth: int
    width: int
    criticality: Criticality
    options: tuple[Option, ...]
    answers: tuple[Answer, ...]
    rates: LearningRates
    kernel: KernelLearning | None = None
    capacity: MemoryBounds | None = None
    network: DesignedNetwork | None = None

    @property
    def title(self) -> str:
        """What was asked."""
        return f"{self.depth} hidden layers of {self.width} units, {self.activation}"

    def sheet(self) -> Sheet:
        """Random networks of this depth and width, measured beside theory."""
        facts = {"critical initialization": self.criticality.reason, "made with": f"theodolite {__version__}"}
        return Sheet(self.title, self.answers, facts=facts)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What will go wrong at this depth and width, by theory and by random networks; of a module what ailments find."""
        if self.network is not None:
            return self.network.found
        return diagnosis_of_design(self)

    def opening(self) -> Opening:
        """The diagnosis, the initializations side by side, and step sizes in words."""
        own = () if self.network is None else (self.network.words,)
        return Opening(self.diagnosis, words=(*own, "".join(step_words(self))), tables=design_tables(self))

    def table(self, *, detailed: bool = True) -> RenderableType:
        """For the terminal."""
        return design_table(self)

    def document(self) -> dict[str, Any]:
        """What `json` writes; an infinite depth scale becomes null."""
        return {
            "diagnosis": self.diagnosis.document(),
            "activation": self.activation,
            "depth": self.depth,
            "width": self.width,
            "criticality": asdict(self.criticality),
            "initializations": [asdict(option) for option in self.options],
            "learning_rates": asdict(self.rates),
            "kernel": self.kernel and asdict(self.kernel),
            "capacity": self.capacity and asdict(self.capacity),
            "network": self.network and self.network.document(),
            "readings": self.rows(),
        }


def design(
    model: nn.Module | None = None,
    *,
    activation: Any = "relu",
    depth: int = 10,
    width: int = 512,
    samples: int | None = None,
    data: Any = None,
    loss: Callable[[Any, Any], Any] | None = None,
    optimizer: Any = None,
    steps: int = 300,
) -> Design:
    """What theory advises for a network of ``depth`` hidden layers of ``width`` units, tested on random networks.

    For a ``model`` with ``data`` and ``loss`` the sizes and the activation are taken from a forward pass, the diagnosis is
    that of `diagnose`, and with an ``optimizer`` the best learning rate for ``steps`` steps is tried on copies.

    ``activation`` is a name in torch.nn.functional or any elementwise torch callable. With ``data`` (inputs, or inputs and
    targets) the scale of the first layer's signal, the angle between inputs and the learning rate come from the data,
    and the kernel of the infinitely wide network predicts how the targets would be learned; otherwise inputs have unit
    power and a cosine of 0.5, and a full-batch step averages over ``samples`` of them (1000).
    """
    network = None
    if isinstance(model, str):
        raise InputError(f"expected an nn.Module as model, got {model!r}; pass activation={model!r}")
    if model is not None:
        network = designed_network(model, data=data, loss=loss, optimizer=optimizer, steps=steps)
        activation, depth, width, data = network.activation, network.depth, network.width, columns(data)
    sizes: dict[str, Any] = {"depth": depth, "width": width, "samples": samples}
    for name, value in sizes.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise InputError(f"expected a {name} of at least 1, got {value!r}; pass a whole number")
    sigma = activation if isinstance(activation, Activation) else Activation(activation)
    point = criticality(sigma)
    options = tuple(options_of(sigma, point, width))
    x, y = columns_of(data)
    power, cosine = signal_of(x)
    spec = network_of(sigma, options[0], depth)
    rates = rates_of(spec, width, width, (power, cosine), samples or 1000) if x is None else rates_of(spec, x, width)
    with one_thread():  # many small products: threads would wait for each other, for seconds where the machine is busy
        answers = [
            Answer(_SIGNALS, tuple(signal_readings(sigma, options, depth, width, (power, cosine)))),
            Answer(_STEPS, tuple(step_reading(spec, width, (power, cosine)))),
            Answer(_SPREAD, gradient_spread(spec, width, where=options[0].name, seed=SEED)),
        ]
    kernel = None if x is None or y is None else _kernel(spec, x, y)
    known = samples or (None if x is None else len(x))
    return Design(
        sigma.name,
        depth,
        width,
        point,
        options,
        tuple(a for a in answers if a.readings),
        rates,
        kernel,
        memory(sigma.name, depth, width, known),
        network,
    )


def _kernel(spec: Any, x: Any, y: Any) -> KernelLearning | None:
    """What the tangent kernel on at most 512 of the inputs says of learning their targets."""
    rows, targets = x[:512].flatten(1).double(), y[:512]
    if not targets.is_floating_point():
        targets = torch.nn.functional.one_hot(targets.long()).double()
    centered = targets.double() - targets.double().mean(0)
    if not centered.any():  # nothing to learn
        return None
    kernels = mlp_kernels(spec, rows, weight_rate=1.0, bias_rate=1.0)
    return kernel_learning(kernels.ntk.numpy(), centered.reshape(len(rows), -1).numpy())


_SIGNALS = Question(
    question="Do signals survive this depth, at this width?",
    cost="forward",
    laws=("criticality-conditions", "conditional-gaussian-layer", "depth-scale"),
    name="random networks",
)
_STEPS = Question(
    question="How large may the learning rate be at the start?",
    cost="backward",
    laws=("lr-width-scaling", "ntk-infinite-recursion"),
    name="learning rate",
)
_SPREAD = Question(
    question="How much will gradients differ between seeds?",
    cost="backward",
    laws=("jacobian-log-normal",),
    name="spread of gradients",
)
