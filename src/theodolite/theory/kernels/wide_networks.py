"""Kernels of infinitely wide networks: NNGP and NTK of any specification, block by block, exact for parallel points."""

from typing import get_args

from torch import Tensor

from theodolite.core.checks import one_of, real_values
from theodolite.theory import Mlp
from theodolite.theory.kernels._map_sequences import Layers, program_of
from theodolite.theory.kernels._tiled_pairs import Kernels, Precision
from theodolite.theory.kernels._whole_kernels import whole_kernels


def mlp_kernels(
    spec: Mlp | Layers,
    x: Tensor,
    other: Tensor | None = None,
    *,
    weight_rate: float | None = None,
    bias_rate: float | None = None,
    precision: Precision = "highest",
) -> Kernels:
    r"""NNGP and NTK of an infinitely wide network, for all pairs of rows of ``x`` (and ``other``).

    $K^{(1)}=C_b+C_w\,x\cdot x'/n_0$, $K^{(l+1)}=C_b+C_wE\,\sigma\sigma$; $\Theta^{(1)}=\lambda_b+\lambda_w\,x\cdot x'/n_0$,
    $\Theta^{(l+1)}=\lambda_b+\lambda_wE\,\sigma\sigma+C_wE\,\sigma'\sigma'\,\Theta^{(l)}$, with rates
    $\lambda_w,\lambda_b$ that default to $C_w,C_b$: the NTK parametrization.

    ``spec`` is an `Mlp`, or a sequence of `Dense`, `Nonlinear`, `Normalized` and `Sum` layers (`dense_layers` writes one
    whose variances and activations differ from layer to layer). ``x`` is float32 or float64 on any device; the result
    is of that kind. Exact for repeated, near-parallel and antiparallel points: in float64 to about 1e-13, in float32 to
    about 1e-6 of the largest entry. Memory: the two results and a few tiles. With ``precision="fast"`` a network of rectifiers
    on a GPU is computed from half-precision products, right to about 1e-4 of the largest entry, 2e-2 for pairs of nearly
    parallel points; ``"high"`` is ``"highest"``, whose three such products are as quick as it gets with that error; elsewhere
    nothing changes. Source: lee2018; jacot2018.

    >>> import torch
    >>> x = torch.tensor([[1.0, 2.0, -1.0, 0.5], [0.5, -1.0, 1.5, 1.0]], dtype=torch.float64)
    >>> kernels = mlp_kernels(Mlp(3, "relu", 2.0), x, weight_rate=1.0, bias_rate=1.0)
    >>> kernels.nngp[0].numpy().round(9), kernels.ntk[0].numpy().round(9)
    (array([3.125     , 1.40939161]), array([10.25      ,  3.07477692]))
    """
    real_values(x=x)
    one_of(get_args(Precision), precision=precision)
    return whole_kernels(program_of(spec, weight_rate=weight_rate, bias_rate=bias_rate), x, other, precision)
