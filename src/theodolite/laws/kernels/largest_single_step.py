r"""The edge $2m/\lambda_{\max}(\Theta)$ of a network, and of each layer, from the inputs' sizes and angles alone."""

import math

import torch

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, elementwise, tangent_kernels
from theodolite.theory import Mlp
from theodolite.theory.kernels import learning_rates

WIDTH, HIDDEN, C_B, NETS = 128, 2, 0.1, 8
C_W = {"erf": 1.2, "tanh": 1.3}


def predict(activation: str, inputs: int, samples: int, cosine: float, part: str) -> float:
    """The edge from the advised step: of a part of a layer 12 of them, of all parameters what random layers leave room for."""
    spec = Mlp(HIDDEN, activation, C_W[activation], C_B)
    advised = learning_rates(spec, inputs=inputs, width=WIDTH, cosine=cosine, samples=samples)
    if part != "all":
        layer = advised.layers[int(part[-1]) - 1]
        return 4 * len(advised.layers) * (layer.weight_lr if part.startswith("weights") else layer.bias_lr)
    ratio = inputs / samples
    # linear functions, or the constant
    alike = inputs * (1 + ratio) / (1 + math.sqrt(ratio)) ** 4 if cosine == 0 else 1.0
    return advised.single * (1 + math.sqrt(max(HIDDEN, alike) / WIDTH)) ** 2


def measure(
    activation: str,
    inputs: int,
    samples: int,
    cosine: float,
    part: str,
    *,
    generator: torch.Generator,
    gain: float = 1.0,
) -> float:
    """Twice the samples over the mean largest eigenvalue of the tangent kernel of these parameters, on inputs drawn once."""
    common = torch.randn(inputs, generator=generator)
    common = common / common.norm() * inputs**0.5
    x = cosine**0.5 * common + (1 - cosine) ** 0.5 * torch.randn(samples, inputs, generator=generator)
    ensemble = Ensemble(
        elementwise(activation), (WIDTH,) * HIDDEN, weight_variance=gain**2 * C_W[activation], bias_variance=C_B
    )
    parts = tangent_kernels(ensemble, x, nets=NETS, weight_rate=1.0, bias_rate=1.0, generator=generator).double()
    parts[:, :, 0] *= torch.tensor((inputs, *(WIDTH,) * HIDDEN))[:, None, None]  # rates of 1, not of 1 over the fan-in
    layer, kind = int(part[-1]) - 1 if part != "all" else 0, int(part.startswith("biases"))
    kernels = parts.sum((1, 2)) if part == "all" else parts[:, layer, kind]
    return 2 * samples / float(torch.linalg.eigvalsh(kernels)[:, -1].mean())


law = Law(
    claim="The mean square and the cosine of the inputs, and the sizes of the network, are enough to say which learning rates "
    "are stable: the constant direction or the linear functions of the inputs are learned fastest.",
    formula=r"\eta<\frac{2m}{\lambda_{\max}},\qquad\frac{\lambda_{\max}}m\approx\max\Big(\Theta(c)+\frac{\Theta(1)-\Theta(c)}m,\ "
    r"\Theta'(c)(1-c)\frac{(1+\sqrt{n_0/m})^2}{n_0}+\dots\Big)",
    assumes={"weights of the variance supposed": {"gain": 1.2}},
    source="roberts2022, chapter 9; jacot2018",
    predict=predict,
    measure=measure,
    cases=(
        {"activation": "erf", "inputs": 20, "samples": 30, "cosine": 0.8, "part": "all"},
        {"activation": "erf", "inputs": 20, "samples": 30, "cosine": 0.8, "part": "weights of layer 2"},
        {"activation": "tanh", "inputs": 10, "samples": 40, "cosine": 0.5, "part": "all"},
        {"activation": "tanh", "inputs": 10, "samples": 40, "cosine": 0.5, "part": "weights of layer 3"},
        {"activation": "tanh", "inputs": 6, "samples": 60, "cosine": 0.0, "part": "all"},
    ),
    # the top direction of 40 inputs and of layers of 128 is not quite the constant: 4 % at most in the parts that weigh most
    # (of biases of the first layer of tanh, a small part, 10 %); 40 draws know the mean to 1 %
    tolerance=0.08,
    repeats=40,
    quantity="largest stable step",
)
