r"""The largest weight of a fresh layer sits at the bound of its uniform law, the largest of n Gaussians near $\sqrt{2\ln n}$."""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.theory.spectra import gaussian_maximum, initial_bounds, largest_uniform_shortfall

SHAPE = (60, 96)
GATES = {"recurrent, 1 gates": 1, "recurrent, 3 gates": 3, "recurrent, 4 gates": 4}


def predict(scheme: str) -> Band:
    entries = SHAPE[0] * SHAPE[1]
    if scheme == "Gaussian":
        bound = gaussian_maximum(entries)
        # the largest of n exceeds x with chance below n 2 phi(x)/x: the mean is below the bound and, by 1/x, not far
        return Band(bound * (1 - 1 / bound**2) - 0.2, bound)
    # sixty draws know the bound to 1/n over their root: the band is what one draw falls short by
    return Band.around(initial_bounds(SHAPE)[scheme], rel=largest_uniform_shortfall(entries))


def measure(scheme: str, *, generator: torch.Generator, scale: float = 1.0) -> Tensor:
    """The largest of n uniform magnitudes falls short of the bound by 1/(n + 1) on average."""
    draws = torch.stack([scale * _layer(scheme, generator).abs().max() for _ in range(20)]).double()
    return draws if scheme == "Gaussian" else draws * (1 + 1 / (SHAPE[0] * SHAPE[1]))


def _layer(scheme: str, generator: torch.Generator) -> Tensor:
    """As torch initializes it; layers of torch draw from the global stream, which is seeded and given back."""
    weight = torch.empty(SHAPE)
    if scheme == "He":
        return torch.nn.init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator)
    if scheme == "LeCun":
        return torch.nn.init.kaiming_uniform_(weight, nonlinearity="linear", generator=generator)
    if scheme == "Glorot":
        return torch.nn.init.xavier_uniform_(weight, generator=generator)
    if scheme == "Gaussian":
        return torch.nn.init.normal_(weight, generator=generator)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
        if scheme == "PyTorch":
            return torch.nn.Linear(SHAPE[1], SHAPE[0]).weight.detach()
        gates = GATES[scheme]
        kind = {1: torch.nn.RNN, 3: torch.nn.GRU, 4: torch.nn.LSTM}[gates]
        return kind(SHAPE[1], SHAPE[0] // gates).weight_ih_l0.detach()


law = Law(
    claim="From the shape of a weight matrix alone follows where its largest entry lies when nothing was learned, scheme by "
    "scheme, to within a thousandth.",
    formula=r"\max|w|\to\frac1{\sqrt{n_{\rm in}}},\ \sqrt{\frac6{n_{\rm in}}},\ \sqrt{\frac6{n_{\rm in}+n_{\rm out}}},\ "
    r"\sqrt{\frac3{n_{\rm in}}},\ \frac1{\sqrt{\rm hidden}};\qquad\max|g|\lesssim\sqrt{2\ln n}",
    assumes={"weights that no step has changed": {"scale": 1.005}},
    source="glorot2010; he2015",
    predict=predict,
    measure=measure,
    cases=tuple({"scheme": s} for s in ("PyTorch", "He", "Glorot", "LeCun", *GATES, "Gaussian")),
    repeats=3,
    quantity="largest weight",
)
