"""Learning rates tuned on a small network and used on a large one: what to change in the large one so that this holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from rich.console import Group, RenderableType
from torch import nn

from theodolite.construct.dynamics import (
    Multiplier,
    TransferredTensor,
    apply_multipliers_,
    forward_multipliers,
    layer_kinds,
    transferred_tensors,
)
from theodolite.core.checks import InputError, InputTypeError, at_least, not_negative, positive
from theodolite.core.lazy_torch import is_module
from theodolite.core.model_wrappers import bare_model
from theodolite.core.question import Answer
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.instruments.width_scaling import SMALL, instrument, scaling_readings, step_batches, wrong_layers
from theodolite.measure.dynamics import layer_moves, scaling_exponents
from theodolite.report.text import as_cell, plain_table
from theodolite.theory.dynamics.scaling_rules import StepRule
from theodolite.verbs._presented import Presentable, PresentableAnswers, Sheet


@dataclass(frozen=True)
class Transfer(Presentable):
    """A model next to a smaller one: the role, initialization and learning rate of every tensor, and what changes in forward.

    ``multipliers`` that are "by hand" must be written into the model; `apply_` adds all others to its modules as hooks,
    which work with state_dict, torch.compile, DDP and FSDP2.
    """

    model: nn.Module = field(repr=False)
    base: nn.Module = field(repr=False)
    tensors: tuple[TransferredTensor, ...]
    multipliers: tuple[Multiplier, ...]
    columns: ClassVar[tuple[str, ...]] = ("tensor", "shape", "base shape", "kind", "initial", "adam", "sgd", "why")

    def initialize_(self, generator: torch.Generator | None = None) -> Transfer:
        """Draw the weights as the base draws its own, in the sizes that transfer, and apply the multipliers.

        Matrices are drawn from normal distributions with the spread of the base's times the factor of the kind; tensors that
        begin at one value in the base (biases at 0, gains at 1) begin at it here.
        """
        own = dict(self.model.named_parameters())
        with torch.no_grad():
            for one in self.tensors:
                parameter = own[one.name]
                if one.fill is not None:
                    parameter.fill_(one.fill)
                else:  # on the CPU: the same seed gives the same network on every device
                    draw = torch.randn(one.shape, generator=generator, dtype=torch.float32) * one.spread
                    parameter.copy_(draw)
        return self.apply_()

    def apply_(self) -> Transfer:
        """Apply the multipliers alone, as for weights that are loaded; applying them again changes nothing."""
        apply_multipliers_(self.model, self.multipliers)
        return self

    def groups(self, lr: float, *, weight_decay: float = 0.0, rule: StepRule = "adam") -> list[dict[str, Any]]:
        """Parameter groups for an optimizer, from the learning rate and weight decay of the base.

        ``rule`` is "adam" for Adam, AdamW and sign steps such as Lion's, "sgd" for descent with or without momentum,
        "orthogonal" for Muon's bare orthogonal steps (tables and vectors have Adam's factors then; ``group["rule"]`` says which).
        Weight decay is on matrices alone and grows as the step falls, so that each step takes off the same share.
        """
        positive(lr=lr)
        not_negative(weight_decay=weight_decay)
        own = dict(self.model.named_parameters())
        found: dict[tuple[float, float, str], dict[str, Any]] = {}
        for one in self.tensors:
            if not own[one.name].requires_grad:
                continue
            factor = one.lr_factor(rule)
            decay = weight_decay / factor if len(one.shape) > 1 else 0.0
            bare = "adam" if rule == "orthogonal" and one.kind in ("vector", "embedding") else rule
            group = found.setdefault(
                (factor, decay, bare), {"params": [], "lr": lr * factor, "weight_decay": decay, "rule": bare}
            )
            group["params"].append(own[one.name])
        return list(found.values())

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a tensor."""
        return [
            {
                "tensor": t.name,
                "shape": t.shape,
                "base shape": t.base_shape,
                "kind": t.kind,
                "initial": t.spread if t.fill is None else t.fill,
                "adam": t.lr_factor("adam"),
                "sgd": t.lr_factor("sgd"),
                "why": t.why,
            }
            for t in self.tensors
        ]

    def table(self) -> RenderableType:
        """For the terminal."""
        table = plain_table("tensor", "shape", "in the base", "kind", "starts", "lr, Adam", "lr, SGD", "why")
        for t in self.tensors:
            starts = f"± {t.spread:.3g}" if t.fill is None else f"at {t.fill:g}"
            shapes = ("x".join(map(str, shape)) or "one" for shape in (t.shape, t.base_shape))
            factors = (f"x {t.lr_factor(rule):.4g}" for rule in ("adam", "sgd"))
            table.add_row(*map(as_cell, (t.name, *shapes, t.kind, starts, *factors, t.why)))
        lines = [as_cell(self._multiplier_words(one)) for one in self.multipliers]
        told: list[RenderableType] = ["", "In the forward pass, besides the weights:", *lines] if lines else []
        return Group(table, *told)

    @staticmethod
    def _multiplier_words(one: Multiplier) -> str:
        hung = (
            "write by hand"
            if one.place == "by hand"
            else f"apply_() does it on the {one.place} of {one.where or 'the model'}"
        )
        return f"x {one.factor:.4g}: {one.why}. {one.by_hand} ({hung})."

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return {"tensors": [asdict(t) for t in self.tensors], "multipliers": [asdict(m) for m in self.multipliers]}


def transfer(
    model: nn.Module | Callable[[int], nn.Module],
    base: nn.Module | int,
    *,
    width: int | None = None,
    inputs: Any = None,
) -> Transfer:
    """What to change in a large network so that the learning rate tuned on a small one is right for it.

    ``model`` and ``base`` are the same network in two sizes, freshly built; or ``model`` is a function of the width, and
    ``base`` and ``width`` are the two widths. The role of each tensor follows from which of its sizes differ. With
    ``inputs`` (of a batch) the forward pass is run once, to find attention that is not an nn.MultiheadAttention, and
    residual branches if the depth differs. At the size of the base nothing changes. Source: yang2022; yang2023spectral;
    dey2025.

    >>> from torch import nn
    >>> def net(width):
    ...     return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))
    >>> plan = transfer(net, 16, width=64).initialize_()
    >>> [(t.kind, t.lr_factor("adam")) for t in plan.tensors if len(t.shape) > 1]
    [('input', 1.0), ('hidden', 0.25), ('output', 0.25)]
    >>> sorted({group["lr"] for group in plan.groups(lr=0.004)})
    [0.001, 0.004]
    """
    if not is_module(model):
        if not isinstance(base, int) or not isinstance(width, int):
            raise InputTypeError(
                "expected two nn.Modules, or a function of the width with base= and width= as numbers, got "
                f"{type(model).__name__} and {type(base).__name__}; pass transfer(model, base=small)"
            )
        model, base = model(width), model(base)
    large, small = bare_model(model), bare_model(base)
    if not is_module(small):
        raise InputTypeError(
            f"expected base to be an nn.Module, got {type(base).__name__}; build the model in its small size"
        )
    if inputs is not None and not isinstance(inputs, tuple):
        inputs = (inputs,)
    return Transfer(large, small, transferred_tensors(large, small), forward_multipliers(large, small, inputs))


@dataclass(frozen=True)
class WidthScaling(PresentableAnswers):
    """Width (or depth) exponents of each layer's initial output and of its change, next to those that transfer needs."""

    widths: tuple[int, ...]
    answer: Answer

    @property
    def wrong(self) -> tuple[str, ...]:
        """The layers whose initial size or step is not as it must be; empty where the learning rate transfers."""
        return wrong_layers(self.answer.readings)

    def sheet(self) -> Sheet:
        """The exponents of every layer."""
        said = f"wrong: {', '.join(self.wrong)}" if self.wrong else "the learning rate transfers"
        return Sheet(f"Sizes {', '.join(map(str, self.widths))}", (self.answer,), facts={"verdict": said})

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return {"widths": list(self.widths), "wrong": list(self.wrong), "readings": self.rows()}


def _loss_of(subject: Subject) -> Callable[[nn.Module, Any], Any]:
    return lambda model, batch: subject.loss_on(batch, model)


def width_scaling(
    build: Callable[[int], Any],
    widths: Sequence[int],
    *,
    data: Any,
    loss: Callable[[Any, Any], Any],
    rule: StepRule = "adam",
    steps: int = 4,
    seeds: int = 5,
    inputs: Any = None,
) -> WidthScaling:
    """Does each layer start and learn the same way at four or more widths (or depths)? Check before you train the largest.

    ``build(width)`` returns a model, which is then transferred from the narrowest, or a model and its optimizer, which are
    used as they are. Steps are small, so that layers do not influence each other.

    >>> import torch
    >>> from torch import nn
    >>> def net(width):
    ...     return nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))
    >>> data = torch.randn(64, 8, generator=torch.Generator().manual_seed(0)), torch.arange(64) % 2
    >>> width_scaling(net, (32, 64, 128, 256), data=data, loss=nn.functional.cross_entropy).wrong
    ()
    """
    sizes = sorted(set(widths))
    at_least(1, steps=steps, seeds=seeds)
    if len(sizes) < 4:
        raise InputError(f"expected four widths or more, got {list(widths)}; an exponent with its error needs them")
    moves: dict[float, list[Any]] = {}
    ends: dict[int, nn.Module] = {}
    with untouched(None):
        for size in sizes:
            for seed in range(seeds):
                torch.manual_seed(seed)
                made = build(size)
                if isinstance(made, tuple):
                    model, optimizer = made
                else:
                    model = made
                    plan = transfer(model, ends[sizes[0]] if ends else model, inputs=inputs)
                    plan.initialize_(torch.Generator().manual_seed(seed))
                    kind: Any = torch.optim.SGD if rule == "sgd" else torch.optim.Adam
                    optimizer = kind(
                        [{k: v for k, v in g.items() if k != "rule"} for g in plan.groups(SMALL[rule], rule=rule)]
                    )
                if size not in ends:
                    torch.manual_seed(seed)
                    again = build(size)
                    ends[size] = again[0] if isinstance(again, tuple) else again
                subject = Subject(model, data=data, loss=loss, checked=False)
                batches = step_batches(subject, steps)
                moves.setdefault(float(size), []).append(
                    layer_moves(model.train(), optimizer, _loss_of(subject), batches)
                )
    kinds = layer_kinds(ends[sizes[-1]], ends[sizes[0]])
    readings = scaling_readings(scaling_exponents(moves), kinds, rule=rule, parametrization="transferred")
    return WidthScaling(tuple(sizes), Answer(instrument, tuple(readings)))
