r"""The second-order Taylor model of any network at its weights, trained in its place; nothing of size P x P is ever formed."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import grad, vjp

from theodolite.core.checks import InputError
from theodolite.core.model_wrappers import copied_model
from theodolite.measure import Stateless, count, placed, plain_attention, stateless
from theodolite.measure.experiments import flowed
from theodolite.measure.functional import Inputs
from theodolite.measure.kernels import taylor_sum
from theodolite.theory.dynamics import OneDatum, TrainingPhase, run_outcome

Parameters = dict[str, Tensor]

LARGEST_KERNEL = 4096
"""Samples times outputs up to which the tangent kernel is formed."""

OVERFLOW = 1e30
"""A loss from which on a run is over."""


@dataclass(frozen=True)
class QuadraticRun:
    """Outputs (steps + 1, samples, outputs), losses and largest tangent-kernel eigenvalues, start first, and where it ended."""

    outputs: Tensor
    losses: tuple[float, ...]
    curvatures: tuple[float, ...]
    end: Parameters = field(repr=False)
    outcome: TrainingPhase


class Quadratic:
    r"""$z(\theta)=f_0+J\delta+\frac12\delta^\top F\delta$, $\delta=\theta-\theta_0$, about a model's weights, on some inputs.

    Losses are $\frac12\sum(z-y)^2$. ``order`` 1 is the linear model, 3 and more the higher Taylor models, 0 the network itself.
    """

    def __init__(self, model: nn.Module, x: Inputs, *, order: int = 2) -> None:
        own = copied_model(model).eval()  # a Taylor model is of the weights as they are now, whatever becomes of them
        self.net: Stateless = stateless(own)
        self.start: Parameters = {name: p.detach().clone() for name, p in self.net.parameters.items()}
        self.x = placed(x, next(iter(self.start.values())))
        self.order = order
        if order < 0 or order != int(order):
            raise InputError(f"expected an order that is a whole number of at least 0, got {order!r}")
        with torch.no_grad():
            outputs = self(self.start)
        if not bool(outputs.isfinite().all()):
            raise InputError(
                "expected finite outputs, got some that are not; the network or its inputs hold NaN or infinity"
            )

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(p.numel() for p in self.start.values())

    def __call__(self, parameters: Parameters, x: Inputs | None = None) -> Tensor:
        """Outputs (samples, outputs) at these parameters, on its own inputs or on others."""
        batch = self.x if x is None else placed(x, next(iter(self.start.values())))
        with plain_attention():
            if not self.order:
                return self.net(parameters, batch)
            change = {name: parameters[name] - value for name, value in self.start.items()}
            return taylor_sum(lambda p: self.net(p, batch), self.start, change, self.order)

    def pulled_back(self, parameters: Parameters, cotangent: Tensor) -> Parameters:
        r"""$\sum_\alpha c_\alpha(\Phi_\alpha+F_\alpha\delta)$: the gradient of the outputs' product with ``cotangent``."""
        moved, z = self._traced(parameters)
        found = torch.autograd.grad(z, list(moved.values()), cotangent.to(z))
        return dict(zip(moved, found, strict=True))

    def tangent_kernel(self, parameters: Parameters | None = None) -> Tensor:
        r"""$\Theta=JJ^\top$ of the Taylor model at these parameters, (samples x outputs) squared."""
        jacobian = self._jacobian(*self._traced(parameters or self.start))
        return jacobian @ jacobian.T

    def descended(self, y: Tensor, *, lr: float, steps: int, watch: bool = True) -> QuadraticRun:
        r"""Gradient descent on $\frac12\sum(z-y)^2$ from the start; ``watch`` takes the tangent kernel at every step.

        Without it the kernel is taken at the start and at the end alone. Stops where the outputs overflow.
        """
        point, outputs, losses, curvatures = dict(self.start), [], [], []
        goal = self._targets(y)
        for step in range(steps + 1):
            moved, z = self._traced(point)
            r = z.detach() - goal
            outputs.append(z.detach())
            losses.append(0.5 * float(r.double().square().sum()))
            over = not losses[-1] < OVERFLOW
            last = step == steps or over
            if watch or step == 0 or last:
                curvatures.append(float("inf") if over else _top(self._jacobian(moved, z)))
            if last:
                break
            slope = torch.autograd.grad(z, list(moved.values()), r)
            point = {name: p - lr * s for (name, p), s in zip(point.items(), slope, strict=True)}
        ends = curvatures if watch else [curvatures[0]] * (len(losses) - 1) + [curvatures[-1]]
        return QuadraticRun(
            torch.stack(outputs), tuple(losses), tuple(curvatures), point, run_outcome(losses, ends, lr=lr)
        )

    def _traced(self, parameters: Parameters) -> tuple[Parameters, Tensor]:
        moved = {name: parameters[name].detach().requires_grad_() for name in self.start}
        with torch.enable_grad():
            return moved, self(moved)

    def _jacobian(self, moved: Parameters, z: Tensor) -> Tensor:
        if z.numel() > LARGEST_KERNEL:
            raise InputError(
                f"expected at most {LARGEST_KERNEL} pairs of sample and output, got {z.numel()}; pass fewer samples"
            )
        ones = torch.eye(z.numel(), dtype=z.dtype, device=z.device).reshape(-1, *z.shape)
        rows = (torch.autograd.grad(z, list(moved.values()), one, retain_graph=True) for one in ones)
        return torch.stack([torch.cat([part.reshape(-1) for part in row]) for row in rows])

    def flowed(self, y: Tensor, *, time: float) -> Parameters:
        r"""Where gradient flow on $\frac12\sum(z-y)^2$ is after a time, integrated in double precision."""
        goal = self._targets(y)

        def slope(theta: Any) -> Any:
            point = self._parameters(torch.from_numpy(theta))
            moved, z = self._traced(point)
            found = torch.autograd.grad(z, list(moved.values()), z.detach() - goal)
            return torch.cat([part.reshape(-1) for part in found]).double().cpu().numpy()

        # explicit, for an implicit method would form the matrix of second derivatives; tolerance 1e-9 relative a step
        end = flowed(slope, _flat(self.start).double().cpu().numpy(), time=time, precision=100.0, method="DOP853")
        return self._parameters(torch.from_numpy(np.array(end)))

    def one_datum(self, *, steps: int = 32) -> OneDatum:
        r"""Of a single output on a single input: the few numbers that decide every run, by Lanczos from its gradient.

        Descent moves along $g,Fg,F^2g,\dots$ alone, so that k products with F (``steps``) give k eigenvalues and weights
        that follow k - 1 steps of descent exactly, and all of them where F has no more distinct eigenvalues on the gradient.
        """
        with torch.no_grad():
            z = self(self.start)
        if z.numel() != 1 or self.order != 2:
            raise InputError(
                f"expected one output on one input of a second-order model, got {z.numel()} outputs of order {self.order}"
            )
        gradient = _flat(self.pulled_back(self.start, torch.ones_like(z))).double()
        basis, diagonal, beside = [gradient / gradient.norm()], [], []
        scale = 0.0
        for _ in range(min(steps, len(gradient))):
            image = self._second_product(basis[-1])
            diagonal.append(float(image @ basis[-1]))
            for _ in range(2):  # twice is enough for orthogonality to rounding
                block = torch.stack(basis)
                image = image - block.T @ (block @ image)
            size = float(image.norm())
            scale = max(scale, abs(diagonal[-1]), size)
            if size <= 1e-10 * scale or scale == 0.0:
                break
            beside.append(size)
            basis.append(image / size)
        from scipy.linalg import eigh_tridiagonal

        values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside[: len(diagonal) - 1]))
        return OneDatum(values, float(gradient.norm()) * vectors[0], float(z))

    def _second_product(self, direction: Tensor) -> Tensor:
        """F times a direction, for a single output: the change of the gradient along it."""

        def total(p: Parameters) -> Tensor:
            return self.net(p, self.x).sum()

        with plain_attention():
            back: Any = vjp(grad(total), self.start)[1]
            (found,) = back(self._parameters(direction))
        return _flat(found).double()

    def _parameters(self, vector: Tensor) -> Parameters:
        found, place = {}, 0
        for name, p in self.start.items():
            found[name] = vector[place : place + p.numel()].reshape(p.shape).to(p)
            place += p.numel()
        return found

    def _targets(self, y: Tensor) -> Tensor:
        like = next(iter(self.start.values()))
        with torch.no_grad():
            shape = self(self.start).shape
        if y.numel() != shape.numel():
            raise InputError(
                f"expected targets of shape {tuple(shape)} for {count(self.x)} samples, got {tuple(y.shape)}"
            )
        return y.detach().to(like).reshape(shape)


def quadratic(model: nn.Module, x: Inputs, *, order: int = 2) -> Quadratic:
    r"""The Taylor model of second (or another) order of any network at its weights, on inputs x.

    Call it with parameters; `Quadratic.descended` and `Quadratic.flowed` train it, `Quadratic.one_datum` reduces it to a few
    numbers. Products by forward and reverse derivatives; the model is copied and left alone. Source: lewkowycz2020.

    >>> net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)).double()  # v u x: quadratic itself
    >>> taylor = quadratic(net, torch.tensor([[2.0]]))
    >>> moved = {name: p + 1 for name, p in taylor.start.items()}
    >>> u, v = (p.item() for p in net.parameters())
    >>> abs(taylor(moved).item() - 2 * (u + 1) * (v + 1)) < 1e-12
    True
    """
    return Quadratic(model, x, order=order)


def _flat(parameters: Parameters) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in parameters.values()])


def _top(jacobian: Tensor) -> float:
    kernel = (jacobian @ jacobian.T).double()
    return float(torch.linalg.eigvalsh(kernel)[-1]) if bool(kernel.isfinite().all()) else float("inf")
