r"""A direction planted in noise shows only above $\theta^2=\sqrt{p/n}$, and then at $(1+\theta^2)(q+\theta^2)/\theta^2$."""

import torch

from theodolite.core.law import Law
from theodolite.core.reading import Band
from theodolite.measure.spectra import gram_eigenvalues
from theodolite.theory.spectra import noise_edge, spike_location


def predict(strength: float, n: int, p: int) -> Band:
    # Below the threshold three scales of the edge, as in the law of the edge; a spike fluctuates by about
    # 2 theta/sqrt(n), and the mean of 32 draws by that over sqrt(32): twice three such errors.
    spread = 2 * (strength / n / 32) ** 0.5
    return Band.around(spike_location(strength, p / n), abs=3 * noise_edge(n, p)[1] / n + 6 * spread)


def measure(strength: float, n: int, p: int, *, generator: torch.Generator, directions: int = 1) -> float:
    x = torch.randn(n, p, generator=generator, dtype=torch.float64)
    left = torch.linalg.qr(torch.randn(n, directions, generator=generator, dtype=torch.float64))[0]
    right = torch.linalg.qr(torch.randn(p, directions, generator=generator, dtype=torch.float64))[0]
    planted = (strength * n / directions) ** 0.5 * left @ right.T
    return float(gram_eigenvalues(x + planted)[-1]) / n


law = Law(
    claim="A planted direction leaves the bulk only above a threshold, and its place then tells its strength.",
    formula=r"\lambda_1\to\frac{(1+\theta^2)(q+\theta^2)}{\theta^2}\ \text{ if }\theta^2>\sqrt q,\ \text{ else }(1+\sqrt q)^2",
    assumes={"all strength in one direction": {"directions": 2}, "p/n fixed as n grows": None},
    source="baik2005; benaych2012",
    predict=predict,
    measure=measure,
    cases=tuple({"strength": s, "n": 300, "p": 150} for s in (0.2, 1.5, 3.0, 6.0)),
    full=tuple({"strength": s, "n": 1200, "p": 600} for s in (0.35, 1.0, 3.0)),
    repeats=32,
    quantity="largest eigenvalue",
    along="strength",
)
