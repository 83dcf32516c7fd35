"""A function with a known Fourier transform as a network: groups of ever rougher units, each fitted to what is left."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from theodolite.construct.capacity._memorize_layers import linear
from theodolite.construct.capacity.smooth_layers import SReLU
from theodolite.core.checks import InputError
from theodolite.theory.capacity import (
    RadialFunction,
    ridge_directions,
    smoothed_relu,
    smoothed_relu_slope,
    smoothing_density,
)


@dataclass(frozen=True)
class Units:
    """One group for each of several profiles: $\\sum_ic_i\\,\\mathrm{SReLU}_k(t-T_i)$, the smoothing k boxes wide."""

    threshold: Tensor  # (profiles, units)
    output: Tensor  # (profiles, units)
    order: int
    box: float

    @property
    def width(self) -> float:
        """Within which of its kink a unit is smooth."""
        return max(self.order, 1) * self.box

    def values(self, t: Tensor, *, derivative: bool = False) -> Tensor:
        """The sum at each t, or its slope; one row for each profile."""
        function = smoothed_relu_slope if derivative else smoothed_relu
        at = t - self.threshold[..., None]  # (profiles, units, points)
        return torch.einsum("pu,put->pt", self.output, function(at, self.order, smoothing_width=self.width))


def profile_units(
    function: RadialFunction, *, groups: int, units: int, box: float, profiles: int, generator: torch.Generator
) -> tuple[list[Units], Tensor]:
    r"""Groups SReLU of order a-1, ..., 1, 0 for the profile g on $[-1,1]$, and value and slope at -1 of what is affine.

    Group m draws kinks T uniformly on $\pm(1+(a-m)h)$ and weighs them with the density of what is left,
    $$\rho_m=g''\star\hat B_{a-m}^{-1}-\sum_{l<m}\frac1N\sum_ic_i^lB_{m-l}(T-T_i^l),$$
    a function since all orders share the box h: a B-spline of order a-l divided by one of order a-m is one of order m-l.
    Its mean is nothing and its variance $\propto N^{-(m-1)}$, so that the mean squared error after a groups is exactly
    $\propto N^{-a}$. Independent draws, ``profiles`` of them, are made at once.

    Source: bresler2020, Theorem 2. Differs from the source: kinks are uniform and the box common, which makes the
    remainder's density explicit; what is affine on $[-1,1]$ is kept apart.
    """
    made: list[Units] = []
    for order in range(groups - 1, -1, -1):
        half = 1 + order * box
        uniform = torch.rand(profiles, units, generator=generator, dtype=torch.float64, device=generator.device)
        kinks = half * (2 * uniform - 1)
        density = function.profile(kinks, derivative=2, order=order, box=box)
        for earlier in made:
            rank = earlier.order - order
            bumps = smoothing_density(kinks[..., None] - earlier.threshold[:, None], rank, smoothing_width=rank * box)
            density = density - torch.einsum("pnu,pu->pn", bumps, earlier.output)
        made.append(Units(kinks, density * (2 * half / units), order, box))
    edge = torch.tensor([-1.0], dtype=torch.float64, device=made[0].threshold.device)
    value = function.profile(edge) - sum(group.values(edge)[:, 0] for group in made[:-1])
    slope = function.profile(edge, derivative=1) - sum(group.values(edge, derivative=True)[:, 0] for group in made[:-1])
    return made, torch.stack([value.expand(profiles), slope.expand(profiles)], 1)


class RidgeNetwork(nn.Module):
    """An affine map plus groups of smoothed ReLU units, one hidden layer in all."""

    def __init__(self, directions: Tensor, groups: Sequence[Units], affine: Tensor) -> None:
        super().__init__()
        share = 1 / len(directions)
        self.hidden, self.activations, self.readouts = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for group in groups:
            count = group.threshold.numel()
            weight = directions.repeat_interleave(group.threshold.shape[1], 0)
            self.hidden.append(linear(weight, -group.threshold.reshape(-1)))
            self.activations.append(SReLU(group.order, smoothing_width=group.width))
            self.readouts.append(linear(share * group.output.reshape(1, count), None))
        slope = share * affine[:, 1] @ directions
        self.affine = linear(slope[None], share * (affine[:, 0] + affine[:, 1]).sum()[None])

    def forward(self, x: Tensor) -> Tensor:
        """The value at each row of x."""
        total: Tensor = self.affine(x)
        for hidden, activation, readout in zip(self.hidden, self.activations, self.readouts, strict=True):
            total = total + readout(activation(hidden(x)))
        return total[..., 0]


@torch.no_grad()
def representation(
    function: RadialFunction,
    *,
    groups: int = 2,
    units: int = 1000,
    box: float = 0.5,
    generator: torch.Generator | None = None,
) -> RidgeNetwork:
    r"""A network with ``groups`` groups of about ``units`` units each whose squared error on the unit ball falls as $N^{-a}$.

    ``box`` h is the width of a smoothing box; the function's cutoff times it must stay below $2\pi$.

    >>> from theodolite.theory.capacity.ridge_integrals import gaussian
    >>> net = representation(gaussian(1), groups=3, units=400)
    >>> x = torch.linspace(-1, 1, 101, dtype=torch.float64)[:, None]
    >>> bool((net(x) - torch.exp(-x[:, 0] ** 2 / 2)).square().mean() < 1e-4)
    True
    """
    if groups < 1 or units < 1 or not box > 0:
        raise InputError(f"expected at least one group and unit and a positive box, got {groups}, {units}, {box}")
    generator = generator if generator is not None else torch.Generator().manual_seed(0)
    directions = ridge_directions(function, like=torch.zeros((), dtype=torch.float64, device=generator.device))
    each = max(1, round(units / len(directions)))
    made, affine = profile_units(
        function, groups=groups, units=each, box=box, profiles=len(directions), generator=generator
    )
    return RidgeNetwork(directions, made, affine)
