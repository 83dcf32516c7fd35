r"""The empirical tangent kernel of any module, $\Theta_{ij}(x,x')=\sum_\mu\partial_\mu z_i(x)\,\partial_\mu z_j(x')$."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, as_tensor, at_least, has_values, not_negative, one_of, real_values
from theodolite.core.state import untouched
from theodolite.measure.functional import Inputs, Stateless, count, placed, plain_attention, rows, stateless
from theodolite.measure.kernels._contraction import Formed, LayerContraction, Outputs
from theodolite.measure.kernels._jacobians import LayerStructure, factors, jacobian_rows, structure_of

MEMORY = 1 << 30
"""Bytes that intermediate results may take unless told otherwise; the kernel itself comes on top."""

REFUSALS = (RuntimeError, NotImplementedError, ValueError, IndexError)
"""What is raised where a model does not vectorize over samples."""

_Method = Literal["layers", "jacobian"]


@dataclass(frozen=True)
class NtkPlan:
    """How a kernel is computed: by ``layers`` or by whole ``jacobian`` rows, in blocks of how many samples, and why.

    ``contracted`` names the parameters that enter by products alone, ``formed`` the others that count, ``frozen`` those
    that are left out.
    """

    method: _Method
    block: int
    outputs: int
    reason: str
    contracted: tuple[str, ...] = ()
    formed: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()


def empirical_ntk(
    model: nn.Module,
    x: Inputs,
    other: Inputs | None = None,
    *,
    outputs: Outputs = "trace",
    rates: Mapping[str, float] | None = None,
    frozen: bool = False,
    memory: int = MEMORY,
) -> Tensor:
    r"""$\Theta_{ij}(x,x')=\sum_\mu\eta_\mu\,\partial_\mu z_i(x)\,\partial_\mu z_j(x')$, with the model in evaluation mode.

    ``outputs="full"`` gives (n, m, C, C); ``"trace"`` the mean over outputs $i=j$, (n, m), which tends to the kernel of
    the infinitely wide network. An answer of several tensors counts by its logits or first tensor, all other axes
    flattened into C. ``x`` is a tensor, a tuple (positional) or a mapping (by keyword), samples first. ``rates`` maps
    names of parameters to $\eta_\mu$ (1 where not named; see `fan_in_rates`). Tied tensors count once, half precision is
    computed in float32, frozen parameters are left out unless ``frozen``. For products with weights (linear,
    convolution) the derivative is kept as factors; other parameters' derivatives are formed; samples are taken in
    blocks so that intermediate results fit into ``memory`` bytes. `ntk_plan` says what is done. Source: jacot2018.

    >>> x = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    >>> empirical_ntk(nn.Linear(2, 3), x).tolist()  # x.x' + 1
    [[6.0, 3.0], [3.0, 2.0]]
    """
    one_of(("trace", "full"), outputs=outputs)
    net = stateless(model, frozen=frozen)
    rates = _checked(rates or {}, model)
    x, y = _on(net, x), None if other is None else _on(net, other)
    with untouched(model), plain_attention():
        structure = structure_of(net, x)
        try:
            return LayerContraction(net, structure, outputs, rates, memory).kernel(x, y)
        except REFUSALS:
            if _refusal(net, structure, x) is None:
                raise
        return _by_rows(net, x, y, outputs=outputs, rates=rates)


def sketched_ntk(model: nn.Module, x: Inputs, *, draws: int = 4, seed: int = 0) -> Tensor:
    r"""The mean of the kernel over outputs, (n, n), from gradients of random signed sums of them.

    With signs $s$ the gradients $g_a=\nabla\sum_is_iz_i(x_a)$ have $E[g_a\cdot g_b]=\sum_i\Theta_{ii}(x_a,x_b)$. Costs
    ``draws`` gradients a sample and keeps n of them: for models whose derivatives by every output would not fit.

    >>> sketched_ntk(nn.Linear(2, 1), torch.tensor([[1.0, 2.0], [0.0, 1.0]]), draws=1).tolist()  # one output: exact
    [[6.0, 3.0], [3.0, 2.0]]
    """
    at_least(1, draws=draws)
    net = stateless(model)
    x, n = _on(net, x), count(x)
    own, generator = list(net.parameters.values()), torch.Generator().manual_seed(seed)
    total = torch.zeros(n, n, dtype=torch.float64, device=own[0].device)
    outputs = 1
    with untouched(model), plain_attention():
        for _ in range(draws):
            gradients, signs = [], None
            for index in range(n):
                z = net(net.parameters, rows(x, slice(index, index + 1))).squeeze(0)
                if signs is None:
                    outputs = len(z)
                    signs = (torch.randint(0, 2, (outputs,), generator=generator) * 2 - 1).to(z)
                found = torch.autograd.grad((z * signs).sum(), own, materialize_grads=True)
                gradients.append(torch.cat([g.reshape(-1) for g in found]))
            G = torch.stack(gradients)
            total += (G @ G.T).double()
            del G, gradients
    return total / (draws * outputs)


def ntk_plan(
    model: nn.Module, x: Inputs, *, outputs: Outputs = "trace", frozen: bool = False, memory: int = MEMORY
) -> NtkPlan:
    """How `empirical_ntk` would go about it, and why; costs passes of a single sample.

    >>> ntk_plan(nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8)), torch.ones(2, 4)).formed
    ('1.weight', '1.bias')
    """
    net = stateless(model, frozen=frozen)
    x = _on(net, x)
    left = tuple(name for name, p in model.named_parameters() if not p.requires_grad and not frozen)
    with untouched(model), plain_attention():
        structure = structure_of(net, x)
        refusal = _refusal(net, structure, x)
    if refusal is not None:
        return NtkPlan(
            "jacobian",
            1,
            structure.outputs,
            f"the model does not vectorize over samples: {refusal}",
            (),
            tuple(net.parameters),
            left,
        )
    work = LayerContraction(net, structure, outputs, {}, memory)
    reason = f"one sample takes {work.bytes_per_sample / 2**20:.3g} MiB of the {memory / 2**20:.4g} MiB allowed"
    return NtkPlan(
        "layers",
        min(work.block, count(x)),
        structure.outputs,
        reason,
        tuple(sorted(structure.layered)),
        structure.other,
        left,
    )


def fan_in_rates(model: nn.Module, *, weight_rate: float = 1.0, bias_rate: float = 1.0) -> dict[str, float]:
    """Rates ``weight_rate / fan_in`` for matrices (and kernels) of weights, ``bias_rate`` for all other parameters.

    With them the kernel of a plain network tends to that of the recursion with the same rates as its width grows.

    >>> fan_in_rates(nn.Linear(4, 2), weight_rate=2.0)
    {'weight': 0.5, 'bias': 1.0}
    """
    not_negative(weight_rate=weight_rate, bias_rate=bias_rate)
    return {
        name: weight_rate / torch.Size(p.shape[1:]).numel() if p.ndim > 1 else bias_rate
        for name, p in model.named_parameters()
    }


def kernel_matrix(kernel: Tensor) -> Tensor:
    """A full kernel (n, m, C, C) as a matrix over pairs (sample, output), (nC, mC); any other stays as it is.

    >>> kernel_matrix(torch.ones(2, 3, 4, 4)).shape
    torch.Size([8, 12])
    """
    return kernel if kernel.ndim == 2 else kernel.transpose(1, 2).flatten(2).flatten(0, 1)


def kernel_drift(before: Tensor, after: Tensor) -> float:
    r"""$\|\Theta'-\Theta\|_F/\|\Theta\|_F$, by how much a kernel moved: 0 in lazy training. Source: chizat2019.

    >>> kernel_drift(torch.eye(2), 1.5 * torch.eye(2))
    0.5
    """
    before, after = as_tensor(before), as_tensor(after)
    if not bool(before.any()):
        raise InputError("expected a kernel before that is not 0, got zeros; a change has then no share")
    unit = before.abs().max()  # norms of what is divided by it neither over- nor underflow
    start = (before / unit).to(torch.complex128 if before.is_complex() else torch.float64)
    return float(((after / unit).to(start.dtype) - start).norm() / start.norm())


def kernel_alignment(kernel: Tensor, targets: Tensor, *, centered: bool = True) -> float:
    r"""$\langle K,YY^\top\rangle_F/\|K\|_F\|YY^\top\|_F$: how much a kernel looks like the labels' own, at most 1.

    ``targets`` are (n, C), or whole numbers (n,) that stand for classes. ``centered`` takes both about their means, so
    that a constant part counts for nothing. Source: cristianini2001; cortes2012.

    >>> y = torch.tensor([[1.0], [-1.0]])
    >>> round(kernel_alignment(y @ y.T, y), 6)
    1.0
    """
    kernel = as_tensor(kernel)
    has_values(kernel=kernel)
    real_values(kernel=kernel)
    K, Y = kernel.double(), target_rows(targets).to(kernel.device)
    if centered:
        Y = Y - Y.mean(0)
        K = K - K.mean(0) - K.mean(1, keepdim=True) + K.mean()
    K, Y = (part / largest if (largest := part.abs().max()) > 0 else part for part in (K, Y))  # squares stay numbers
    gram = Y @ Y.T
    size = K.norm() * gram.norm()
    return 0.0 if size == 0 else float((K * gram).sum() / size)


def target_rows(targets: Tensor) -> Tensor:
    """Targets as float64 rows: classes one-hot, numbers as they are.

    >>> target_rows(torch.tensor([0, 1])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    targets = as_tensor(targets, floats=False)
    has_values(targets=targets)
    if targets.is_floating_point():
        return targets.double().reshape(len(targets), -1)
    return torch.nn.functional.one_hot(targets.flatten().long()).double()


@dataclass(frozen=True)
class KernelSpectrum:
    """Eigenvalues of a kernel, largest first, and what is read off them."""

    values: Tensor

    @property
    def largest(self) -> float:
        """The one that limits the step size."""
        return float(self.values[0])

    @property
    def condition(self) -> float:
        """Largest over smallest; infinite where the smallest is zero to rounding."""
        floor = torch.finfo(self.values.dtype).eps * len(self.values) * self.largest
        smallest = float(self.values[-1])
        return self.largest / smallest if smallest > floor else float("inf")

    @property
    def effective_rank(self) -> float:
        r"""$\exp(-\sum p_i\log p_i)$, $p_i=\lambda_i/\sum\lambda$: how many directions learn alike. Source: roy2007."""
        shares = self.values.clamp(min=0) / self.values.clamp(min=0).sum()
        return float(torch.special.entr(shares).sum().exp())


def kernel_spectrum(kernel: Tensor) -> KernelSpectrum:
    """The eigenvalues of a symmetric kernel, in float64; a full one counts every output of every sample.

    >>> kernel_spectrum(torch.diag(torch.tensor([1.0, 4.0]))).condition
    4.0
    """
    kernel = as_tensor(kernel)
    real_values(kernel=kernel)
    matrix = kernel_matrix(kernel).double()
    return KernelSpectrum(torch.linalg.eigvalsh(0.5 * (matrix + matrix.T)).flip(0))


def output_curvatures(loss: Callable[[Tensor, Tensor], Tensor], outputs: Tensor, targets: Tensor) -> Tensor:
    r"""$\partial^2L/\partial z_i\partial z_j$ of a loss in the outputs of each sample, (n, C, C), mean or sum as the loss has it.

    The loss must treat samples one by one (as cross-entropy and squared error do).

    >>> output_curvatures(nn.functional.mse_loss, torch.zeros(2, 1), torch.ones(2, 1)).flatten().tolist()
    [1.0, 1.0]
    """
    with torch.enable_grad():
        z = outputs.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss(z, targets), z, create_graph=True)
        if not slope.requires_grad:  # a loss that is linear in the outputs
            return torch.zeros(len(z), z[0].numel(), z[0].numel(), dtype=z.dtype, device=z.device)
        flat = slope.flatten(1)
        columns = [torch.autograd.grad(flat[:, c].sum(), z, retain_graph=True)[0] for c in range(flat.shape[1])]
    return torch.stack([column.flatten(1) for column in columns], 1).detach()


def curvature_through_kernel(kernel: Tensor, loss_curvatures: Tensor) -> Tensor:
    r"""$H^{1/2}\Theta H^{1/2}$, (nC, nC), whose eigenvalues are the nonzero ones of the Gauss-Newton matrix $J^\top HJ$.

    ``kernel`` is full, (n, n, C, C), ``loss_curvatures`` are (n, C, C); negative ones of a loss that is not convex count as 0.

    >>> curvature_through_kernel(torch.ones(1, 1, 1, 1), 4 * torch.ones(1, 1, 1)).item()
    4.0
    """
    real_values(kernel=kernel, loss_curvatures=loss_curvatures)
    values, vectors = torch.linalg.eigh(loss_curvatures.double())
    root = (vectors * values.clamp(min=0).sqrt().unsqueeze(1)) @ vectors.mT  # (n, C, C)
    return kernel_matrix(torch.einsum("aij,abjk,bkl->abil", root, kernel.double(), root))


def _on(net: Stateless, x: Inputs) -> Inputs:
    if not isinstance(x, tuple | Mapping):
        x = as_tensor(x, floats=False)  # tokens stay whole
        has_values(x=x)
    return placed(x, next(iter(net.parameters.values())))


def _checked(rates: Mapping[str, float], model: nn.Module) -> Mapping[str, float]:
    unknown = sorted(set(rates) - {name for name, _ in model.named_parameters()})
    if unknown:
        raise InputError(f"expected rates for names among the model's parameters, got {unknown[:3]}; see fan_in_rates")
    return rates


def _refusal(net: Stateless, structure: LayerStructure, x: Inputs) -> str | None:
    """Why the model cannot be vectorized over samples, if it cannot; tried on one sample and one output."""
    try:
        factors(net, structure, rows(x, slice(0, 1)), part=slice(0, 1))
    except REFUSALS as error:
        return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
    return None


def _by_rows(net: Stateless, x: Inputs, y: Inputs | None, *, outputs: Outputs, rates: Mapping[str, float]) -> Tensor:
    """From whole derivatives, one sample at a time on the left."""
    right = jacobian_rows(net, x if y is None else y)
    n, m, C = count(x), count(x if y is None else y), next(iter(right.values())).shape[1]
    like = next(iter(net.parameters.values()))
    kernel = torch.zeros((n, m) if outputs == "trace" else (n, C, m, C), dtype=like.dtype, device=like.device)
    for index in range(n):
        here = slice(index, index + 1)
        left = {name: value[here] for name, value in right.items()} if y is None else jacobian_rows(net, rows(x, here))
        for name, value in left.items():
            rate = rates.get(name, 1.0)
            Formed(value, rate).add(Formed(right[name], rate), kernel[here])
    return kernel if outputs == "trace" else kernel.transpose(1, 2)
