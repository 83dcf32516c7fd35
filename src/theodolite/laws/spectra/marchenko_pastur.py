r"""The largest eigenvalue of a white sample covariance sits at $(1+\sqrt{p/n})^2$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import gram_eigenvalues
from theodolite.theory.spectra import marchenko_pastur_edges, noise_edge


def measure(n: int, p: int, *, generator: torch.Generator, entries: str = "gauss") -> float:
    x = torch.randn(n, p, generator=generator, dtype=torch.float64)
    if entries == "heavy":  # Student t with 2 degrees of freedom: no finite variance
        x = x / torch.randn(n, p, 2, generator=generator, dtype=torch.float64).square().mean(-1).sqrt()
    return gram_eigenvalues(x)[-1].item() / n / x.square().mean().item()


law = Law(
    claim="White noise has no eigenvalue above the Marchenko-Pastur edge.",
    formula=r"\lambda_{\max}(X^\top X/n)\to(1+\sqrt{p/n})^2",
    assumes={"entries of finite fourth moment": {"entries": "heavy"}, "p/n fixed as n grows": None},
    source="marchenko1967; johnstone2001",
    # The largest eigenvalue lies 1.2 scales (of order n^(-2/3)) below the edge in the mean, with a spread of 1.3: the
    # mean of 24 draws errs by 0.26, and 1.2 with twice three such errors is under three scales.
    predict=lambda n, p: Band.around(marchenko_pastur_edges(p / n)[1], abs=3 * noise_edge(n, p)[1] / n),
    measure=measure,
    cases=({"n": 400, "p": 100}, {"n": 300, "p": 150}, {"n": 200, "p": 200}),
    full=({"n": 2000, "p": 500},),
    repeats=24,
    quantity="largest eigenvalue",
    along="p",
)
