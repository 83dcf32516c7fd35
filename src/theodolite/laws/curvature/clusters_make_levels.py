r"""Without labels there are three levels too: k clusters of inputs give 1, k - 1 and n - k eigenvalues.

For the squared error the nonzero eigenvalues of the Gauss-Newton matrix are those of the tangent kernel over n, labels or not.
Where all inputs of a cluster have one cosine and those of two clusters another, the kernel of a wide network has three values,
and a matrix of three values in blocks has three eigenvalues: the mean of all, the clusters, the samples within them.
"""

import torch
from torch import Tensor

from theodolite.core.law import Law
from theodolite.measure.experiments import Ensemble, elementwise, tangent_kernels
from theodolite.theory import Mlp
from theodolite.theory.kernels import tangent_pair

CLUSTERS, EACH, WITHIN, BETWEEN = 4, 6, 0.8, 0.2
WIDTH, NETS, HIDDEN = 128, 24, 2


def predict(activation: str, level: str) -> float:
    spec = Mlp(HIDDEN, activation, 2.0)
    own, _, inside = tangent_pair(spec, (2.0, 2.0, 2.0 * WITHIN))
    between = tangent_pair(spec, (2.0, 2.0, 2.0 * BETWEEN))[2]
    samples = own - inside
    clusters = samples + EACH * (inside - between)
    return {"all": clusters + CLUSTERS * EACH * between, "clusters": clusters, "samples": samples}[level] / own


def measure(activation: str, level: str, *, generator: torch.Generator, within: float = WITHIN) -> Tensor:
    """The mean of the eigenvalues of a level over that of all, network by network: their common size does not matter."""
    cluster = torch.arange(CLUSTERS * EACH) // EACH
    cosines = torch.where(cluster[:, None] == cluster, within, BETWEEN).double().fill_diagonal_(1.0)
    inputs = torch.linalg.cholesky(cosines) * len(cosines) ** 0.5  # of mean square 1
    ensemble = Ensemble(elementwise(activation), (WIDTH,) * HIDDEN, weight_variance=2.0)
    kernels = tangent_kernels(ensemble, inputs, nets=NETS, weight_rate=2.0, generator=generator).sum((1, 2))
    eigenvalues = torch.linalg.eigvalsh(kernels).flip(-1)
    parts = {"all": slice(1), "clusters": slice(1, CLUSTERS), "samples": slice(CLUSTERS, None)}
    return eigenvalues[:, parts[level]].mean(1) / eigenvalues.mean(1)


law = Law(
    claim="The Gauss-Newton spectrum has three levels without any labels: inputs in k equal clusters give wide networks one "
    "eigenvalue for the mean, k - 1 for the clusters and n - k for the samples, at values that the tangent kernel tells.",
    formula=r"\lambda_1=\lambda_2+n\Theta_b,\quad\lambda_{2..k}=\Theta_d-\Theta_w+m(\Theta_w-\Theta_b),\quad"
    r"\lambda_{k+1..n}=\Theta_d-\Theta_w,\quad"
    r"\tfrac1n\textstyle\sum\lambda=\Theta_d",
    assumes={"clusters as tight as said": {"within": 0.65}, "all hidden layers wide": None},
    source="jacot2018; papyan2020traces",
    predict=predict,
    measure=measure,
    cases=tuple(
        {"activation": name, "level": level} for name in ("relu", "tanh") for level in ("all", "clusters", "samples")
    ),
    tolerance=0.05,  # finite width turns the eigenvectors and takes 2/n of small eigenvalues, 1.6 %; thrice 0.6 % of error
    quantity="mean eigenvalue of a level over that of all",
)
