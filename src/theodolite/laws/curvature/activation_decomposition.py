r"""The second moment of activations is that of the class means, weighted by class size, plus the scatter about them."""

import torch

from theodolite.construct.propagation import network
from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.curvature import activation_structure
from theodolite.theory import Mlp


def measure(activation: str, sizes: tuple[int, ...], *, generator: torch.Generator, weights: str = "sizes") -> float:
    spec = Mlp(widths=(12, 12), activation=activation, weight_variance=2.0, bias_variance=0.1)
    model = network(spec, 6, 12, generator=generator, dtype=torch.float64)
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    x = torch.randn(len(labels), 6, generator=generator, dtype=torch.float64)
    h = model[:-1](x + labels[:, None]).detach()
    moment = h.T @ h / len(h)
    parts = activation_structure(h, labels)
    if weights == "sizes":
        found = parts.matrix()
    else:
        means = torch.stack([h[labels == c].mean(0) for c in range(len(sizes))])
        found = means.T @ means / len(sizes) + parts.matrix("within")
    return float((found - moment).norm() / moment.norm())


law = Law(
    claim="The uncentered second moment of features is the sum of that of the class means and of the scatter within classes, "
    "for classes of any size; its largest eigenvalue is mostly the global mean of ReLU features, not a class.",
    formula=r"\frac{1}{N}\sum hh^T=\sum_c\frac{n_c}{N}\mu_c\mu_c^T+\frac{1}{N}\sum_i(h_i-\mu_{c(i)})(h_i-\mu_{c(i)})^T",
    assumes={"classes weighted by their size": {"weights": "equal"}},
    source="papyan2020traces",
    predict=lambda **case: Band.around(0.0, abs=1e-12),  # rounding
    measure=measure,
    cases=(
        {"activation": "relu", "sizes": (5, 20, 40)},
        {"activation": "tanh", "sizes": (1, 30, 10)},
        {"activation": "gelu", "sizes": (50, 50, 10, 200)},
    ),
    repeats=6,
    quantity="what the two parts leave of the second moment",
)
