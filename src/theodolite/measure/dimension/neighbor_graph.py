"""The exact nearest neighbors of every row, found once and shared by all estimators of dimension."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from theodolite.core.checks import InputError, MissingPackageError, one_of
from theodolite.core.state import exact_products
from theodolite.measure.dimension.prepared_rows import BLOCK, Rows, distinct_rows

_Method = Literal["auto", "tree", "products", "blocks", "approximate"]
CERTAIN = 1e-9
"""The relative error of a squared distance up to which a row's neighbors count as found."""
SMALL_RANK, LARGEST_RANK, MANY = 6, 10, 20_000
"""A tree beats matrix products up to so many dimensions, and up to a few more where there are many rows."""
PROBES = 32
"""Rows on which a choice of directions is tried."""
FEW = 4096
"""Rows up to which plain products of torch are as fast as scikit-learn's, which takes two seconds to import."""
SPARE, DOUBTED = 2, 1e-3
"""Candidates beyond the neighbors asked for where a tree has all directions, and the share of rows in doubt that is too many."""
FLAT = 1e-9
"""Lengths relative to the largest of all below which there is no direction."""
AT_ONCE = 2048
"""Rows whose candidates are asked for at a time."""


@dataclass(frozen=True)
class Neighbors:
    """The nearest other rows of every distinct row, nearest first, with distances in the units of the data.

    ``method`` says how they were found; ``recall`` is the share of true neighbors among them, 1 unless approximate; ``asked``
    which rows alone were looked at, None for all.
    """

    distances: NDArray[np.float64] = field(repr=False)  # (n, k)
    indices: NDArray[np.int64] = field(repr=False)  # (n, k)
    rows: Rows
    method: str
    recall: float = 1.0
    asked: NDArray[np.int64] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.distances)

    @property
    def count(self) -> int:
        """How many neighbors of each row are known."""
        return int(self.distances.shape[1])

    @property
    def ties(self) -> float:
        """The share of rows whose two nearest neighbors are equally far, as on a lattice."""
        near = self.distances
        return float((near[:, 1] <= near[:, 0] * (1 + CERTAIN)).mean()) if self.count > 1 else 0.0

    def patches(self, neighbors: int, *, most: int) -> tuple[NDArray[np.int64], Iterator[Tensor]]:
        """Some rows, spread over all, and them with their neighbors (m, k, D) from the mean of each patch, a block at a time."""
        chosen = np.linspace(0, len(self) - 1, min(most, len(self))).astype(np.int64)
        near = np.concatenate([chosen[:, None], self.indices[chosen, :neighbors]], axis=1)
        points = self.rows.points
        parts = torch.split(torch.from_numpy(near), max(1, (1 << 21) // (points.shape[1] * near.shape[1])))
        local = (points[some.to(points.device)] for some in parts)
        return chosen, (part - part.mean(1, keepdim=True) for part in local)

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the answer, in words."""
        own = list(self.rows.notes)
        if self.ties > 0.01:
            own.append(f"{100 * self.ties:.0f} % of rows have two nearest neighbors at one distance: data on a lattice")
        if self.recall < 1:
            own.append(f"approximate neighbors, of which {100 * self.recall:.1f} % are the true ones")
        return tuple(own)


@dataclass(frozen=True)
class _Found:
    """Candidates nearest first; squared distances right to ``error``, and no other row nearer than ``beyond``."""

    indices: Tensor  # (m, K)
    squares: Tensor  # (m, K)
    beyond: Tensor  # (m,)
    error: Tensor  # (m,)


def nearest_neighbors(x: Any, count: int = 20, *, method: _Method = "auto", asked: int | None = None) -> Neighbors:
    r"""The ``count`` nearest other rows of every distinct row of ``x``, exact unless asked otherwise.

    A few more candidates than asked for are found fast, by a kd-tree in the few directions that tell rows apart or by
    matrix products $|a|^2+|b|^2-2a\cdot b$ of centered rows. Each row's candidates are accepted only where the known
    error of that method cannot have lost a neighbor; distances that cancellation has touched are taken again from
    differences, and rows that remain in doubt are compared with all others directly. Shifts of 1e5 and scales of 1e-8
    therefore change nothing but rounding.

    ``method``: ``tree``, ``products`` (scikit-learn's fused search, CPU), ``blocks`` (torch, any device), ``approximate``
    (pynndescent, for more rows than a person will wait for; its recall is measured on a sample), or ``auto``.
    ``asked``: of so many rows alone, drawn without order, the neighbors among all.

    >>> nearest_neighbors([[0.0], [1.0], [3.0], [7.0]], 2).distances.tolist()
    [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0], [4.0, 6.0]]
    """
    one_of(get_args(_Method), method=method)
    rows = distinct_rows(x)
    if not 1 <= count < len(rows):
        raise InputError(f"expected from 1 to {len(rows) - 1} neighbors, got {count}; the rows are {len(rows)}")
    points = rows.points
    if method == "approximate":
        return _approximate(rows, count)
    wanted = min(len(rows) - 1, count + max(8, count // 8))
    centered = points - points.mean(0)
    most = 2 * LARGEST_RANK if method == "tree" else LARGEST_RANK if len(points) >= MANY else SMALL_RANK
    mine = torch.arange(len(rows), device=points.device)
    if asked is not None and asked < len(rows):
        drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:asked]
        mine = drawn.sort().values.to(points.device)
    leading = _leading(centered, count, wanted, most) if method in ("auto", "tree") else None
    if leading is not None:
        found, how = _tree(centered, mine, count, *leading, wanted), f"kd-tree in {leading[0].shape[1]} dimensions"
    elif method == "blocks" or points.device.type != "cpu" or (method == "auto" and len(points) <= FEW):
        found, how = _blocks(centered, mine, wanted), f"blocked products on {points.device.type}"
    else:
        found, how = _products(centered, mine, wanted), "matrix products"
    del centered
    squares, indices = _settled(points, found, count, mine)
    distances = squares.sqrt_().mul_(rows.scale)
    some = mine.cpu().numpy() if len(mine) < len(rows) else None
    return Neighbors(distances.cpu().numpy(), indices.cpu().numpy(), rows, how, asked=some)


def neighbors_of(x: Any, count: int) -> Neighbors:
    """A graph with at least ``count`` neighbors: the one given, where it is one and has them."""
    if not isinstance(x, Neighbors):
        return nearest_neighbors(x, count)
    if x.count < count:
        raise InputError(f"expected a graph of at least {count} neighbors, got one of {x.count}; ask for more there")
    return x


def _leading(centered: Tensor, count: int, wanted: int, most: int) -> tuple[Tensor, int] | None:
    """The fewest directions in which a tree finds the neighbors, and how many candidates to ask it for.

    Rows are never nearer than they are in a subspace: a row's neighbors are among the rows that are nearer there than
    its last true neighbor. In all the directions that there are these are the neighbors alone. Else how many they are is
    counted for some rows, with the first directions of the principal components; None where up to ``most`` directions leave
    too many. Others than those tried are settled one by one.
    """
    if centered.shape[1] <= 3:
        whole = torch.eye(centered.shape[1], dtype=centered.dtype, device=centered.device)
        return whole, min(len(centered) - 1, count + SPARE)
    some = centered[:: max(1, len(centered) // 256)][:400]
    _, sizes, across = torch.linalg.svd(some, full_matrices=False)
    rank = int((sizes > FLAT * sizes[0]).sum())
    if rank <= most and rank < len(some) and _outside(centered, across[:rank].T) <= (FLAT * float(sizes[0])) ** 2:
        return across[:rank].T, min(len(centered) - 1, count + SPARE)
    directions = across[:most].T
    inside, needed = centered @ directions, torch.zeros(directions.shape[1], device=centered.device)
    for row in range(0, len(centered), max(1, len(centered) // PROBES)):
        edge = (centered - centered[row]).square_().sum(1).kthvalue(count + 1).values * (1 + 1e-9)
        among = (inside - inside[row]).square_().cumsum(1) <= edge
        needed = torch.maximum(needed, among.sum(0))
    enough = (needed <= 2 * wanted).nonzero().flatten()
    if not len(enough):
        return None
    rank = int(enough[0])
    return directions[:, : rank + 1], min(len(centered) - 1, max(wanted, int(1.5 * needed[rank])))


def _outside(centered: Tensor, basis: Tensor) -> float:
    """The largest square of what of a row lies outside of some directions."""
    return max(float((part - part @ basis @ basis.T).square().sum(1).max()) for part in _parts(centered))


def _tree(centered: Tensor, mine: Tensor, count: int, basis: Tensor, asked: int, wanted: int) -> _Found:
    """Distances in a subspace are never longer than the true ones, and shorter by no more than what lies outside it.

    So no row that was not found is nearer than the last one found, and where what lies outside matters the distances of
    those found are taken again from differences. Where so few candidates leave rows in doubt, as on a lattice, more are asked
    for. Rows are asked for in the tree's own order: what one needs of it is still in the cache for the next.
    """
    from scipy.spatial import cKDTree

    outside = _outside(centered, basis)
    places = (centered @ basis).cpu().numpy()
    tree = cKDTree(places)
    order = torch.from_numpy(tree.indices.astype(np.int64, copy=False))
    # where a row's answer goes
    table = torch.full((len(places),), -1).index_copy_(0, mine.cpu(), torch.arange(len(mine)))
    order = order[table[order] >= 0]
    rounding = 64 * torch.finfo(torch.float64).eps * float(centered.square().sum(1).max()) ** 0.5

    def search(some: slice) -> _Found:
        own = order[some]
        near, who = tree.query(places[own.numpy()], k=asked + 1, workers=torch.get_num_threads())
        # |d' - d''| <= rounding for lengths makes 2 d rounding for squares; what lies outside adds at most (2 max)^2
        slight = 2 * rounding * torch.from_numpy(near[:, -1])
        squares = torch.from_numpy(near).square_()
        return replace(_without_self(_places(who), squares, 4 * outside + slight, own), beyond=squares[:, -1] - slight)

    found = _in_parts(search, len(order), AT_ONCE, centered.device, table[order])
    doubted = int((found.squares[:, count - 1] * (1 - CERTAIN) > found.beyond).sum())
    if asked < wanted and doubted > len(order) * DOUBTED:
        asked = wanted
        found = _in_parts(search, len(order), AT_ONCE, centered.device, table[order])
    return found


def _products(centered: Tensor, mine: Tensor, wanted: int) -> _Found:
    from sklearn.neighbors import NearestNeighbors

    table = np.ascontiguousarray(centered.numpy())
    library = NearestNeighbors(n_neighbors=wanted + 1, algorithm="brute").fit(table)
    lengths = centered.square().sum(1)

    def search(some: slice) -> _Found:
        own = mine[some]
        near, who = library.kneighbors(table[own.numpy()])
        error = _product_error(lengths[own], lengths, centered.shape[1], torch.float64)
        return _without_self(_places(who), torch.from_numpy(near).square_(), error, own)

    return _in_parts(search, len(mine), AT_ONCE, centered.device)


def _blocks(centered: Tensor, mine: Tensor, wanted: int) -> _Found:
    """In float32 on the tensor's own device; what that cannot decide is settled later, row by row."""
    single = centered.float()
    lengths = single.square().sum(1)
    exact = centered.square().sum(1)

    def search(some: slice) -> _Found:
        own = mine[some]
        squares = torch.addmm(lengths[None, :], single[own], single.T, alpha=-2).add_(lengths[own, None])
        near, who = squares.clamp_(min=0.0).topk(wanted + 1, dim=1, largest=False)
        error = _product_error(exact[own], exact, centered.shape[1], torch.float32)
        return _without_self(who, near.double(), error, own)

    with exact_products():
        return _in_parts(search, len(mine), max(1, 8 * BLOCK // len(single)), single.device)


def _places(who: np.ndarray[Any, Any]) -> Tensor:
    return torch.from_numpy(who.astype(np.int64, copy=False))


def _in_parts(
    search: Callable[[slice], _Found], count: int, at_once: int, device: torch.device, order: Tensor | None = None
) -> _Found:
    """The candidates of some rows at a time, laid into tables that are made once; ``order`` says where in them."""
    whole: list[Tensor] = []
    for start in range(0, count, at_once):
        part = search(slice(start, start + at_once))
        tables = (part.indices, part.squares, part.beyond, part.error)
        whole = whole or [t.new_empty((count, *t.shape[1:]), device=device) for t in tables]
        for table, own in zip(whole, tables, strict=True):
            table[slice(start, start + at_once) if order is None else order[start : start + at_once]] = own
    return _Found(*whole)


def _product_error(lengths: Tensor, everyone: Tensor, columns: int, dtype: torch.dtype) -> Tensor:
    """By which a squared distance from products of this precision may err: (d + 8) eps (|a| + max |b|)^2."""
    reach = lengths.sqrt() + everyone.max().sqrt()
    return (columns + 8) * torch.finfo(dtype).eps * reach.square()


def _without_self(who: Tensor, squares: Tensor, error: Tensor, mine: Tensor) -> _Found:
    """Each row's candidates without the row itself; where ties hid it, the last one goes instead."""
    is_self = who == mine[:, None]
    is_self[:, -1] |= ~is_self.any(1)
    beyond = squares[:, -1] - error
    shape = (len(who), who.shape[1] - 1)
    return _Found(who[~is_self].reshape(shape), squares[~is_self].reshape(shape), beyond, error)


def _settled(points: Tensor, found: _Found, count: int, mine: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distances and places of the true neighbors."""
    doubtful = found.squares[:, 0] * 0.1 * CERTAIN < found.error  # cancellation may have touched them
    squares, indices = found.squares, found.indices
    for some in _row_parts(doubtful, found.indices.shape[1] * points.shape[1]):
        exact = (points[mine[some], None] - points[indices[some]]).square_().sum(-1)
        squares[some], order = exact.sort(dim=1)
        indices[some] = indices[some].gather(1, order)
    everyone = found.indices.shape[1] == len(points) - 1
    lost = squares[:, count - 1] * (1 - CERTAIN) > found.beyond + torch.where(doubtful, 0.0, found.error)
    squares, indices = squares[:, :count], indices[:, :count]  # parts of larger tables: copies would take as much again
    if everyone:  # every other row is a candidate: nothing can be lost
        return squares, indices
    for some in _row_parts(lost, 4 * len(points)):
        direct = torch.cdist(points[mine[some]], points, compute_mode="donot_use_mm_for_euclid_dist")
        direct.scatter_(1, mine[some][:, None], torch.inf)
        near, indices[some] = direct.topk(count, dim=1, largest=False)
        squares[some] = near.square()
    return squares, indices


def _row_parts(chosen: Tensor, entries: int) -> tuple[Tensor, ...]:
    places = chosen.nonzero().flatten()
    return torch.split(places, max(1, BLOCK // max(entries, 1))) if len(places) else ()


def _parts(table: Tensor) -> tuple[Tensor, ...]:
    return torch.split(table, max(1, BLOCK // table.shape[1]))


def _approximate(rows: Rows, count: int) -> Neighbors:
    """By pynndescent, with exact distances, and the share of true neighbors found for 400 rows."""
    import importlib

    try:
        library = importlib.import_module("pynndescent")
    except ImportError as error:
        raise MissingPackageError(
            "expected pynndescent for approximate neighbors, got none; pip install pynndescent"
        ) from error
    points = rows.points.cpu()
    table = (points - points.mean(0)).float().numpy()
    who, _ = library.NNDescent(table, n_neighbors=count + 9, random_state=0).neighbor_graph
    squares, indices = _exact(points, torch.from_numpy(who.astype(np.int64)).clamp_(min=0), count)
    for row in squares.isinf().any(1).nonzero().flatten().tolist():  # too few candidates were found: compare with all
        direct = (points[row] - points).square().sum(1)
        direct[row] = torch.inf
        squares[row], indices[row] = direct.topk(count, largest=False)
    some = torch.arange(0, len(points), max(1, len(points) // 400))
    direct = torch.cdist(points[some], points, compute_mode="donot_use_mm_for_euclid_dist")
    direct.scatter_(1, some[:, None], torch.inf)
    edge = direct.topk(count, dim=1, largest=False).values[:, -1:]
    recall = float((squares[some].sqrt() <= edge * (1 + CERTAIN)).double().mean())
    distances = squares.sqrt().mul_(rows.scale)
    return Neighbors(distances.numpy(), indices.numpy(), rows, "pynndescent", recall)


def _exact(points: Tensor, candidates: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The nearest of the candidates by differences; a row that names itself or one twice loses that candidate."""
    squares, indices = [], []
    everyone = torch.arange(len(points))
    for some in torch.split(everyone, max(1, BLOCK // (candidates.shape[1] * points.shape[1]))):
        own = candidates[some].sort(dim=1).values
        exact = (points[some, None] - points[own]).square_().sum(-1)
        exact[own == some[:, None]] = torch.inf
        exact[:, 1:][own[:, 1:] == own[:, :-1]] = torch.inf
        near, order = exact.topk(count, dim=1, largest=False)
        squares.append(near)
        indices.append(own.gather(1, order))
    return torch.cat(squares), torch.cat(indices)
