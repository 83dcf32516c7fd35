"""A two-layer ReLU network, written down group by group, each group correcting what those before it left of the labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from theodolite.construct.capacity._memorize_layers import linear
from theodolite.construct.capacity.corrective_groups import UnitGroup, least_squares_group, line_search, literal_group
from theodolite.core.checks import InputError, one_of
from theodolite.theory.capacity import separation

_Method = Literal["auto", "least-squares", "block", "literal", "line-search"]
ONE_SOLVE = 3000
"""Beyond so many points the one least-squares problem, n by 1.1 n, is cut into blocks."""
PAIRS = 20_000
"""Beyond so many points their separation, a matter of all pairs, is not looked at."""


@dataclass(frozen=True)
class CorrectiveReport:
    """What was built, and how well it does; squared errors are shares of the labels' mean square."""

    method: str
    samples: int
    units: int
    groups: int
    contraction: tuple[float, ...]
    """What each group left of the squared residual: below 1 it corrected, above 1 it did harm."""
    mse: float
    """Mean squared error over points and outputs, in the labels' own scale."""
    relative_mse: float
    theta: float | None
    """Smallest distance between two points on the sphere; None where it was not looked at."""
    diverged: bool

    def __str__(self) -> str:
        apart = "" if self.theta is None or math.isinf(self.theta) else f", points {self.theta:.3g} apart on the sphere"
        end = "; it diverged: widen the groups, or take least squares" if self.diverged else ""
        return (
            f"{self.method}: {self.units} ReLU units in {self.groups} group{'s' * (self.groups > 1)} for {self.samples} "
            f"point{'s' * (self.samples > 1)}{apart}; relative squared error {self.relative_mse:.2g}{end}"
        )


class CorrectiveNetwork(nn.Module):
    r"""$b+\sum_ia_i(w_i\cdot z-T_i)_+$ at $z=(u,1)/|(u,1)|$, u the standardized input, or at $z=x/|x|$ without ``lift``.

    The lift is one to one, so that any distinct points become distinct points of the sphere. Inputs are cast to the
    weights' precision.
    """

    center: Tensor
    scale: Tensor

    def __init__(self, center: Tensor, scale: Tensor, *, lift: bool, groups: Sequence[UnitGroup], mean: Tensor) -> None:
        super().__init__()
        self.register_buffer("center", center)
        self.register_buffer("scale", scale)
        self.lift = lift
        weight = torch.cat([group.weight for group in groups])
        output = torch.cat([group.output for group in groups], 1)
        self.hidden = linear(weight, -torch.cat([group.threshold for group in groups]))
        self.readout = linear(output, mean)
        self.flat = False
        self.report: CorrectiveReport | None = None

    def forward(self, x: Tensor) -> Tensor:
        """The outputs, one row for each point; one number where the labels were a vector."""
        z = _on_sphere(x.to(self.center.dtype), self.center, self.scale, lift=self.lift)
        outputs: Tensor = self.readout(torch.relu(self.hidden(z)))
        return outputs[..., 0] if self.flat else outputs


def _on_sphere(x: Tensor, center: Tensor, scale: Tensor, *, lift: bool) -> Tensor:
    """The points of the unit sphere at which the network's units look."""
    if lift:
        u = (x - center) / scale
        x = torch.cat([u, torch.ones_like(u[..., :1])], -1)
    return x / x.norm(dim=-1, keepdim=True)


@torch.no_grad()
def corrective(
    x: Any,
    y: Any,
    *,
    method: _Method = "auto",
    groups: int | None = None,
    group_width: int | None = None,
    tolerance: float = 1e-12,
    generator: torch.Generator | None = None,
) -> CorrectiveNetwork:
    r"""A two-layer ReLU network that fits the labels, written down and not trained; ``.report`` says how well.

    ``x`` holds points in rows, ``y`` a label or several for each (one column for each class for a classifier). Points
    already of unit length are taken as they are; others are standardized and lifted to the sphere, a map that the network
    carries. The result is in float64, on the device of ``x``.

    - ``least-squares``: one group of 1.1 n units, exact for distinct points. The default up to 3,000 points.
    - ``block``: groups of fewer units than points, each fitted by least squares to what is left, until ``tolerance`` (a
      share of the labels' mean square), or ``groups``, or 20 n units are reached. The default beyond.
    - ``literal``: the theorem's groups, which contract from $N_0\gtrsim n\log^4n/\theta^4$ on and diverge below: to study.
    - ``line-search``: the same with the best step along each group, so that no group does harm.

    Source: bresler2020, Theorem 1. Differs from the source: least squares in place of its weights, which need a thousand
    times more units; kinks placed between points; a mean taken off the labels first (not for ``literal``).

    >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    >>> net = corrective(x, torch.tensor([1.0, -1.0, 1.0, 5.0]))
    >>> net(x).round(decimals=6).tolist()
    [1.0, -1.0, 1.0, 5.0]
    """
    _check_options(method, groups, group_width)
    points, labels, flat = _checked(x, y)
    generator = generator if generator is not None else torch.Generator().manual_seed(0)
    scheme = ("least-squares" if len(points) <= ONE_SOLVE else "block") if method == "auto" else method
    lift = not bool(((points.norm(dim=1) - 1).abs() < 1e-6).all()) or points.shape[1] < 2
    center, scale = points.mean(0), points.std(0, correction=0).square().mean().sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    z = _on_sphere(points, center, scale, lift=lift)
    theta = separation(z) if len(z) <= PAIRS or scheme in ("literal", "line-search") else None
    if theta == 0:
        raise InputError("expected points that differ in double precision, got two that do not; rescale or merge them")
    plan = _Plan(scheme, groups, group_width, tolerance, theta, generator)
    mean = torch.zeros_like(labels[0]) if scheme in ("literal", "line-search") else labels.mean(0)
    made, contraction = plan.made(z, labels - mean)
    network = CorrectiveNetwork(center, scale, lift=lift, groups=made, mean=mean)
    network.flat = flat
    rest = labels - network(points).reshape(labels.shape)
    mse, energy = float(rest.square().mean()), float(labels.square().mean())
    network.report = CorrectiveReport(
        method=scheme,
        samples=len(z),
        units=network.hidden.out_features,
        groups=len(made),
        contraction=tuple(contraction),
        mse=mse,
        relative_mse=mse / energy if energy > 0 else mse,
        theta=theta,
        diverged=mse > energy > 0,
    )
    return network


@dataclass(frozen=True)
class _Plan:
    """Which groups to make, of what width, and when to stop."""

    scheme: str
    groups: int | None
    group_width: int | None
    tolerance: float
    theta: float | None
    generator: torch.Generator

    def made(self, z: Tensor, labels: Tensor) -> tuple[list[UnitGroup], list[float]]:
        """The groups, and what each left of the squared residual."""
        count, literal = len(z), self.scheme in ("literal", "line-search")
        full = max(math.ceil(1.1 * count), count + 4)
        default = full if self.scheme == "least-squares" else max(1, min(1000, count // 4))
        units = self.group_width or (count if literal else default)
        most = self.groups or {"block": math.ceil(20 * count / units), "least-squares": 1}.get(self.scheme, 4)
        rest, energy = labels.clone(), float(labels.square().sum())
        made: list[UnitGroup] = []
        contraction: list[float] = []
        while len(made) < most:
            before = float(rest.square().sum())
            if made and before <= self.tolerance * energy:
                break
            group = self._group(z, rest, units)
            step = group.outputs(z)
            if self.scheme == "line-search":
                gamma = line_search(rest, step)
                group, step = group.scaled(gamma), step * gamma
            rest = rest - step
            made.append(group)
            contraction.append(float(rest.square().sum()) / before if before > 0 else 0.0)
            if not math.isfinite(contraction[-1]):
                break
        return made, contraction

    def _group(self, z: Tensor, rest: Tensor, units: int) -> UnitGroup:
        if self.scheme in ("least-squares", "block"):
            return least_squares_group(z, rest, units=units, generator=self.generator)
        theta = min(self.theta if self.theta is not None else 2.0, 2.0)
        return literal_group(z, rest, units=units, theta=theta, generator=self.generator)


def _check_options(method: str, groups: int | None, group_width: int | None) -> None:
    one_of(get_args(_Method), method=method)
    for name, value in (("groups", groups), ("group_width", group_width)):
        if value is not None and (type(value) is not int or value < 1):
            raise InputError(
                f"expected {name} to be a positive whole number, got {value!r}; leave it out for the default"
            )


def _checked(x: Any, y: Any) -> tuple[Tensor, Tensor, bool]:
    """Points and labels in float64 on one device, and whether the labels were a vector; bad rows are named."""
    points = torch.as_tensor(x)
    points = points.detach().to(torch.float64)
    labels = torch.as_tensor(y).detach().to(points.device, torch.float64)
    if points.ndim != 2 or not points.numel():
        raise InputError(f"expected points in rows, got a tensor of shape {tuple(points.shape)}; reshape to (n, d)")
    if labels.ndim not in (1, 2) or len(labels) != len(points) or not labels.numel():
        raise InputError(
            f"expected a label, or a row of them, for each of {len(points)} points, got shape {tuple(labels.shape)}"
        )
    flat = labels.ndim == 1
    labels = labels[:, None] if flat else labels
    finite = torch.isfinite(points).all(1) & torch.isfinite(labels).all(1)
    if not bool(finite.all()):
        raise InputError(f"expected finite points and labels, got others in rows {_rows(~finite)}; leave them out")
    _, index, counts = torch.unique(points, dim=0, return_inverse=True, return_counts=True)
    if int(counts.max()) > 1:
        twice = counts[index] > 1
        first = torch.full((len(counts),), len(points), device=points.device)
        first.scatter_reduce_(0, index, torch.arange(len(points), device=points.device), "amin")
        conflict = (labels != labels[first[index]]).any(1)
        if bool(conflict.any()):
            shared = torch.isin(index, index[conflict])
            raise InputError(
                f"expected one label for each point, got several for the same point in rows {_rows(shared)}; correct the labels"
            )
        keep = ~twice | (first[index] == torch.arange(len(points), device=points.device))
        points, labels = points[keep], labels[keep]
    return points, labels, flat


def _rows(mask: Tensor) -> str:
    rows = mask.nonzero()[:, 0].tolist()
    return ", ".join(map(str, rows[:8])) + (f" and {len(rows) - 8} more" if len(rows) > 8 else "")
