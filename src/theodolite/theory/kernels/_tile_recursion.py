"""The recursion of both kernels on one tile of pairs, in place, in blocks of memory that are used again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from theodolite.theory.kernels._duals.maps import Dual, Side
from theodolite.theory.kernels._map_sequences import Dense, DualStep, Nonlinear, Program, Sum
from theodolite.theory.kernels._memory_blocks import Scratch, affine_

NEAR = {torch.float64: 1e-4, torch.float32: 1e-2}
"""1 - |c| below which, in the first layer, a pair is computed anew from the difference of its points."""
LATE = {torch.float64: 1e-8, torch.float32: 1e-4}
"""The same before the last nonlinearity, where a deep network may have drawn points together."""


@dataclass(frozen=True)
class Vectors:
    """For each point of one side: its variance, 1 / A, and the gains B and D (None where they are 1)."""

    variance: Tensor
    inverse: Tensor
    gain: Tensor | None
    slope_gain: Tensor | None

    @classmethod
    def of(cls, variances: Tensor, dual: Dual | None, epsilon: float, like: Tensor) -> Vectors:
        """The vectors of a nonlinearity, or (no dual) of a normalization."""
        scale = (variances + epsilon).sqrt() if dual is None else dual.scale(variances)
        gains = (None, None) if dual is None else (dual.gain(variances), dual.slope_gain(variances))
        trimmed = [None if g is None or bool((g == 1).all()) else g.to(like) for g in gains]
        return cls(variances.to(like), torch.where(scale > 0, 1 / scale, 0.0).to(like), trimmed[0], trimmed[1])

    def at(self, points: slice | Tensor) -> Vectors:
        """The vectors of some of the points."""
        gains = [None if g is None else g[points] for g in (self.gain, self.slope_gain)]
        return Vectors(self.variance[points], self.inverse[points], gains[0], gains[1])


@dataclass(frozen=True)
class TileStep:
    """A nonlinearity or normalization, ready for tiles: vectors of both sides, or one number for all points."""

    dual: Dual | None
    constant: float | None
    factors: tuple[float, float, float]  # 1 / A², B², D² where the variance is constant
    rows: Vectors
    columns: Vectors

    @classmethod
    def of(cls, step: DualStep, epsilon: float, sides: tuple[slice, slice], like: Tensor) -> TileStep:
        """``sides`` say which of the step's variances are those of rows and of columns."""
        one = torch.tensor([0.0 if step.constant is None else step.constant], dtype=torch.float64)
        single = Vectors.of(one, step.dual, epsilon, one)
        factors = [1.0 if v is None else float(v) ** 2 for v in (single.inverse, single.gain, single.slope_gain)]
        if step.constant is not None:
            return cls(step.dual, step.constant, (factors[0], factors[1], factors[2]), single, single)
        rows, columns = (Vectors.of(step.variances[side], step.dual, epsilon, like) for side in sides)
        return cls(step.dual, None, (1.0, 1.0, 1.0), rows, columns)

    def at(self, rows: slice | Tensor, columns: slice | Tensor) -> TileStep:
        """The step for some of the rows and columns."""
        if self.constant is not None:
            return self
        return replace(self, rows=self.rows.at(rows), columns=self.columns.at(columns))


@dataclass
class Part:
    """A block of numbers, scale * block + shift, of which scale and shift wait until they are needed."""

    block: Tensor
    scale: float = 1.0
    shift: float = 0.0

    def settled(self) -> Tensor:
        """The numbers themselves, in place."""
        affine_(self.block, self.scale, self.shift)
        self.scale, self.shift = 1.0, 0.0
        return self.block

    def times(self, factor: float) -> Part:
        """The numbers multiplied, later."""
        return Part(self.block, self.scale * factor, self.shift * factor)


@dataclass
class TileRun:
    """One tile on its way through a network; ``near`` collects the pairs that have to be computed more carefully."""

    steps: tuple[TileStep, ...]
    rows: slice
    columns: slice
    scratch: Scratch
    near: list[Tensor] = field(default_factory=list)
    position: int = 0

    def through(self, program: Program, k: Part, t: Part | None, *, tangent: bool = True) -> tuple[Part, Part | None]:
        """Send both kernels through the program, overwriting their blocks; no tangent kernel if it is not wanted."""
        for layer in program:
            if isinstance(layer, Dense):
                k, t = self._dense(layer, k, t, tangent)
            elif isinstance(layer, Sum):
                k, t = self._sum(layer, k, t, tangent)
            else:
                step = self.steps[self.position]
                self.position += 1
                t = self.apart(k, t)
                k, t = self._nonlinear(step, k, t) if isinstance(layer, Nonlinear) else self._normalized(step, k, t)
        return k, t

    def _dense(self, layer: Dense, k: Part, t: Part | None, tangent: bool) -> tuple[Part, Part | None]:
        rate, bias_rate = layer.rates
        C_w, C_b = layer.weight_variance, layer.bias_variance
        after = Part(k.block, C_w * k.scale, C_w * k.shift + C_b)
        if not tangent:
            return after, None
        shift = bias_rate + rate * k.shift + (0.0 if t is None else C_w * t.shift)
        if t is None or C_w * t.scale == 0.0:
            return after, Part(k.block, rate * k.scale, shift)
        if t.block is k.block:
            return after, Part(k.block, C_w * t.scale + rate * k.scale, shift)
        if rate * k.scale:
            t.block.add_(k.block, alpha=rate * k.scale / (C_w * t.scale))
        return after, Part(t.block, C_w * t.scale, shift)

    def apart(self, k: Part, t: Part | None) -> Part | None:
        """The tangent kernel in a block of its own."""
        if t is not None and t.block is k.block:
            return Part(self.scratch.like(t.block).copy_(t.block), t.scale, t.shift)
        return t

    def _sides(self, step: TileStep) -> tuple[Side, Side]:
        if step.constant is not None:
            return step.constant, step.constant
        return step.rows.variance[self.rows, None], step.columns.variance[self.columns]

    def _multiply(self, block: Tensor, rows: Tensor | None, columns: Tensor | None) -> None:
        if rows is not None and columns is not None:
            block.mul_(rows[self.rows, None]).mul_(columns[self.columns])

    def _nonlinear(self, step: TileStep, k: Part, t: Part | None) -> tuple[Part, Part | None]:
        dual = step.dual
        assert dual is not None
        constant = step.constant is not None
        inverse, gain, slope_gain = step.factors if constant else (1.0, 1.0, 1.0)
        r = k.times(inverse).settled()
        if not constant:
            self._multiply(r, step.rows.inverse, step.columns.inverse)
        self._look(dual, r)
        e, d = dual.block(r, *self._sides(step), self.scratch)
        if t is not None:
            t = t.times(slope_gain)
            if isinstance(d, Tensor):
                t = Part(t.block, t.scale) if not t.shift else Part(t.settled())
                t.block.mul_(d)
            else:
                t = t.times(d)
            if not constant:
                t = Part(t.settled())
                self._multiply(t.block, step.rows.slope_gain, step.columns.slope_gain)
        self.scratch.release(d)
        if not constant:
            self._multiply(e, step.rows.gain, step.columns.gain)
        return Part(e, gain), t

    def _look(self, dual: Dual, r: Tensor) -> None:
        """Remember the pairs of a tile at which the dual would lose digits: in the first and the last layer."""
        if not dual.sharp or self.position not in (1, len(self.steps)):
            return
        limit = 1 - (NEAR if self.position == 1 else LATE)[r.dtype]
        low, high = torch.aminmax(r)
        if not (float(low) >= -limit and float(high) <= limit):
            self.near.append(~(r.abs() <= limit))

    def _normalized(self, step: TileStep, k: Part, t: Part | None) -> tuple[Part, Part | None]:
        if step.constant is not None:
            return k.times(step.factors[0]), None if t is None else t.times(step.factors[0])
        for part in (k, t):
            if part is not None:
                self._multiply(part.settled(), step.rows.inverse, step.columns.inverse)
        return k, t

    def _sum(self, layer: Sum, k: Part, t: Part | None, tangent: bool) -> tuple[Part, Part | None]:
        t = self.apart(k, t)
        kept = Part(self.scratch.like(k.block).copy_(k.block), k.scale, k.shift)
        kept_t = None if t is None else Part(self.scratch.like(t.block).copy_(t.block), t.scale, t.shift)
        first, first_t = self.through(layer.branch, k, t, tangent=tangent)
        second, second_t = self.through(layer.skip, kept, kept_t, tangent=tangent)
        first_t, second_t = self.apart(first, first_t), self.apart(second, second_t)
        total = second_t if first_t is None else first_t if second_t is None else self._added(first_t, second_t)
        return self._added(first, second), total

    def _added(self, first: Part, second: Part) -> Part:
        shift = first.shift + second.shift
        first.shift = 0.0
        first.settled().add_(second.block, alpha=second.scale)
        self.scratch.release(second.block)
        return Part(first.block, 1.0, shift)
