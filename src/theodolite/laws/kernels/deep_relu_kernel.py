r"""A very deep ReLU network's kernels are those of a two-line recursion of one angle, near-parallel inputs included."""

import math

import torch

from theodolite.core.law import Law
from theodolite.theory import Mlp
from theodolite.theory.kernels import mlp_kernels


def predict(hidden_layers: int, angle: float, kernel: str) -> float:
    x = math.sqrt(2) * torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)
    found = mlp_kernels(Mlp(hidden_layers, "relu", 2.0), x)
    return float((found.ntk if kernel == "NTK" else 2.0 - found.nngp)[0, 1])


def measure(hidden_layers: int, angle: float, kernel: str, *, gates: float = 1.0) -> float:
    """With angles alone: the sine of half the new one follows from the old without a difference of like numbers."""
    tangent = 2 * math.cos(angle)
    for _ in range(hidden_layers):
        bow = math.sin(angle) - angle * math.cos(angle) if angle > 0.02 else angle**3 / 3 * (1 - angle**2 / 10)
        half = math.sin(angle / 2) ** 2 - bow / (2 * math.pi)
        tangent *= gates - angle / math.pi
        angle = 2 * math.asin(math.sqrt(half))
        tangent += 2 * math.cos(angle)
    return tangent if kernel == "NTK" else 4 * math.sin(angle / 2) ** 2


law = Law(
    claim="Between two inputs of a deep ReLU network without biases only their angle changes from layer to layer, and both "
    "kernels follow from it, at a thousand layers as at one.",
    formula=r"\cos\theta'=\cos\theta+\frac{\sin\theta-\theta\cos\theta}{\pi},\qquad"
    r"\Theta'=2\cos\theta'+\Big(1-\frac\theta\pi\Big)\Theta",
    assumes={"units switched as the angle says": {"gates": 1.0 - 1e-08}},
    source="cho2009; jacot2018",
    predict=predict,
    measure=measure,
    cases=(
        {"hidden_layers": 60, "angle": 1.2, "kernel": "NTK"},
        {"hidden_layers": 600, "angle": 1e-3, "kernel": "NTK"},
        {"hidden_layers": 600, "angle": 1e-3, "kernel": "what the NNGP kernel lacks"},
        {"hidden_layers": 40, "angle": 1e-3, "kernel": "what the NNGP kernel lacks"},
        {"hidden_layers": 5, "angle": math.pi - 1e-3, "kernel": "NTK"},
    ),
    tolerance=1e-6,  # series cut at a ten-millionth; what the kernel lacks is a difference of numbers of size 2
    quantity="kernel between two inputs",
)
