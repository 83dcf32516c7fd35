"""Work is counted, not timed, so that findings do not depend on the load of the machine, its threads or its clock.

A pass through the model has a nominal price in seconds: so many operations, each with the overhead of a call, and so many
floating-point operations at the pace of one core (or of a GPU). The price is counted once; everything that is bought with a
diagnosis' budget is paid in it. Only a limit of the clock, far beyond the budget, may end a diagnosis early, and then it says so.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from theodolite.core.budget import OutOfTimeError
from theodolite.core.subject import Subject, once

CALL, PACE, NUMBER = {"cpu": 5e-6, "cuda": 1.5e-5}, {"cpu": 2e10, "cuda": 4e13}, {"cpu": 1e-9, "cuda": 4e-12}
"""Seconds of one operation of any size, operations of floating point a second, and seconds for each number that comes out, of one
core and of one GPU: a unit, not a measurement. On recent cores it is a quarter of a second, within a factor of two for networks
of all kinds (layers, convolutions, recurrence, attention, large tables)."""

HALF = {"cpu": 1.0, "cuda": 0.1}
"""The price of an operation in half precision, which has units of its own on a GPU."""

PASSES = 3
"""A step is a forward pass and a backward pass, which does twice the work of one."""

STEP = 2e-4
"""Seconds of an optimizer's step beside its passes, whatever the model; each parameter is three numbers more, that come out of
Adam: itself and two moments."""


@dataclass
class Work:
    """A budget in nominal seconds, the most that was ``allowed``, what was spent, and a limit of the clock."""

    budget: float = math.inf
    limit: float = math.inf
    allowed: float = math.inf
    spent: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Nominal seconds that are left."""
        return max(0.0, self.budget - self.spent)

    def spend(self, seconds: float) -> None:
        """Pay for work that is about to be done."""
        self.spent += seconds
        if time.monotonic() - self.began > self.limit:
            raise OutOfTimeError(f"expected to end within {self.limit:.0f} s by the clock; pass a larger budget")


@once("work")
def work_of(subject: Subject) -> Work:
    """The subject's account; without end where nobody set a budget."""
    return Work()


@dataclass(frozen=True)
class Price:
    """Nominal seconds of a forward pass: ``start`` whatever the batch, ``sample`` more for each sample; of an ``update``.

    ``overlaps``: a GPU computes while the next operations are called, and the longer of the two is what a pass takes.
    """

    start: float
    sample: float
    overlaps: bool = False
    update: float = STEP

    def forward(self, samples: int) -> float:
        """A forward pass of so many samples."""
        each = samples * self.sample
        return max(self.start, each) if self.overlaps else self.start + each

    def step(self, samples: int) -> float:
        """A step of training on so many samples."""
        return self.update + PASSES * self.forward(samples)


def counted_price(model: nn.Module, run: Callable[[], Any], samples: int) -> Price:
    """The price of ``run()``, a forward pass of so many samples; that of its parameters where it cannot be counted."""
    device = next((p.device.type for p in model.parameters()), "cpu")
    device = device if device in CALL else "cuda"
    call, pace = CALL[device], PACE[device]
    update = STEP + 3 * NUMBER[device] * sum(p.numel() for p in model.parameters() if p.requires_grad)
    counter = OperationCounter(device)
    try:
        with torch.no_grad(), counter:
            run()
    except Exception:  # a model that refuses to be counted is priced by its size
        size = sum(p.numel() for p in model.parameters())
        return Price(call * 4 * len(list(model.modules())), 2.0 * size / pace, device == "cuda", update)
    return Price(counter.starts, counter.computes / max(1, samples), device == "cuda", update)


_MATRICES = frozenset(getattr(torch.ops.aten, name) for name in ("mm", "addmm", "bmm", "baddbmm"))

_FUSED = ("mkldnn_rnn_layer", "_cudnn_rnn")
"""A recurrent layer over all places of a sequence as one operation, which torch's own counter does not know."""


def _recurrent(args: Any) -> float:
    """Operations of floating point of such a layer: every weight once a place and sample."""
    places = args[0].numel() // args[0].shape[-1]
    weights = [t for part in args[1:4] for t in (part if isinstance(part, list | tuple) else [part])]
    return float(2 * places * sum(t.numel() for t in weights if isinstance(t, Tensor) and t.ndim > 1))


class Seeing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that sees operations; nothing is compiled under it, and torch's compiler, seconds to load, is not asked to."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class OperationCounter(Seeing):
    """Counts operations, those of floating point, and the numbers that come out and are written."""

    def __init__(self, device: str = "cpu", *, dense: float = 1.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.device, self.flops = device if device in CALL else "cuda", 0.0
        self._dense = dense  # how much faster than others products of matrices are
        self.calls = self.numbers = 0

    @property
    def starts(self) -> float:
        """Nominal seconds of the calls, whatever they compute."""
        return CALL[self.device] * self.calls

    @property
    def computes(self) -> float:
        """Nominal seconds of what is computed and written."""
        return self.flops / PACE[self.device] + NUMBER[self.device] * self.numbers

    @property
    def seconds(self) -> float:
        """Nominal seconds so far."""
        return self.starts + self.computes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.calls += 1
        packet = getattr(func, "_overloadpacket", None)
        if packet in flop_registry:
            price = HALF[self.device] if getattr(out, "dtype", None) in (torch.float16, torch.bfloat16) else 1.0
            dense = self._dense if packet in _MATRICES else 1.0
            self.flops += price * int(flop_registry[packet](*args, **(kwargs or {}), out_val=out)) / dense
        elif getattr(packet, "__name__", "") in _FUSED:
            self.flops += _recurrent(args)
        if isinstance(out, Tensor) and not func.is_view:
            self.numbers += out.numel()
        return out
