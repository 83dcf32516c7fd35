"""Coordinates for data on a manifold, and the dimension that each method's spectrum shows, where theory lets it be read."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from theodolite.core.checks import InputError, at_least, finite, real_values
from theodolite.measure.dimension.neighbor_graph import Neighbors, nearest_neighbors
from theodolite.measure.dimension.prepared_rows import distinct_rows

MOST = 1000
"""Rows that the dense methods work on; of larger data so many are drawn."""


@dataclass(frozen=True)
class Embedding:
    """Coordinates (n, m), the eigenvalues they rest on, the dimension read off them (0: none), and notes."""

    name: str
    coordinates: NDArray[np.float64] = field(repr=False)
    eigenvalues: tuple[float, ...] = ()
    dimension: int = 0
    residuals: tuple[float, ...] = ()
    note: str = ""


def classical_mds(distances: Any, dimension: int | None = None) -> Embedding:
    r"""Classical scaling: coordinates $V\Lambda^{1/2}$ of the largest eigenvalues of $B=-\frac12JD^2J$, $J=I-11^\top/n$.

    Exact where the distances are Euclidean; otherwise it minimizes the strain $\|B-YY^\top\|$ (not the stress, the misfit of
    the distances themselves). Negative eigenvalues are those of distances that no Euclidean points have. Source: torgerson1952.

    >>> triangle = classical_mds([[0.0, 3, 4], [3, 0, 5], [4, 5, 0]])
    >>> y = triangle.coordinates
    >>> triangle.dimension, round(float(np.linalg.norm(y[1] - y[2])), 12)
    (2, 5.0)
    """
    real_values(distances=distances)
    D = np.asarray(distances, dtype=np.float64)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or not np.allclose(D, D.T):
        raise InputError(f"expected a symmetric matrix of distances, got shape {D.shape}; pass all pairs")
    B = -0.5 * _centered(D**2)
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int((values > len(D) * 1e-12 * values[0]).sum())
    kept = rank if dimension is None else min(dimension, rank)
    return Embedding("classical MDS", vectors[:, :kept] * np.sqrt(values[:kept]), tuple(values.tolist()), rank)


def geodesic_distances(graph: Neighbors, *, neighbors: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Lengths of the shortest paths over the graph, within its largest connected part, and the rows of that part."""
    at_least(0, neighbors=neighbors)
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components, shortest_path

    count = len(graph)
    start = np.repeat(np.arange(count), neighbors)
    ends, lengths = graph.indices[:, :neighbors].ravel(), graph.distances[:, :neighbors].ravel()
    # both directions are laid down; a sparse matrix would add an edge that stands in both lists, so the larger is kept
    links = coo_matrix((lengths, (start, ends)), shape=(count, count)).tocsr()
    links = links.maximum(links.T)
    _, part = connected_components(links, directed=False)
    chosen = np.flatnonzero(part == np.bincount(part).argmax())
    return shortest_path(links[chosen][:, chosen], method="D", directed=False), chosen


def isomap(x: Any, *, neighbors: int = 10, most_dimensions: int = 12, most: int = MOST) -> Embedding:
    r"""Isomap: classical MDS of geodesic distances; the dimension is where the residual variance stops falling.

    ``residuals`` are $1-R^2(D_G,D_Y)$ for 1, 2, ... coordinates; the dimension is the last of them that took away more than
    15 % of what was left before it, and more than 0.001. Where a quarter is still left at the end, it is only known to be
    no less than that.
    Source: tenenbaum2000.

    Differs from the source: the elbow is a stated rule; the source reads it by eye.
    """
    at_least(1, most_dimensions=most_dimensions, most=most)
    graph = _graph(x, neighbors, most)
    neighbors = min(neighbors, graph.count)
    geodesic, chosen = geodesic_distances(graph, neighbors=neighbors)
    unit = 1.0 if 1e-100 < graph.rows.scale < 1e100 else graph.rows.scale  # their squares must be numbers
    geodesic = geodesic / unit
    whole = classical_mds(geodesic, most_dimensions)
    residuals = _residuals(geodesic, whole.coordinates)
    before = [1.0, *residuals]
    found = max(
        (p for p, left in enumerate(residuals, 1) if left < 0.85 * before[p - 1] and before[p - 1] - left > 1e-3),
        default=1,
    )
    note = "" if len(chosen) == len(graph) else f"the largest connected part, {len(chosen)} of {len(graph)} rows"
    if residuals[-1] > 0.25:
        found, note = len(residuals), "still falling there: no fewer than this. " + note
    return Embedding("Isomap", whole.coordinates * unit, whole.eigenvalues, found, tuple(residuals), note)


def lle_weights(graph: Neighbors, *, neighbors: int, regularization: float = 1e-3) -> NDArray[np.float64]:
    """The weights, summing to one, by which each row is best made from its neighbors, (n, k). Source: roweis2000."""
    at_least(1, neighbors=neighbors)
    points = graph.rows.points
    near = torch.from_numpy(graph.indices[:, :neighbors]).to(points.device)
    weights = []
    everyone = torch.arange(len(points), device=points.device)
    for some in torch.split(everyone, max(1, (1 << 21) // (neighbors * points.shape[1]))):
        apart = points[near[some]] - points[some, None]
        gram = apart @ apart.transpose(1, 2)
        trace = gram.diagonal(dim1=1, dim2=2).sum(1)
        gram = gram + (regularization * trace)[:, None, None] * torch.eye(
            neighbors, dtype=gram.dtype, device=gram.device
        )
        solved = torch.linalg.solve(gram, torch.ones_like(gram[:, :, :1])).squeeze(2)
        weights.append(solved / solved.sum(1, keepdim=True))
    return torch.cat(weights).cpu().numpy()


def lle(
    x: Any, dimension: int = 2, *, neighbors: int = 12, regularization: float = 1e-3, most: int = MOST
) -> Embedding:
    r"""Locally linear embedding: eigenvectors 2 to d + 1 of $(I-W)^\top(I-W)$, scaled to $Y^\top Y=nI$.

    The dimension is where the eigenvalues jump by the largest factor: weak evidence, often 1 where the truth is more.
    Source: roweis2000.
    """
    finite(regularization=regularization)
    at_least(0, most=most)
    graph = _graph(x, neighbors, most)
    neighbors, count = min(neighbors, graph.count), len(graph)
    if not 1 <= dimension < count:
        raise InputError(f"expected from 1 to {count - 1} coordinates of {count} rows, got {dimension}; pass more rows")
    left = np.eye(count)
    left[np.arange(count)[:, None], graph.indices[:, :neighbors]] -= lle_weights(
        graph, neighbors=neighbors, regularization=regularization
    )
    values, vectors = np.linalg.eigh(left.T @ left)
    values = values.clip(min=0.0)
    gaps = values[2:14] / np.maximum(values[1:-1][:12], np.finfo(float).tiny)
    coordinates = vectors[:, 1 : dimension + 1] * np.sqrt(count)
    return Embedding("LLE", coordinates, tuple(values[:16].tolist()), int(gaps.argmax()) + 1)


def hessian_eigenmaps(x: Any, dimension: int = 2, *, neighbors: int | None = None, most: int = 600) -> Embedding:
    r"""Hessian eigenmaps: the functions whose Hessian in local tangent coordinates vanishes, constant ones and d others.

    In the neighborhood of each row: tangent coordinates u by SVD, the columns $[1,u_a,u_au_b]$ made orthonormal, of which
    the last d(d+1)/2 estimate the Hessian; $M=\sum H_i^\top H_i$ has a null space of dimension d + 1 if the assumed
    dimension is the true one and the manifold is flat. Source: donoho2003.

    Differs from the source: its rescaling of the rows of H to sum one is left out, since they sum to zero (they are
    orthogonal to the column of ones).
    """
    d, pairs = dimension, dimension * (dimension + 1) // 2
    k = neighbors or max(12, 2 * (1 + d + pairs))
    if k <= 1 + d + pairs:
        raise InputError(f"expected more than {1 + d + pairs} neighbors for {d} dimensions, got {k}; take more")
    graph = _graph(x, k, most)
    if k >= len(graph):
        raise InputError(f"expected more than {k} rows, got {len(graph)}; assume fewer dimensions")
    points = graph.rows.points.cpu().numpy()
    near = np.concatenate([np.arange(len(points))[:, None], graph.indices[:, : k - 1]], axis=1)
    local = points[near]
    local = local - local.mean(1, keepdims=True)
    tangent = np.linalg.svd(local, full_matrices=False)[0][:, :, :d]  # (n, k, d)
    products = [tangent[:, :, a] * tangent[:, :, b] for a in range(d) for b in range(a, d)]
    columns = np.concatenate([np.ones((*tangent.shape[:2], 1)), tangent, np.stack(products, axis=2)], axis=2)
    hessians = np.linalg.qr(columns)[0][:, :, d + 1 :]  # (n, k, pairs)
    blocks = hessians @ hessians.transpose(0, 2, 1)
    M = np.zeros((len(points), len(points)))
    np.add.at(M, (near[:, :, None], near[:, None, :]), blocks)
    values, vectors = np.linalg.eigh(M)
    values = values.clip(min=0.0)
    return Embedding("Hessian LLE", vectors[:, 1 : d + 1] * np.sqrt(len(points)), tuple(values[: d + 8].tolist()))


def _null_gap(embedding: Embedding, dimension: int) -> float:
    """By what factor the eigenvalue after the d + 1 smallest exceeds the largest of them."""
    values = embedding.eigenvalues
    return values[dimension + 1] / max(values[dimension], 1e-12)


def dimension_hessian(x: Any, *, largest: int = 4, most: int = 600) -> tuple[int, dict[int, float]]:
    """The assumed dimension whose null space of d + 1 functions is parted best from the rest, and each one's gap.

    0 where no gap exceeds 10: the manifold is not flat, or has another dimension. One dimension is not asked about (a second
    difference over many neighbors also removes functions that oscillate), nor all columns (there any data is flat).
    """
    at_least(0, largest=largest)
    rows = distinct_rows(x).sample(most)
    gaps = {d: _null_gap(hessian_eigenmaps(rows, d, most=most), d) for d in range(2, min(largest + 1, rows.columns))}
    best = max(gaps, key=lambda d: gaps[d], default=0)
    return (best if best and gaps[best] > 10 else 0), gaps


def laplacian_eigenmaps(affinities: Any, dimension: int = 2) -> Embedding:
    r"""Spectral embedding: $Ly=\lambda Dy$ with $L=D-W$; as many zero eigenvalues as connected parts. Source: belkin2003.

    >>> path = np.diag([1.0, 1, 1], 1) + np.diag([1.0, 1, 1], -1)
    >>> [round(v, 12) for v in laplacian_eigenmaps(path).eigenvalues]
    [0.0, 0.5, 1.5, 2.0]
    """
    at_least(1, dimension=dimension)
    real_values(affinities=affinities)
    from scipy.linalg import eigh

    W = np.asarray(affinities, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise InputError(f"expected a square matrix of affinities, got shape {W.shape}; pass one number for each pair")
    degrees = W.sum(1)
    if not np.allclose(W, W.T) or (degrees <= 0).any():
        raise InputError(
            "expected symmetric affinities with a positive sum in every row, got others; connect every row"
        )
    values, vectors = eigh(np.diag(degrees) - W, np.diag(degrees))
    return Embedding("spectral", vectors[:, 1 : dimension + 1], tuple(values.clip(min=0.0).tolist()))


def spectral_embedding(x: Any, dimension: int = 2, *, neighbors: int = 12, most: int = MOST) -> Embedding:
    """Laplacian eigenmaps of the graph of nearest neighbors, each link of weight one. Source: belkin2003."""
    at_least(0, dimension=dimension, most=most)
    graph = _graph(x, neighbors, most)
    neighbors = min(neighbors, graph.count)
    W = np.zeros((len(graph), len(graph)))
    W[np.arange(len(graph))[:, None], graph.indices[:, :neighbors]] = 1.0
    return laplacian_eigenmaps(np.maximum(W, W.T), dimension)


def _graph(x: Any, neighbors: int, most: int) -> Neighbors:
    if isinstance(x, Neighbors) and len(x) <= most and x.count >= neighbors:
        return x
    rows = (x.rows if isinstance(x, Neighbors) else distinct_rows(x)).sample(most)
    return nearest_neighbors(rows, min(neighbors, len(rows) - 1))


def _centered(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    rows, columns = matrix.mean(1, keepdims=True), matrix.mean(0, keepdims=True)
    return np.asarray(matrix - rows - columns + matrix.mean())


def _residuals(geodesic: NDArray[np.float64], coordinates: NDArray[np.float64]) -> list[float]:
    """1 - R^2 between the geodesic distances and those of the first 1, 2, ... coordinates."""
    upper = np.triu_indices(len(geodesic), 1)
    truth = geodesic[upper]
    truth = truth - truth.mean()
    squares = np.zeros_like(truth)
    found = []
    for column in coordinates.T:
        squares += (column[upper[0]] - column[upper[1]]) ** 2
        seen = np.sqrt(squares)
        seen -= seen.mean()
        found.append(float(1 - (truth @ seen) ** 2 / ((truth @ truth) * (seen @ seen))))
    return found
