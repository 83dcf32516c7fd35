"""Kernels from factors: each layer adds (what came in, inner product) times (what was propagated back, inner product)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from theodolite.measure.functional import Inputs, Stateless, count, rows
from theodolite.measure.kernels._jacobians import Factors, LayerStructure, factors

Outputs = Literal["trace", "full"]
STRIPS, ROWS = 8, 64
"""A block on the diagonal is cut into up to so many strips of at least so many rows: little but its triangle is computed."""


@dataclass(frozen=True)
class Outer:
    """Derivatives that are one outer product for each output: ``a`` (n, in), ``b`` (n, C, out), rates of W and bias."""

    a: Tensor
    b: Tensor
    weight_rate: float
    bias_rate: float

    def rows(self, part: slice) -> Outer:
        """Those of some samples."""
        return Outer(self.a[part], self.b[part], self.weight_rate, self.bias_rate)

    def add(self, other: Outer, into: Tensor) -> None:
        """Add the contribution of this layer to a block of the kernel."""
        scale = (
            self.weight_rate * (self.a @ other.a.T) if self.weight_rate else self.a.new_zeros(len(self.a), len(other.a))
        )
        _add_gram(self.b, other.b, into, scale=scale.add_(self.bias_rate))


@dataclass(frozen=True)
class Sums:
    """Derivatives that are sums of few outer products: ``a`` (n, P, in), ``b`` (n, C, P, out), too wide to be formed."""

    a: Tensor
    b: Tensor
    rate: float

    def rows(self, part: slice) -> Sums:
        """Those of some samples."""
        return Sums(self.a[part], self.b[part], self.rate)

    def add(self, other: Sums, into: Tensor) -> None:
        """Add the contribution of this layer to a block of the kernel, one sample of the left at a time."""
        m, P, _ = other.a.shape
        C, out = other.b.shape[1], other.b.shape[-1]
        for index in range(len(self.a)):
            inward = (self.a[index] @ other.a.flatten(0, 1).T).view(P, m, P)
            if into.ndim == 2:
                left, right = self.b[index].transpose(0, 1).flatten(1), other.b.transpose(1, 2).flatten(2)
                back = (left @ right.flatten(0, 1).T).view(P, m, P)
                into[index] += (inward * back).sum((0, 2)) * (self.rate / C)
            else:
                back = (self.b[index].reshape(C * P, out) @ other.b.reshape(m * C * P, out).T).view(C, P, m, C, P)
                into[index] += torch.einsum("pmq,cpmdq->cmd", inward, back) * self.rate


@dataclass(frozen=True)
class Formed:
    """Whole derivatives by a parameter, (n, C, entries)."""

    derivative: Tensor
    rate: float

    def rows(self, part: slice) -> Formed:
        """Those of some samples."""
        return Formed(self.derivative[part], self.rate)

    def add(self, other: Formed, into: Tensor) -> None:
        """Add the contribution of this parameter to a block of the kernel."""
        _add_gram(self.derivative, other.derivative, into, rate=self.rate)


Term = Outer | Sums | Formed


def _add_gram(b: Tensor, other: Tensor, into: Tensor, *, scale: Tensor | None = None, rate: float = 1.0) -> None:
    """Add the inner products of (n, C, D) and (m, C, D), times ``scale`` (n, m), to (n, m) or (n, C, m, C)."""
    if into.ndim == 2:
        gram = b.flatten(1) @ other.flatten(1).T
        part = rate / b.shape[1]
        _ = into.add_(gram, alpha=part) if scale is None else into.addcmul_(gram, scale, value=part)
        return
    gram = (b.flatten(0, 1) @ other.flatten(0, 1).T).view(into.shape)
    _ = into.add_(gram, alpha=rate) if scale is None else into.addcmul_(gram, scale[:, None, :, None])


@dataclass(frozen=True)
class LayerContraction:
    """A kernel of a model whose structure is known, block by block within ``memory`` bytes."""

    net: Stateless
    structure: LayerStructure
    outputs: Outputs
    rates: Mapping[str, float]
    memory: int

    @property
    def bytes_per_sample(self) -> int:
        """Factors and whole derivatives of one sample, and as much again while they are made."""
        s, C = self.structure, self.structure.outputs
        numbers = sum(self.net.parameters[name].numel() for name in s.other) * C
        for use, places, (width, out) in zip(s.uses, s.positions, s.widths, strict=True):
            numbers += use.groups * places * (width + C * out)
        for name, indices in self._weights():
            if not self._is_outer(indices):
                width, out = s.widths[indices[0]]
                numbers += self.net.parameters[name].numel() * C if self._is_formed(indices) else C * (width + out)
        return 2 * numbers * self._like.element_size()

    @property
    def block(self) -> int:
        """How many samples at once, of which two sets are held."""
        return max(1, self.memory // (2 * self.bytes_per_sample))

    def kernel(self, x: Inputs, y: Inputs | None) -> Tensor:
        """(n, m) or (n, m, C, C); of one batch with itself only what is on and above the diagonal is computed."""
        n, m = count(x), count(x if y is None else y)
        size, C = self.block, self.structure.outputs
        shape = (n, m) if self.outputs == "trace" else (n, C, m, C)
        kernel = torch.zeros(shape, dtype=self._like.dtype, device=self._like.device)
        for start in range(0, n, size):
            here = slice(start, min(n, start + size))
            left = list(self.terms(factors(self.net, self.structure, rows(x, here))))
            if y is None:
                self._triangle(left, kernel, here)
            for other in range(here.stop if y is None else 0, m, size):
                there = slice(other, min(m, other + size))
                right = list(self.terms(factors(self.net, self.structure, rows(x if y is None else y, there))))
                self._add(left, right, _part(kernel, here, there))
            if y is None and here.stop < n:
                _mirror(kernel, here, slice(here.stop, n))
        return kernel if self.outputs == "trace" else kernel.transpose(1, 2)

    def _triangle(self, terms: list[Term], kernel: Tensor, here: slice) -> None:
        size = here.stop - here.start
        rows = size if self.outputs == "trace" else size * self.structure.outputs
        strip = max(1, -(-size // max(1, min(STRIPS, rows // ROWS))))
        for start in range(0, size, strip):
            stop = min(size, start + strip)
            left, right = [[t.rows(slice(start, end)) for t in terms] for end in (stop, size)]
            place = slice(here.start + start, here.start + stop)
            self._add(left, right, _part(kernel, place, slice(place.start, here.stop)))
            _mirror(kernel, place, slice(place.stop, here.stop))

    def _add(self, left: list[Term], right: list[Term], into: Tensor) -> None:
        for one, other in zip(left, right, strict=True):
            one.add(other, into)  # type: ignore[arg-type]

    def terms(self, found: Factors) -> Iterator[Term]:
        """What each weight, bias and other parameter adds, in the form that costs least."""
        merged: set[str] = set()
        for name, indices in self._weights():
            rate = self.rates.get(name, 1.0)
            if self._is_outer(indices):
                (index,) = indices
                bias = self.structure.uses[index].bias
                own = bias is not None and bias in self.structure.layered and self._uses_of_bias(bias) == [index]
                merged |= {bias} if own and bias else set()
                bias_rate = self.rates.get(bias, 1.0) if own and bias else 0.0
                back = found.backward[index][:, :, 0, 0].contiguous()
                yield Outer(found.inputs[index][:, 0, 0].contiguous(), back, rate, bias_rate)
                continue
            a = _joined([found.inputs[i] for i in indices], 2)  # (n, g, P, in)
            b = _joined([found.backward[i] for i in indices], 3)  # (n, C, g, P, out)
            if self._is_formed(indices):
                whole = b.permute(0, 2, 1, 4, 3).flatten(2, 3) @ a  # (n, g, C out, in)
                whole = whole.view(*whole.shape[:2], b.shape[1], -1).transpose(1, 2)
                yield Formed(whole.flatten(2), rate)
            else:
                yield Sums(a[:, 0], b[:, :, 0], rate)
        for bias in sorted(self.structure.layered - merged - {name for name, _ in self._weights()}):
            sums = [found.backward[i].sum(3).flatten(2) for i in self._uses_of_bias(bias)]
            yield Formed(torch.stack(sums).sum(0), self.rates.get(bias, 1.0))
        for name, derivative in found.other.items():
            yield Formed(derivative, self.rates.get(name, 1.0))

    @property
    def _like(self) -> Tensor:
        return next(iter(self.net.parameters.values()))

    def _weights(self) -> list[tuple[str, list[int]]]:
        """Each matrix that enters by products alone, with the places where it does."""
        found: dict[str, list[int]] = {}
        for index, use in enumerate(self.structure.uses):
            if use.weight in self.structure.layered:
                found.setdefault(use.weight, []).append(index)
        return list(found.items())

    def _uses_of_bias(self, bias: str) -> list[int]:
        return [index for index, use in enumerate(self.structure.uses) if use.bias == bias]

    def _is_outer(self, indices: list[int]) -> bool:
        s = self.structure
        return len(indices) == 1 and s.positions[indices[0]] == 1 and s.uses[indices[0]].groups == 1

    def _is_formed(self, indices: list[int]) -> bool:
        """Whether it costs less to form the derivatives than to take inner products position by position."""
        s = self.structure
        if s.uses[indices[0]].groups > 1:
            return True
        (width, out), P, C = s.widths[indices[0]], sum(s.positions[i] for i in indices), s.outputs
        pairs = C if self.outputs == "trace" else C * C
        n = max(1, self.memory // (4 * C * width * out * self._like.element_size()))  # as many as would fit
        return C * P * width * out / n + pairs * width * out < P * P * (width + pairs * out)


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)


def _part(kernel: Tensor, here: slice, there: slice) -> Tensor:
    return kernel[here, there] if kernel.ndim == 2 else kernel[here, :, there]


def _mirror(kernel: Tensor, here: slice, there: slice) -> None:
    """Copy what is right of the diagonal to below it."""
    if kernel.ndim == 2:
        kernel[there, here] = kernel[here, there].T
    else:
        kernel[there, :, here] = kernel[here, :, there].permute(2, 3, 0, 1)
