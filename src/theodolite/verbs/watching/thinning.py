"""How much of a look is read, so that looks keep to their share of a run, the first ones counted in.

Work is counted, not timed: a step of training and a look have a price, the passes through the model that they take, so that the
same run is looked at in the same way on any machine. Each step of training earns its share of a step. A part of what is earned
goes to the loss, a part to the gradient with the effect of the last step, and a part to what the level adds (curvature, tangent
kernel, collapse): none of them starves the others. Where something looks wrong the gradient is read on credit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal

from theodolite.verbs.watching.look_context import Level
from theodolite.verbs.watching.records import THINNED, Record

if TYPE_CHECKING:
    from theodolite.evidence.work import Price

Size = Literal["whole", "gradient", "loss"]
"""A look with all that its level reads; without what standard adds; with what forward passes tell alone."""

SHARES: dict[Level, float] = {"cheap": 0.01, "standard": 0.05, "full": math.inf}
"""The share of the work of training that looks may take; who asks for everything gets it."""

PARTS: dict[Size, float] = {"loss": 0.5, "gradient": 0.2, "whole": 0.3}
"""What of that is for the loss, for the gradient, and for what the level adds."""

LOOK, TENSOR, WAITED = 3e-3, 4e-5, 5
"""Nominal seconds of a look beside its passes, and for each tensor of the model; on a GPU, which is waited for, so many times."""

SAMPLES, FEWEST = 64, 16
"""Samples that a look reads where the size of training's batches is not known, and the fewest."""

PRODUCTS = 20
"""Products with the Hessian in a first search for its largest eigenvalue, before it is known how many it takes."""

A_PRODUCT, KERNEL = 6, 20
"""Forward passes that take as long as such a product, and as what else a whole look reads."""

SPREAD = 0.02
"""Looks whose distance nobody told come this share of the steps so far apart, at least."""

DOUBT, DANGER = 1, 3
"""Gradients read on credit for what is odd and for what looks wrong."""

ROSE, DOUBLED, RISEN, STILL = 1.05, 2.0, 1.15, 0.9
"""The loss over the highest of some last looks that is odd; over the last look that looks wrong; over the start that looks wrong,
over the last look that is odd; over the start from which on it stands still."""

NEAR, RAISED, LOWERED = 0.75, 1.2, 0.5
"""Curvature over its edge, and the step over that at the last whole look, that ask for a new reading."""

LATELY = 3
"""Looks that a loss is laid beside."""


@dataclass(frozen=True)
class LookPrices:
    """Nominal seconds of what a look reads, each beside what comes before it."""

    loss: float
    gradient: float
    product: float
    rest: float

    @classmethod
    def of(cls, cost: Price, tensors: int, samples: int, held_out: int, *, normalized: bool = False) -> LookPrices:
        """Those of a model with so many tensors, where a look reads so many samples; with batch normalization in two modes."""
        one, read = cost.forward(samples), TENSOR * tensors * (WAITED if cost.overlaps else 1)
        look = LOOK + read + one + normalized * one + (cost.forward(held_out) if held_out else 0.0)
        return cls(look, 3 * one + read, A_PRODUCT * one, KERNEL * one)

    def whole(self, products: int) -> float:
        """What a level adds, where the search takes so many products."""
        return products * self.product + self.rest


@dataclass
class LookAccount:
    """What was spent on looks, in nominal seconds; ``share`` of the work of training is earned."""

    share: float
    cheap: bool = False
    products: int = PRODUCTS
    spent: dict[Size, float] = field(default_factory=lambda: {"loss": 0.0, "gradient": 0.0, "whole": 0.0})

    @classmethod
    def of(cls, level: Level, budget: float | None) -> LookAccount:
        """That of a level, or with a share of the user's own."""
        return cls(SHARES[level] if budget is None else budget, cheap=level == "cheap")

    @property
    def is_endless(self) -> bool:
        """Whether looks are whole whatever they cost."""
        return math.isinf(self.share)

    def left(self, size: Size, trained: float) -> float:
        """What training has earned for this and is not spent."""
        return self._earns(size) * trained - self.spent[size]

    def steps_until(self, price: float, trained: float, a_step: float) -> int:
        """Steps of training until a loss can be read."""
        missing = price - self.left("loss", trained)
        return 0 if self.is_endless or missing <= 0 else math.ceil(missing / (self._earns("loss") * a_step))

    def size(self, prices: LookPrices, trained: float) -> Size:
        """How much of the next look is read, after so much training."""
        if self.is_endless:
            return "whole"
        gradient = self.left("gradient", trained) >= prices.gradient
        if self.cheap:
            return "whole" if gradient else "loss"
        if self.left("whole", trained) >= prices.whole(self.products):
            return "whole"
        return "gradient" if gradient else "loss"

    def affords(self, gradients: int, prices: LookPrices, trained: float) -> bool:
        """Whether a gradient may be read on credit, where so many stand open at the most."""
        return self.left("gradient", trained) >= (1 - gradients) * prices.gradient

    def allows_look(self, prices: LookPrices, trained: float) -> bool:
        """Whether a look may be taken before it is due, where losses have risen; few of them stand open, too."""
        return self.affords(DANGER, prices, trained) and self.left("loss", trained) >= (1 - DANGER) * prices.loss

    def paid(self, size: Size, prices: LookPrices, products: int) -> None:
        """A look of this size was taken, with so many products."""
        self.spent["loss"] += prices.loss
        if size != "loss":
            self.spent["gradient"] += prices.gradient
        if size == "whole" and not self.cheap:
            self.spent["whole"] += prices.whole(products)
            self.products = products or self.products

    def _earns(self, size: Size) -> float:
        part = PARTS[size] / (PARTS["loss"] + PARTS["gradient"]) if self.cheap else PARTS[size]
        return self.share * part


def doubt(records: Sequence[Record], loss: float, lr: float | None, *, standing: bool) -> int:
    """How many gradients on credit are in order, from the loss of this look and the records before: 0, `DOUBT` or `DANGER`."""
    losses = [record.facts["step_loss"] for record in records if "step_loss" in record.facts]
    wholes = islice((record for record in reversed(records) if THINNED not in record.facts), 2)
    whole, before = (*wholes, None, None)[:2]
    if not losses:
        return 0
    if standing or not math.isfinite(loss):
        return DANGER
    # of others nothing is a multiple
    start, last = (value if value > 0 else math.inf for value in (losses[0], losses[-1]))
    if loss > RISEN * start or loss > DOUBLED * last:
        return DANGER
    near = whole is not None and _is_near(whole) and not (before is not None and _is_near(before))  # runs hover there
    step = lr / whole.lr if lr and whole is not None and whole.lr else 1.0
    odd = loss > ROSE * max(losses[-LATELY:]) or loss > RISEN * last or loss > STILL * start or loss == losses[-1]
    return DOUBT if odd or near or not LOWERED < step < RAISED else 0


def _is_near(record: Record) -> bool:
    return record.facts.get("sharpness", 0.0) >= NEAR * record.facts.get("edge", math.inf)
