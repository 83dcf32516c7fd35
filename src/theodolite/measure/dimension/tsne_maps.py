"""t-SNE: affinities, loss and gradient, and two coordinates by scikit-learn or openTSNE. It is no estimator of dimension."""

import importlib
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.core.checks import InputError, MissingPackageError
from theodolite.measure.dimension.embeddings import Embedding
from theodolite.measure.dimension.prepared_rows import distinct_rows


def tsne_affinities(x: Any, *, perplexity: float = 30.0) -> Tensor:
    r"""$p_{ij}=(p_{j|i}+p_{i|j})/2n$ with $p_{j|i}\propto e^{-|x_i-x_j|^2/2\sigma_i^2}$, $p_{ii}=0$.

    $\sigma_i$ is a bandwidth (a standard deviation, not a variance), set so that the entropy is log(perplexity).
    Source: vandermaaten2008.
    """
    points = distinct_rows(x).points
    if not 1 <= perplexity < len(points) - 1:
        raise InputError(f"expected a perplexity from 1 to {len(points) - 2}, got {perplexity}; it counts neighbors")
    squares = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").square()
    squares.fill_diagonal_(torch.inf)
    squares = squares - squares.min(1, keepdim=True).values
    low, high = torch.full((len(points), 1), -40.0, dtype=torch.float64), torch.full((len(points), 1), 40.0).double()
    low, high = low.to(points.device), high.to(points.device)
    for _ in range(80):  # the entropy falls with the logarithm of the precision 1/(2 sigma^2)
        middle = (low + high) / 2
        p = torch.softmax(-squares * middle.exp(), dim=1)
        entropy = torch.special.entr(p).sum(1, keepdim=True)
        wide = entropy > np.log(perplexity)
        low, high = torch.where(wide, middle, low), torch.where(wide, high, middle)
    return (p + p.T) / (2 * len(points))


def tsne_loss(affinities: Tensor, coordinates: Tensor) -> Tensor:
    r"""$KL(P\|Q)$ with $q_{ij}=(1+|y_i-y_j|^2)^{-1}/Z$, $q_{ii}=0$. Source: vandermaaten2008."""
    if affinities.shape != (len(coordinates), len(coordinates)):
        raise InputError(
            f"expected affinities of each pair of {len(coordinates)} points, got {tuple(affinities.shape)}; pass as many"
        )
    kernel = 1 / (1 + (coordinates[:, None] - coordinates[None]).square().sum(-1))
    kernel = kernel * (1 - torch.eye(len(coordinates), dtype=coordinates.dtype, device=coordinates.device))
    q = kernel / kernel.sum()
    off = ~torch.eye(len(coordinates), dtype=torch.bool, device=coordinates.device)
    p, q = affinities[off], q[off]
    return torch.special.xlogy(p, p).sum() - (p * q.log()).sum()


def tsne_gradient(affinities: Tensor, coordinates: Tensor) -> Tensor:
    r"""$\partial C/\partial y_i=4\sum_j(p_{ij}-q_{ij})(1+|y_i-y_j|^2)^{-1}(y_i-y_j)$. Source: vandermaaten2008."""
    apart = coordinates[:, None] - coordinates[None]
    kernel = 1 / (1 + apart.square().sum(-1))
    kernel = kernel * (1 - torch.eye(len(coordinates), dtype=coordinates.dtype, device=coordinates.device))
    pull = (affinities - kernel / kernel.sum()) * kernel
    return 4 * (pull[:, :, None] * apart).sum(1)


def tsne(
    x: Any,
    *,
    perplexity: float = 30.0,
    most: int = 1000,
    seed: int = 0,
    engine: Literal["sklearn", "openTSNE"] = "sklearn",
) -> Embedding:
    """Two coordinates by t-SNE, of at most so many rows. Distances between clusters and their sizes say nothing."""
    rows = distinct_rows(x).sample(most)
    table = (rows.points - rows.points.mean(0)).float().cpu().numpy()
    near = min(perplexity, (len(rows) - 1) / 3)
    if engine == "openTSNE":
        try:
            library = importlib.import_module("openTSNE")
        except ImportError as error:
            raise MissingPackageError(
                "expected openTSNE, got none; pip install openTSNE, or use engine='sklearn'"
            ) from error
        found = np.asarray(library.TSNE(perplexity=near, random_state=seed, initialization="pca").fit(table))
    else:
        from sklearn.manifold import TSNE

        found = TSNE(perplexity=near, random_state=seed, init="pca", max_iter=500).fit_transform(table)
    return Embedding("t-SNE", found.astype(np.float64))
