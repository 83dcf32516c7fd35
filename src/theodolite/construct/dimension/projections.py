r"""Random maps from few coordinates to many parameters, with columns of unit norm, in little memory.

Each kind is a module with two methods: ``table(v)`` is computed once from the coordinates, ``part(table, i)`` gives the
image's entries that belong to the i-th tensor; any axes may come before the coordinates. Randomness comes from the
generator given when it is made.
"""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError
from theodolite.theory.dimension import hadamard_transform, hadamard_transform_, next_power_of_two

CHUNK = 1 << 18  # numbers worked on at a time: the cache holds them
LEAST_BLOCK = 1 << 12
MOST_DENSE = 1 << 31


class LinearMap(Protocol):
    """A linear map and its adjoint, as plain computations."""

    def image(self, x: Tensor) -> Tensor:
        """The map."""

    def adjoint(self, y: Tensor) -> Tensor:
        """Its transpose."""


class _Map(torch.autograd.Function):
    """A linear map whose backward pass is its adjoint, so that nothing is stored and second derivatives are exact."""

    @staticmethod
    def forward(x: Tensor, operator: LinearMap, transposed: bool) -> Tensor:
        return operator.adjoint(x) if transposed else operator.image(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, LinearMap, bool], output: Tensor) -> None:
        _, ctx.operator, ctx.transposed = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _Map.apply(grads[0], ctx.operator, not ctx.transposed), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        return _Map.apply(tangents[0], ctx.operator, ctx.transposed)  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, dims: tuple[int, ...], x: Tensor, operator: LinearMap, transposed: bool) -> tuple[Tensor, int]:
        return _Map.apply(x.movedim(dims[0], 0), operator, transposed), 0  # type: ignore[no-untyped-call]


def mapped(x: Tensor, operator: LinearMap) -> Tensor:
    """The operator's image of ``x``, differentiable in ``x``."""
    return _Map.apply(x, operator, False)  # type: ignore[no-untyped-call]


class Fastfood(nn.Module):
    r"""$y=\Sigma\,HG\Pi HBv$: signs, transform, permutation, Gaussian diagonal, transform; stacked in blocks.

    $v$ has few entries, so $HBv$ repeats one transform of the next power of two $d'$; the permutation only says which
    of its entries goes where. Blocks of $C=\max(4096,d')$ entries (one smaller block for a smaller tensor) cover each
    tensor; a row of a block has variance $|v|^2\sum g^2$ over the signs, hence $\Sigma=(D\sum_{block}g^2)^{-1/2}$ and
    $E|y|^2=|v|^2$. Four bytes for each parameter are stored, little more is needed while it runs.

    Source: le2013. Differs from the source: see the law fastfood-norm for the normalization that is missing there.
    """

    def __init__(self, tensor_sizes: Sequence[int], dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        self.sizes = tuple(tensor_sizes)
        self.width = next_power_of_two(dimension)
        self.blocks = [min(max(LEAST_BLOCK, self.width), next_power_of_two(size)) for size in tensor_sizes]
        padded = [-(-size // block) * block for size, block in zip(tensor_sizes, self.blocks, strict=True)]
        self.starts = [0, *accumulate(padded)]
        total = self.starts[-1]
        index = torch.randperm(total, generator=generator, dtype=torch.int32).remainder_(self.width)
        gauss = torch.empty(total, dtype=torch.float16)
        for block, (start, end) in zip(self.blocks, pairwise(self.starts), strict=True):
            # rounded numbers are normalized, not the reverse
            for rows in torch.split(gauss[start:end], max(block, CHUNK)):
                g = torch.randn(len(rows) // block, block, generator=generator)
                rows.copy_((g * (block**0.5 / g.norm(dim=1, keepdim=True))).view(-1))
        self.register_buffer("index", _narrow(index, self.width), persistent=False)
        self.register_buffer("gauss", gauss, persistent=False)
        self.register_buffer("signs", _signs(self.width, generator), persistent=False)

    def table(self, coordinates: Tensor) -> Tensor:
        """$HBv$, of the next power of two entries."""
        signs: Tensor = self.get_buffer("signs")
        return hadamard_transform(
            nn.functional.pad(coordinates, (0, self.width - coordinates.shape[-1])) * signs.to(coordinates.dtype)
        )

    def part(self, table: Tensor, place: int) -> Tensor:
        """The entries of one tensor."""
        there = slice(*self.starts[place : place + 2])
        block, scale = self.blocks[place], (sum(self.sizes) * self.blocks[place]) ** -0.5
        index, gauss = self.get_buffer("index")[there], self.get_buffer("gauss")[there]
        return mapped(table, _Blocks(index, gauss, self.sizes[place], block, (scale, self.width)))


class _Blocks:
    """``scale H G`` of gathered entries, block by block, cut to ``size``."""

    def __init__(self, index: Tensor, gauss: Tensor, size: int, block: int, constants: tuple[float, int]) -> None:
        self.index, self.gauss, self.size, self.block = index, gauss, size, block
        self.scale, self.width = constants
        self.step = max(block, CHUNK)

    def image(self, x: Tensor) -> Tensor:
        """From the table to the tensor's entries."""
        y = x.new_empty(*x.shape[:-1], self.size)
        for index, gauss, piece in self._pieces(y):
            full = x.index_select(-1, index.int()).mul_(gauss)
            hadamard_transform_(full.view(-1, self.block), scale=self.scale)
            piece.copy_(full[..., : piece.shape[-1]])
        return y

    def adjoint(self, y: Tensor) -> Tensor:
        """From a gradient of the entries to one of the table."""
        x = y.new_zeros(*y.shape[:-1], self.width)
        for index, gauss, piece in self._pieces(y):
            full = nn.functional.pad(piece, (0, len(index) - piece.shape[-1])).contiguous()
            full = full.clone() if full.data_ptr() == piece.data_ptr() else full
            hadamard_transform_(full.view(-1, self.block), scale=self.scale)
            x.index_add_(-1, index.int(), full.mul_(gauss))
        return x

    def _pieces(self, y: Tensor) -> Any:
        return zip(*(torch.split(part, self.step, dim=-1) for part in (self.index, self.gauss, y)), strict=True)


class Tied(nn.Module):
    r"""Each parameter is ±1 times one random coordinate over the root of how many share it: an exact isometry.

    The cheapest projection there is: one look-up in a table of $v$ and $-v$. Source: weinberger2009 (the sign hash).
    """

    def __init__(self, tensor_sizes: Sequence[int], dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        self.sizes, self.starts = tuple(tensor_sizes), [0, *accumulate(tensor_sizes)]
        total = self.starts[-1]
        index = torch.randperm(total, generator=generator, dtype=torch.int32).remainder_(dimension)
        counts = torch.full((dimension,), total // dimension, dtype=torch.float64)
        counts[: total % dimension] += 1
        flips = torch.randint(0, 2, (total,), generator=generator, dtype=torch.int8)
        index.add_(flips, alpha=dimension)
        self.register_buffer("index", _narrow(index, 2 * dimension), persistent=False)
        self.register_buffer("scale", counts.rsqrt(), persistent=False)

    def table(self, coordinates: Tensor) -> Tensor:
        """Scaled coordinates, and their opposites."""
        scaled = coordinates * self.get_buffer("scale").to(coordinates.dtype)
        return torch.cat([scaled, -scaled], dim=-1)

    def part(self, table: Tensor, place: int) -> Tensor:
        """The entries of one tensor."""
        index = self.get_buffer("index")[self.starts[place] : self.starts[place + 1]]
        return mapped(table, _Gather(index, table.shape[-1]))


class _Gather:
    """Entries of a table by number; the adjoint adds them up."""

    def __init__(self, index: Tensor, width: int) -> None:
        self.index, self.width = index, width

    def image(self, x: Tensor) -> Tensor:
        """From the table to the tensor's entries."""
        y = x.new_empty(*x.shape[:-1], len(self.index))
        for index, piece in zip(torch.split(self.index, CHUNK), torch.split(y, CHUNK, dim=-1), strict=True):
            piece.copy_(x.index_select(-1, index.int()))
        return y

    def adjoint(self, y: Tensor) -> Tensor:
        """From a gradient of the entries to one of the table."""
        x = y.new_zeros(*y.shape[:-1], self.width)
        for index, piece in zip(torch.split(self.index, CHUNK), torch.split(y, CHUNK, dim=-1), strict=True):
            x.index_add_(-1, index.int(), piece)
        return x


class Sparse(nn.Module):
    r"""Each column has $\lceil\sqrt D\rceil$ entries $\pm D^{-1/4}$, one in each stretch of rows: density $1/\sqrt D$.

    Source: li2006. Differs from the source: the number of entries in a column is fixed, so that its norm is exactly 1.
    """

    def __init__(self, tensor_sizes: Sequence[int], dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        self.sizes, starts = tuple(tensor_sizes), [0, *accumulate(tensor_sizes)]
        total, self.dimension = starts[-1], dimension
        self.count = math.isqrt(total - 1) + 1
        edges = torch.linspace(0, total, self.count + 1, dtype=torch.float64).long()  # stretches of whole rows
        drawn = torch.rand(dimension, self.count, generator=generator)
        rows = (edges[:-1] + (drawn * edges.diff()).long().minimum(edges.diff() - 1)).view(-1)
        columns = torch.arange(dimension)[:, None].expand(-1, self.count).reshape(-1)
        columns = columns + dimension * torch.randint(0, 2, columns.shape, generator=generator)
        rows, order = rows.sort()
        self.edges = torch.searchsorted(rows, torch.tensor(starts)).tolist()
        self.first = starts[:-1]
        self.register_buffer("rows", rows.int(), persistent=False)
        self.register_buffer("columns", columns[order].int(), persistent=False)

    def table(self, coordinates: Tensor) -> Tensor:
        """Scaled coordinates, and their opposites."""
        scaled = coordinates * self.count**-0.5
        return torch.cat([scaled, -scaled], dim=-1)

    def part(self, table: Tensor, place: int) -> Tensor:
        """The entries of one tensor."""
        there = slice(*self.edges[place : place + 2])
        rows, columns = self.get_buffer("rows")[there] - self.first[place], self.get_buffer("columns")[there]
        return mapped(table, _Entries(rows, columns, (self.sizes[place], table.shape[-1])))


class _Entries:
    """A sparse matrix of ones, by the places of its entries."""

    def __init__(self, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        self.rows, self.columns, self.shape = rows, columns, shape

    def image(self, x: Tensor) -> Tensor:
        """From the table to the tensor's entries."""
        return x.new_zeros(*x.shape[:-1], self.shape[0]).index_add_(-1, self.rows, x.index_select(-1, self.columns))

    def adjoint(self, y: Tensor) -> Tensor:
        """From a gradient of the entries to one of the table."""
        return y.new_zeros(*y.shape[:-1], self.shape[1]).index_add_(-1, self.columns, y.index_select(-1, self.rows))


class DenseProjection(nn.Module):
    """A Gaussian matrix with normalized columns, stored whole: the reference, for small models."""

    def __init__(self, tensor_sizes: Sequence[int], dimension: int, generator: torch.Generator) -> None:
        super().__init__()
        total = sum(tensor_sizes)
        if total * dimension > MOST_DENSE:
            raise InputError(
                f"expected a dense projection of at most {MOST_DENSE:,} numbers, got {total:,} x {dimension:,}; "
                "use projection='fastfood'"
            )
        self.starts = [0, *accumulate(tensor_sizes)]
        matrix = torch.randn(total, dimension, generator=generator)
        self.register_buffer("matrix", matrix.div_(matrix.norm(dim=0)), persistent=False)

    def table(self, coordinates: Tensor) -> Tensor:
        """The coordinates themselves."""
        return coordinates

    def part(self, table: Tensor, place: int) -> Tensor:
        """The entries of one tensor."""
        rows = self.get_buffer("matrix")[self.starts[place] : self.starts[place + 1]]
        return table @ rows.to(table.dtype).T


KINDS: dict[str, type[Fastfood | Sparse | DenseProjection | Tied]] = {
    "fastfood": Fastfood,
    "sparse": Sparse,
    "dense": DenseProjection,
    "tied": Tied,
}


def fastfood_image(coordinates: Tensor, length: int, generator: torch.Generator) -> Tensor:
    r"""$[HG\Pi HBv]_{1..D}/\sqrt{L\sum g^2}$ with one block of $L=2^{\lceil\log_2D\rceil}$: the textbook form.

    $E|y|^2=(D/L)|v|^2$. Any axes may come before the last of ``coordinates``, all with the same random draw.
    """
    padded = next_power_of_two(max(length, coordinates.shape[-1]))
    signs = _signs(padded, generator).to(coordinates)
    order = torch.randperm(padded, generator=generator).to(coordinates.device)
    g = torch.randn(padded, generator=generator, dtype=torch.float64).to(coordinates)
    first = hadamard_transform(nn.functional.pad(coordinates, (0, padded - coordinates.shape[-1])) * signs)
    scale = 1 / math.sqrt(padded * float(g.square().sum()))
    return hadamard_transform(first[..., order] * g, scale=scale)[..., :length]


def _signs(size: int, generator: torch.Generator) -> Tensor:
    return 2 * torch.randint(0, 2, (size,), generator=generator, dtype=torch.int8) - 1


def _narrow(index: Tensor, most: int) -> Tensor:
    """As 16 bits where the numbers fit."""
    return index.to(torch.int16) if most <= 1 << 15 else index
