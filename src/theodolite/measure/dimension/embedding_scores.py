"""How well two coordinates keep the neighborhoods of the data, and the best of several embeddings by that measure."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theodolite.core.checks import real_values
from theodolite.measure.dimension.embeddings import Embedding, isomap, lle, spectral_embedding
from theodolite.measure.dimension.prepared_rows import Rows, distinct_rows
from theodolite.measure.dimension.tsne_maps import tsne


@dataclass(frozen=True)
class Quality:
    """An embedding in the plane and how true it is.

    ``trustworthiness``: neighbors in the plane were neighbors before; ``continuity``: neighbors before are still so; 1 is
    perfect. ``residual`` is 1 - R^2 between the distances before and after. ``failure`` says why there is none.
    """

    name: str
    coordinates: NDArray[np.float64] = field(repr=False)
    trustworthiness: float = 0.0
    continuity: float = 0.0
    residual: float = 1.0
    failure: str = ""

    @property
    def score(self) -> float:
        """The mean of trustworthiness and continuity."""
        return (self.trustworthiness + self.continuity) / 2


def embedding_quality(points: Any, coordinates: Any, *, name: str = "", neighbors: int = 10) -> Quality:
    """Trustworthiness and continuity over so many neighbors, and the residual variance of distances. Source: venna2001.

    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> quality = embedding_quality(x, 3 * x)
    >>> quality.trustworthiness, quality.continuity, round(quality.residual, 12)
    (1.0, 1.0, 0.0)
    """
    real_values(points=points, coordinates=coordinates)
    from scipy.spatial.distance import pdist
    from sklearn.manifold import trustworthiness

    x, y = np.asarray(points, dtype=np.float64), np.asarray(coordinates, dtype=np.float64)
    near = min(neighbors, (len(x) - 1) // 2)
    trust, kept = (float(trustworthiness(a, b, n_neighbors=near)) for a, b in ((x, y), (y, x)))
    residual = 1 - float(np.corrcoef(pdist(x), pdist(y))[0, 1]) ** 2
    return Quality(name, y, trust, kept, residual)


def planar_embeddings(x: Any, *, most: int = 600) -> Iterator[Quality]:
    """Every method's two coordinates of at most so many rows, one after the other, with their quality."""
    rows = distinct_rows(x).sample(most)
    points = rows.points.cpu().numpy()
    for name, make in _METHODS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = make(rows).coordinates[:, :2]
            if len(found) != len(points) or found.shape[1] < 2 or not np.isfinite(found).all():
                raise ValueError(f"{len(found)} of {len(points)} rows are connected")
            yield embedding_quality(points, found, name=name)
        except (ValueError, RuntimeError, ArithmeticError, np.linalg.LinAlgError) as error:
            reason = " ".join(str(error).split())
            yield Quality(name, np.zeros((0, 2)), failure=f"{type(error).__name__}: {reason}")


def _pca(rows: Rows) -> Embedding:
    import torch

    centered = rows.points - rows.points.mean(0)
    left, singular, _ = torch.linalg.svd(centered, full_matrices=False)
    return Embedding("PCA", (left[:, :2] * singular[:2]).cpu().numpy())


def _local(method: str, rows: Rows) -> Embedding:
    from sklearn.manifold import LocallyLinearEmbedding

    model = LocallyLinearEmbedding(n_components=2, n_neighbors=12, method=method, eigen_solver="dense", random_state=0)
    return Embedding(method, model.fit_transform((rows.points - rows.points.mean(0)).cpu().numpy()))


_METHODS: dict[str, Callable[[Rows], Embedding]] = {
    "PCA": _pca,
    "Isomap": isomap,
    "LLE": lle,
    "Hessian LLE": partial(_local, "hessian"),
    "LTSA": partial(_local, "ltsa"),
    "spectral": spectral_embedding,
    "t-SNE": tsne,
}
