"""Many random networks of finite width at once: by their weights, or layer by layer without any."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from theodolite.core.checks import InputError, at_least

_Elementwise = Callable[[Tensor], Tensor]
Entries = Literal["gauss", "uniform", "sign", "cauchy"]
MOST = 2_000_000  # numbers drawn at once


def elementwise(name: str) -> _Elementwise:
    """The torch function of this name, from torch.nn.functional or torch; the identity under its own name.

    >>> elementwise("identity")(torch.tensor(2.0)).item()
    2.0
    """
    if name == "identity":
        return torch.clone
    found = getattr(F, name, None) or getattr(torch, name, None)
    if not callable(found):
        raise InputError(f"expected the name of a torch function, got {name!r}")
    return found


@dataclass(frozen=True)
class Ensemble:
    r"""Random networks with hidden layers of the ``widths``, weights of variance $C_w/$fan-in, biases of variance $C_b$.

    The rest are ways to leave the theory: ``entries`` other than Gaussian, a ``mean`` of the weights (in units of their
    standard deviation), each unit of a layer copied ``copies`` times, or a ``with_skips`` path around every layer.
    """

    activation: _Elementwise
    widths: tuple[int, ...]
    _: KW_ONLY
    weight_variance: float
    bias_variance: float = 0.0
    entries: Entries = "gauss"
    mean: float = 0.0
    copies: int = 1
    with_skips: bool = False


def preactivations(
    ensemble: Ensemble, inputs: Tensor, *, nets: int, outputs: int = 1, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """The preactivations of every layer of ``nets`` networks, drawn with their weights: each (nets, batch, width).

    The brute force beside `conditional_chain`: a product with a matrix of weights for each network and layer.
    """
    at_least(1, nets=nets)
    at_least(0, outputs=outputs)
    signal = inputs.expand(nets, *inputs.shape)  # (nets, batch, fan_in)
    found: list[Tensor] = []
    for width in (*ensemble.widths, outputs):
        fan_in = signal.shape[-1]
        size = (nets, fan_in, max(1, width // ensemble.copies))
        weights = random_entries(ensemble.entries, size, like=inputs, generator=generator).add_(ensemble.mean)
        weights = weights.mul_(math.sqrt(ensemble.weight_variance / fan_in))
        bias = torch.randn(nets, 1, size[-1], generator=generator, dtype=inputs.dtype)
        z = torch.baddbmm(bias.mul_(math.sqrt(ensemble.bias_variance)), signal, weights)
        z = z.repeat(1, 1, ensemble.copies) if ensemble.copies > 1 else z
        if ensemble.with_skips and found and found[-1].shape == z.shape:
            z = z + found[-1]
        found.append(z)
        signal = ensemble.activation(z.clone())
    return tuple(found)


def _drawn_layers(
    ensemble: Ensemble, signal: Tensor, *, generator: torch.Generator
) -> tuple[list[Tensor], list[Tensor]]:
    """What each layer of networks with one output is fed and makes of it, by their weights, for derivatives: (nets, B, width)."""
    fed, found = [], []
    for width in (*ensemble.widths, 1):
        fan_in, copies = signal.shape[-1], ensemble.copies if width > 1 else 1
        size = (len(signal), fan_in, max(1, width // copies))
        weights = random_entries(ensemble.entries, size, like=signal, generator=generator) + ensemble.mean
        bias = torch.randn(len(signal), 1, size[-1], generator=generator, dtype=signal.dtype)
        z = signal @ (weights * math.sqrt(ensemble.weight_variance / fan_in)) + bias * math.sqrt(ensemble.bias_variance)
        fed.append(signal)
        found.append(z.repeat(1, 1, copies) if copies > 1 else z)
        signal = ensemble.activation(found[-1].clone())
    return fed, found


def random_entries(entries: Entries, shape: tuple[int, ...], *, like: Tensor, generator: torch.Generator) -> Tensor:
    """Independent entries of mean 0 and variance 1; Cauchy's have neither."""
    if entries == "gauss":
        return torch.randn(shape, generator=generator, dtype=like.dtype)
    uniform = torch.rand(shape, generator=generator, dtype=like.dtype)
    if entries == "cauchy":
        return torch.tan(math.pi * (uniform - 0.5))
    uniform = uniform.mul_(2).sub_(1)
    return uniform.mul_(math.sqrt(3.0)) if entries == "uniform" else uniform.sign_()


def conditional_chain(ensemble: Ensemble, covariance: Tensor, *, nets: int, generator: torch.Generator) -> Tensor:
    r"""$\hat K^{(1)},\dots,\hat K^{(L+1)}$ of ``nets`` networks for B inputs, without drawing weights.

    Given a layer, the preactivations behind it are exactly Gaussian over the random weights, independent from unit to
    unit, with covariance $\hat K_{\alpha\beta}=C_b+(C_w/n)\sum_j\sigma(z_{j\alpha})\sigma(z_{j\beta})$. So a network
    restricted to B inputs is a Markov chain of B x B matrices, n times cheaper than its weights. ``covariance`` is
    $K^{(1)}=C_b+C_wx_\alpha\cdot x_\beta/n_0$, (B, B). The answer is (nets, L + 1, B, B). Dead layers stay dead.

    >>> from torch import Generator, relu
    >>> wide = Ensemble(activation=relu, widths=(20_000,), weight_variance=2.0)
    >>> chain = conditional_chain(wide, torch.eye(1), nets=4, generator=Generator().manual_seed(0))
    >>> round(chain[:, 1].mean().item(), 1)
    1.0
    """
    return conditional_chains([ensemble], [covariance], nets=nets, generator=generator)[0]


def conditional_chains(
    ensembles: Sequence[Ensemble], covariances: Sequence[Tensor], *, nets: int, generator: torch.Generator
) -> list[Tensor]:
    """`conditional_chain` of several ensembles of the same widths, each with a covariance: the same noise for all."""
    at_least(1, nets=nets)
    if any(ensemble.entries != "gauss" or ensemble.mean for ensemble in ensembles):
        raise InputError(
            "expected Gaussian weights of mean 0, got others; draw the weights with preactivations instead"
        )
    if len({(e.widths, e.copies) for e in ensembles}) > 1 or len({(c.shape, c.dtype) for c in covariances}) > 1:
        raise InputError(
            "expected ensembles of the same widths and covariances of one shape, got several; ask one by one"
        )
    if not ensembles:
        return []
    size = max(1, MOST // (max(ensembles[0].widths, default=1) * len(covariances[0])))
    parts = [min(size, nets - start) for start in range(0, nets, size)]
    found = [_chains(ensembles, covariances, part, generator) for part in parts]
    return [torch.cat(chains) for chains in zip(*found, strict=True)]


def _chains(
    ensembles: Sequence[Ensemble], firsts: Sequence[Tensor], nets: int, generator: torch.Generator
) -> list[Tensor]:
    found = [[first.expand(nets, *first.shape)] for first in firsts]
    last: list[Tensor | None] = [None] * len(ensembles)
    for width in ensembles[0].widths:
        units = max(1, width // ensembles[0].copies)  # copies of a unit change no mean, only how many are independent
        # Single precision is five times as fast to draw, and no error of noise
        noise = torch.randn(nets, len(firsts[0]), units, generator=generator).to(firsts[0].dtype)
        for place, ensemble in enumerate(ensembles):
            z = safe_cholesky(found[place][-1]) @ noise
            before = last[place]
            if ensemble.with_skips and before is not None and before.shape == z.shape:
                z = z + before
            last[place] = z if ensemble.with_skips else None
            signal = ensemble.activation(z.clone() if ensemble.with_skips else z)
            gram = signal @ signal.mT / units
            found[place].append(ensemble.bias_variance + ensemble.weight_variance * gram)
    return [torch.stack(layers, 1) for layers in found]


def safe_cholesky(covariance: Tensor) -> Tensor:
    """The lower triangular root of covariance matrices (..., B, B), with zeros where a variance is used up.

    Unlike the library's it takes singular ones: equal inputs, dead layers.

    >>> safe_cholesky(torch.ones(2, 2)).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    _check_square(covariance)
    root = torch.zeros_like(covariance)
    for j in range(covariance.shape[-1]):
        row = root[..., j, :j]
        pivot = (covariance[..., j, j] - row.square().sum(-1)).clamp(min=0)
        small = pivot <= 1e-12 * covariance[..., j, j]
        inverse = torch.where(small, 0.0, pivot.where(~small, torch.ones_like(pivot)).rsqrt())
        root[..., j, j] = torch.where(small, 0.0, pivot.sqrt())
        rest = covariance[..., j + 1 :, j] - (root[..., j + 1 :, :j] @ row.unsqueeze(-1)).squeeze(-1)
        root[..., j + 1 :, j] = rest * inverse.unsqueeze(-1)
    return root


def _check_square(covariance: Tensor) -> None:
    if covariance.ndim < 2 or covariance.shape[-1] != covariance.shape[-2]:
        raise InputError(
            f"expected covariance matrices (..., B, B), got shape {tuple(covariance.shape)}; pass square ones"
        )


def correlations(covariance: Tensor) -> Tensor:
    """The correlation of the first two inputs in covariance matrices (..., B, B); NaN where one has no variance."""
    _check_square(covariance)
    return covariance[..., 0, 1] / (covariance[..., 0, 0] * covariance[..., 1, 1]).sqrt()


def perturbation_growth(
    activation: _Elementwise,
    variance: float,
    *,
    kind: str,
    perturbation: float = 1e-3,
    units: int,
    generator: torch.Generator,
) -> Tensor:
    r"""By how much a small change of a Gaussian signal grows through a nonlinearity: one draw for each unit.

    With ``kind="parallel"`` the signal is scaled: the change of $\sigma^2$ over that of the variance. With
    ``"perpendicular"`` a second, slightly different signal of the same variance is taken: $(\sigma(u)-\sigma(v))^2$ over
    $E(u-v)^2$. With ``"mixed"`` the variance of one of two equal signals grows: the change of $\sigma(u)\sigma(v)$.
    Times $C_w$ these are the entries of the derivative of the covariance map. ``perturbation`` is relative to the variance.
    """
    g = torch.randn(3, units, generator=generator, dtype=torch.float64)
    change = perturbation * variance
    if kind == "parallel":
        up, down = (activation(g[0] * math.sqrt(variance + sign * change)) for sign in (0.5, -0.5))
        return (up.square() - down.square()) / change
    if kind == "perpendicular":
        common = g[0] * math.sqrt(variance - 0.5 * change)
        ends = [activation(common + g[i] * math.sqrt(0.5 * change)) for i in (1, 2)]
        return (ends[0] - ends[1]).square() / change
    if kind != "mixed":
        raise InputError(f"expected parallel, perpendicular or mixed, got {kind!r}")
    base = g[0] * math.sqrt(variance)
    sides = [activation(base + sign * g[1] * math.sqrt(change)) for sign in (1, -1)]
    middle = activation(base.clone())
    return (0.5 * (sides[0] + sides[1]) - middle) * middle / change
