"""A model layer by layer: shapes, parameters and cost, and what its signal and gradient do there."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from rich.console import RenderableType
from torch import nn

from theodolite.core.checks import tensors_in
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.layer_signals import signals
from theodolite.evidence.work import OperationCounter
from theodolite.report.overview import summary_table
from theodolite.verbs._presented import Presentable
from theodolite.verbs.subjects import subject_to_judge

SAMPLES = 32
"""Samples that are sent through the model."""


@dataclass(frozen=True)
class LayerSummary:
    """One layer: where it is, what it answers to a batch, its size, its work for one sample, and what was measured there.

    ``weight_variance`` is that of its weights times the fan-in, ``signal`` the mean square of its outputs, ``gradient`` the norm
    of the gradient in its weights over the norm of these; nan where it was not measured. Parameters that an earlier layer has
    too are counted there.
    """

    name: str
    kind: str
    output: str
    parameters: int
    trainable: int
    multiply_adds: float
    weight_variance: float
    signal: float
    gradient: float


@dataclass(frozen=True)
class Summary(Presentable):
    """The layers in the order in which they ran (as they are listed where no data were given), and the totals."""

    columns: ClassVar[tuple[str, ...]] = tuple(LayerSummary.__dataclass_fields__)

    subject: str
    layers: tuple[LayerSummary, ...]
    parameters: int
    trainable: int
    bytes: int
    multiply_adds: float
    samples: int

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a layer."""
        return [asdict(layer) for layer in self.layers]

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return {**asdict(self), "layers": self.rows()}

    def table(self) -> RenderableType:
        """For the terminal: a row a layer, then the totals."""
        return summary_table(self)

    @property
    def title(self) -> str:
        """What was summed up."""
        return f"Summary of {self.subject}"


def summary(model: nn.Module, data: Any = None, *, loss: Callable[[Any, Any], Any] | None = None) -> Summary:
    """Every layer of a model with its output shape, parameters and multiply-adds; with data and a loss also its readings.

    >>> import torch, theodolite as th
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    >>> found = th.summary(model, data=torch.randn(4, 8))
    >>> [(layer.name, layer.output, layer.parameters, layer.multiply_adds) for layer in found.layers]
    [('0', '4 × 16', 144, 128.0), ('1', '4 × 16', 0, 0.0), ('2', '4 × 3', 51, 48.0)]
    """
    subject = subject_to_judge(model, data=data, loss=loss)
    with untouched(subject.model):
        whole = subject.data.first().on(subject.model) if subject.has("data") else None
        batch = None if whole is None else whole.picked(slice(SAMPLES))
    ran = _passed(subject, batch) if batch is not None else _listed(subject.model)
    signs = signals(subject) if subject.has("loss") else None
    measured = {layer.name: layer for layer in signs.layers} if signs is not None else {}
    counted: set[int] = set()
    layers = []
    for name, module, output, work in ran:
        own = [p for p in module.parameters(recurse=False) if id(p) not in counted]
        counted |= {id(p) for p in own}
        sign = measured.get(name)
        layers.append(
            LayerSummary(
                name,
                type(module).__name__,
                output,
                sum(p.numel() for p in own),
                sum(p.numel() for p in own if p.requires_grad),
                work / 2 / len(batch) if batch is not None else math.nan,
                _variance(module),
                sign.mean_square if sign else math.nan,
                sign.gradient_norm / sign.weight_norm
                if sign and sign.gradient_norm is not None and sign.weight_norm
                else math.nan,
            )
        )
    every = list(subject.model.parameters())
    return Summary(
        subject.name,
        tuple(layers),
        sum(p.numel() for p in every),
        sum(p.numel() for p in every if p.requires_grad),
        sum(p.numel() * p.element_size() for p in every),
        sum(layer.multiply_adds for layer in layers) if batch is not None else math.nan,
        len(batch) if batch is not None else 0,
    )


Ran = tuple[str, Any, str, float]
"""Name, module, output shape, operations."""


def _leaves(model: nn.Module) -> dict[str, nn.Module]:
    """Modules that hold nothing else, or parameters of their own."""
    return {
        name: module
        for name, module in model.named_modules()
        if not any(True for _ in module.children()) or any(True for _ in module.parameters(recurse=False))
    }


def _listed(model: nn.Module) -> list[Ran]:
    return [(name, module, "", math.nan) for name, module in _leaves(model).items()]


def _passed(subject: Subject, batch: Any) -> list[Ran]:
    """One pass with a counter of operations: what each layer answered, and the work done inside it."""

    class Counter(OperationCounter):  # type: ignore[no-untyped-call]
        """Counts torch's fused attention on a CPU too, of which torch's own registry knows nothing."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = super().__torch_dispatch__(func, types, args, kwargs)
            if "flash_attention_for_cpu" in str(func):
                query, key = args[0], args[1]
                self.flops += 4 * query.numel() * key.shape[-2]
            return out

    names = {module: name for name, module in _leaves(subject.model).items()}
    ran: dict[Any, Ran] = {}
    began: dict[Any, float] = {}
    counter = Counter()

    def before(module: Any, _: Any) -> None:
        began[module] = counter.flops

    def after(module: Any, _: Any, answer: Any) -> None:
        shapes = [" × ".join(map(str, tensor.shape)) for tensor in tensors_in(answer)]
        work = counter.flops - began.get(module, counter.flops) + (ran[module][3] if module in ran else 0)
        ran[module] = (names[module], module, ", ".join(shapes[:2]) + (", ..." if len(shapes) > 2 else ""), work)

    with untouched(subject.model), torch.no_grad():
        for module in names:
            module.register_forward_pre_hook(before)
            module.register_forward_hook(after)
        with counter:
            subject.output(batch)
    unused = [(name, module, "no pass of its own", 0.0) for module, name in names.items() if module not in ran]
    return [*ran.values(), *[row for row in unused if any(True for _ in row[1].parameters(recurse=False))]]


def _variance(module: Any) -> float:
    """The variance of a matrix of weights times its fan-in."""
    weight = getattr(module, "weight", None)
    if weight is None or weight.ndim < 2 or not weight.is_floating_point() or weight.numel() < 2:
        return math.nan
    return float(weight.detach().double().var() * weight[0].numel())
