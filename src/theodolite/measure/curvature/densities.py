r"""The density of a symmetric matrix's eigenvalues by stochastic Lanczos quadrature, with its error."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from theodolite.core.checks import InputError
from theodolite.core.reading import Estimate
from theodolite.measure.curvature.lanczos import Eigenpairs, Symmetric

MEMORY = 1 << 29
"""Bytes that the bases of the probes that run together may take unless told otherwise."""


@dataclass(frozen=True)
class SpectralDensity:
    r"""Raw quadrature: for each probe ``nodes`` and ``weights`` (probes, steps), the weights of a probe sum to 1.

    The mean of f over eigenvalues is $\frac{1}{P}\sum f(\lambda_i)\approx\mathrm{mean}_k\sum_jw_{kj}f(x_{kj})$. Its error
    has two parts: the spread between probes (not less than that of a random direction, variance
    $2(\overline{f^2}-\bar f^2)/P$ a probe: that is known, so that few probes need no widening by Student's t), and what the
    last quarter of the Lanczos steps still changed in each probe (``coarse_nodes``, ``coarse_weights``). The first ``known``
    nodes are exact.
    """

    size: int
    nodes: Tensor
    weights: Tensor
    coarse_nodes: Tensor = field(repr=False)
    coarse_weights: Tensor = field(repr=False)
    known: int = 0

    def mean(self, function: Callable[[Tensor], Tensor]) -> Estimate:
        """The mean of a function over all eigenvalues."""
        draws = (self.weights * function(self.nodes)).sum(1)
        coarse = (self.coarse_weights * function(self.coarse_nodes)).sum(1)
        spread = float(draws.std()) / math.sqrt(len(draws))
        share = self.weights[:, self.known :]
        values = function(self.nodes[:, self.known :])
        first, second = (float((share * values**power).sum(1).mean() / share.sum(1).mean()) for power in (1, 2))
        second += float(values.square().max()) / self.size  # probes may have met a lone eigenvalue but faintly
        random = math.sqrt(2 * max(0.0, second - first**2) / (self.size * len(draws)))
        return Estimate(float(draws.mean()), math.hypot(max(spread, random), float((draws - coarse).abs().mean())))

    def density(self, at: Tensor, *, bump_width: float) -> tuple[Tensor, Tensor]:
        """The density smoothed by a Gaussian of standard deviation ``bump_width``, and its standard error, at each place."""
        found = [self.mean(lambda x, c=center: _gauss(x - c, bump_width)) for center in at.tolist()]  # type: ignore[misc]
        pairs = torch.tensor([(estimate.value, estimate.stderr) for estimate in found], dtype=torch.float64)
        return pairs[:, 0], pairs[:, 1]

    def mass_below(self, edge: float) -> Estimate:
        """The share of eigenvalues below an edge."""
        return self.mean(lambda x: (x < edge).double())

    @property
    def trace(self) -> Estimate:
        """The sum of all eigenvalues."""
        mean = self.mean(lambda x: x)
        return Estimate(self.size * mean.value, self.size * mean.stderr)


def spectral_density(
    operator: Symmetric,
    *,
    probes: int = 8,
    steps: int = 60,
    known: Eigenpairs | None = None,
    generator: torch.Generator | None = None,
    memory: int = MEMORY,
) -> SpectralDensity:
    r"""Nodes and weights from ``steps`` of Lanczos with full reorthogonalization from each of ``probes`` random vectors.

    Exact, for a probe, on polynomials of degree 2 steps - 1. Eigenpairs that are ``known``, outliers say, count with their
    exact weight 1/P, and the probes see the rest alone. Source: ubaru2017; ghorbani2019.

    >>> class Diagonal:
    ...     size, like = 3, torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    ...     def __call__(self, v): return v * self.like
    >>> found = spectral_density(Diagonal(), probes=2)
    >>> [round(x, 6) for x in found.nodes[0].tolist()]
    [1.0, 2.0, 4.0]
    """
    if probes < 2:
        raise InputError(f"expected at least two probes to know an error, got {probes}")
    source = generator or torch.Generator().manual_seed(0)
    n, like = operator.size, operator.like
    outside = like.new_zeros(0, n) if known is None else known.vectors.to(like)
    steps = min(steps, n - len(outside))
    if steps < 1:
        raise InputError(
            f"expected fewer known eigenpairs than the {n} rows, got {len(outside)}; nothing is left to probe"
        )
    starts = torch.randn(probes, n, generator=source, dtype=torch.float64)
    together = max(1, memory // max(1, steps * n * like.element_size()))
    T = torch.cat([_tridiagonal(operator, part.to(like), steps, outside) for part in torch.split(starts, together)])
    shorter = max(1, 3 * steps // 4)
    exact = torch.tensor([] if known is None else known.values, dtype=torch.float64).expand(probes, -1)
    return SpectralDensity(
        n, *_quadrature(T, exact, n), *_quadrature(T[:, :shorter, :shorter], exact, n), exact.shape[1]
    )


def _tridiagonal(operator: Symmetric, starts: Tensor, steps: int, outside: Tensor) -> Tensor:
    """The projected matrices (probes, steps, steps) of Krylov spaces that grow side by side, orthogonal to ``outside``."""
    probes, n = starts.shape
    basis = starts.new_zeros(steps, probes, n)
    T = torch.zeros(probes, steps, steps, dtype=torch.float64)
    vectors = starts - (starts @ outside.T) @ outside
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    for step in range(steps):
        basis[step] = vectors
        images = operator(vectors)
        for _ in range(2):
            images = images - (images @ outside.T) @ outside
            V = basis[: step + 1]
            inside = torch.einsum("spn,pn->sp", V, images)
            images = images - torch.einsum("sp,spn->pn", inside, V)
            T[:, step, step] += inside[step].double().cpu()
        if step + 1 < steps:
            beta = images.norm(dim=1, keepdim=True)
            alive = beta > 10 * torch.finfo(beta.dtype).eps * T.abs().amax((1, 2)).to(beta)[:, None]
            vectors = torch.where(
                alive, images / beta.clamp_min(torch.finfo(beta.dtype).tiny), torch.zeros_like(images)
            )
            T[:, step, step + 1] = T[:, step + 1, step] = torch.where(alive, beta, 0 * beta)[:, 0].double().cpu()
    return T


def _quadrature(T: Tensor, exact: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights, the values known exactly in front."""
    values, vectors = torch.linalg.eigh(T)
    share = exact.shape[1] / size
    weights = [torch.full_like(exact, 1 / size), (1 - share) * vectors[:, 0].square()]
    return torch.cat([exact, values], 1), torch.cat(weights, 1)


def _gauss(x: Tensor, width: float) -> Tensor:
    return torch.exp(-0.5 * (x / width).square()) / (width * math.sqrt(2 * math.pi))
