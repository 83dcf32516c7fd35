r"""Neural collapse: how near the features of the classes are to points at the corners of a simplex.

Features $h$ with class means $\mu_c$, $\mu_G$ the mean of the class means, $M$ the matrix of rows $\mu_c-\mu_G$. Everything is
computed in float64 in the span of $M$, which has at most C-1 dimensions: with a pseudo-inverse in single precision the
first of these numbers comes out wrong by orders of magnitude once two means nearly coincide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, as_tensor, finite_values, has_values, real_values


@dataclass(frozen=True)
class Collapse:
    r"""The four signs of neural collapse; all tend to 0. None where no classifier was given.

    ``nc1`` $\mathrm{tr}(\Sigma_W\Sigma_B^+)/C$, ``nc2_equinorm`` the population standard deviation of $|\mu_c-\mu_G|$ over
    its mean, ``nc2_equiangular`` the mean of $|\cos+1/(C-1)|$ over pairs, the same for the rows of the classifier,
    ``cosine_spread`` and ``weight_cosine_spread`` the population standard deviation of those cosines, ``nc3``
    $|W/|W|_F-M/|M|_F|_F$, ``nc4`` the share of samples whose largest logit is not the nearest class mean.
    ``rank`` is that of M; ``note`` says what is unusual about the classes.
    """

    nc1: float
    nc2_equinorm: float
    nc2_equiangular: float
    weight_equinorm: float | None
    weight_equiangular: float | None
    nc3: float | None
    nc4: float | None
    classes: int
    rank: int
    note: str = ""
    cosine_spread: float = 0.0
    weight_cosine_spread: float | None = None


@dataclass(frozen=True)
class ClassMoments:
    """Counts, means and the scatter about the class means of features seen so far; add two to pool them."""

    counts: Tensor  # (C,)
    means: Tensor = field(repr=False)  # (C, d)
    scatter: Tensor = field(repr=False)  # (d, d), summed over samples

    @classmethod
    def of(cls, features: Tensor, labels: Tensor, *, classes: int) -> ClassMoments:
        """From rows of features and their labels 0 to C-1."""
        h, y = _rows(features), labels.to(features.device).long().reshape(-1)
        if len(h) != len(y) or (len(y) and (int(y.min()) < 0 or int(y.max()) >= classes)):
            raise InputError(
                f"expected a label from 0 to {classes - 1} for each of {len(h)} rows, got {tuple(y.shape)}"
            )
        counts = torch.bincount(y, minlength=classes).to(h)
        means = h.new_zeros(classes, h.shape[1]).index_add_(0, y, h) / counts.clamp_min(1)[:, None]
        rest = h - means[y]
        return cls(counts, means, rest.T @ rest)

    def __add__(self, other: ClassMoments) -> ClassMoments:
        counts = self.counts + other.counts
        apart = other.means - self.means
        means = self.means + apart * (other.counts / counts.clamp_min(1))[:, None]
        between = apart * (self.counts * other.counts / counts.clamp_min(1)).sqrt()[:, None]
        return ClassMoments(counts, means, self.scatter + other.scatter + between.T @ between)

    @property
    def present(self) -> Tensor:
        """Which classes were met."""
        return self.counts > 0


def collapse_metrics(
    features: Tensor, labels: Tensor, weight: Tensor | None = None, bias: Tensor | None = None
) -> Collapse:
    r"""NC1 to NC4 of features (N, d) with labels (N,) and, if given, the classifier that reads them (C, d), (C,).

    Classes count alike in the means whatever their size, samples alike in the scatter; what is unusual is told in
    ``note``. Source: papyan2020.

    >>> corners = torch.eye(3, dtype=torch.float64) - 1 / 3
    >>> found = collapse_metrics(corners.repeat(4, 1), torch.arange(3).repeat(4), corners)
    >>> round(found.nc1, 9), round(found.nc2_equiangular, 9), round(found.nc3, 9), found.nc4
    (0.0, 0.0, 0.0, 0.0)
    """
    features, labels = as_tensor(features), as_tensor(labels, floats=False)
    has_values(features=features)
    real_values(features=features)
    classes = len(weight) if weight is not None else int(labels.max()) + 1
    moments = ClassMoments.of(features, labels, classes=classes)
    wrong = None if weight is None else disagreements(moments, features, weight, bias) / len(features)
    return collapse_of(moments, weight=weight, nc4=wrong)


def collapse_of(moments: ClassMoments, *, weight: Tensor | None = None, nc4: float | None = None) -> Collapse:
    """The metrics from pooled moments; ``nc4`` needs the features once more (see `disagreements`)."""
    here = moments.present
    C = int(here.sum())
    if C < 2:
        raise InputError(f"expected at least two classes in the data, got {C}; collapse compares classes")
    means = moments.means[here]
    M = means - means.mean(0)
    _, sizes, directions = torch.linalg.svd(M, full_matrices=False)
    kept = (torch.arange(len(sizes), device=sizes.device) < C - 1) & (sizes > 1e-10 * sizes[0])
    within = torch.einsum("kd,de,ke->k", directions[kept], moments.scatter, directions[kept]) / moments.counts.sum()
    rank = int(kept.sum())
    if rank == 0:
        raise InputError("expected class means that differ, got equal ones; are the features constant?")
    equinorm, equiangular, spread = _simplex_distance(M)
    if weight is not None and weight.shape != moments.means.shape:
        raise InputError(
            f"expected a classifier of shape {tuple(moments.means.shape)}, got {tuple(weight.shape)}; pass the layer's weight"
        )
    W = None if weight is None else weight.detach().to(M)[here]
    of_weight = (None, None, None) if W is None else _simplex_distance(W)
    nc3 = None if W is None else float((W / W.norm() - M / M.norm()).norm())
    return Collapse(
        float((within / sizes[kept].square()).sum()),
        equinorm,
        equiangular,
        of_weight[0],
        of_weight[1],
        nc3,
        nc4,
        C,
        rank,
        _note(moments, C, rank),
        spread,
        of_weight[2],
    )


def disagreements(moments: ClassMoments, features: Tensor, weight: Tensor, bias: Tensor | None = None) -> int:
    """How many samples the classifier puts elsewhere than the nearest class mean."""
    real_values(features=features, weight=weight)
    finite_values(features=features, weight=weight)  # NaN is the largest of all logits
    h, W = _rows(features), weight.detach().to(moments.means)
    logits = h @ W.T + (0.0 if bias is None else bias.detach().to(W))
    distance = torch.cdist(h, moments.means, compute_mode="donot_use_mm_for_euclid_dist")
    distance[:, ~moments.present] = torch.inf
    return int((logits.argmax(1) != distance.argmin(1)).sum())


@torch.no_grad()
def layer_collapse(
    run: Callable[[Any], Any], batches: Callable[[], Iterable[tuple[Any, Tensor]]], layer: nn.Module, *, classes: int
) -> Collapse:
    """NC1 to NC4 of what a layer is given, streamed: two passes, one batch in memory at a time.

    ``run(batch)`` calls the model; ``batches()`` yields each batch with its labels, the same ones twice. Of a Linear layer
    with one row a class its weight is the classifier; of another layer only NC1 and NC2 are known.
    """
    weight = getattr(layer, "weight", None)
    reads = isinstance(layer, nn.Linear) and isinstance(weight, Tensor) and len(weight) == classes
    moments: ClassMoments | None = None
    for features, labels in _inputs(run, batches(), layer):
        part = ClassMoments.of(features, labels, classes=classes)
        moments = part if moments is None else moments + part
    if moments is None:
        raise InputError("expected batches that reach the layer, got none; is the data empty or the layer unused?")
    if not reads:
        return collapse_of(moments)
    assert isinstance(weight, Tensor) and isinstance(layer, nn.Linear)
    wrong = sum(disagreements(moments, h, weight, layer.bias) for h, _ in _inputs(run, batches(), layer))
    return collapse_of(moments, weight=weight, nc4=wrong / float(moments.counts.sum()))


def _inputs(
    run: Callable[[Any], Any], batches: Iterable[tuple[Any, Tensor]], layer: nn.Module
) -> Iterator[tuple[Tensor, Tensor]]:
    seen: list[Tensor] = []
    with layer.register_forward_pre_hook(lambda module, args: seen.append(args[0].detach())):
        for batch, labels in batches:
            seen.clear()
            run(batch)
            if seen:
                yield seen[-1], labels


def _rows(features: Tensor) -> Tensor:
    return features.detach().double().reshape(len(features), -1)


def _simplex_distance(rows: Tensor) -> tuple[float, float, float]:
    """The spread of the norms over their mean, the mean distance of the cosines from -1/(C-1), and their spread."""
    C, norms = len(rows), rows.norm(dim=1)
    unit = rows / norms.clamp_min(1e-300)[:, None]
    cosines = (unit @ unit.T)[~torch.eye(C, dtype=torch.bool, device=rows.device)]
    apart = float((cosines + 1 / (C - 1)).abs().mean())
    return float(norms.std(correction=0) / norms.mean()), apart, float(cosines.std(correction=0))


def _note(moments: ClassMoments, C: int, rank: int) -> str:
    counts = moments.counts[moments.present]
    said = []
    if len(moments.counts) > C:
        said.append(f"{len(moments.counts) - C} of {len(moments.counts)} classes do not occur and are left out")
    if counts.max() > 1.5 * counts.min():
        said.append(
            f"classes have {int(counts.min())} to {int(counts.max())} samples: means count alike, scatter by sample"
        )
    single = torch.nonzero(moments.counts == 1).flatten().tolist()
    if single:
        names = ", ".join(str(c) for c in single[:8]) + (", ..." if len(single) > 8 else "")
        who = f"class {names} has" if len(single) == 1 else f"{len(single)} classes ({names}) have"
        said.append(f"{who} one sample, which shows no scatter: NC1 is too low by their share")
    if rank < C - 1:
        said.append(f"the class means span {rank} dimensions, not {C - 1}: some coincide or depend on each other")
    if C == 2:
        said.append("with two classes NC2 holds by construction")
    return "; ".join(said)
