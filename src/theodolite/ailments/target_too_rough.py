r"""Do the targets vary faster over the inputs than this network can follow in the steps it has?

A wide network learns the part of its targets along an eigenvector of its tangent kernel as $e^{-t\,\mathrm{lr}\,\lambda_i}$. At
the largest stable learning rate, $2/\lambda_1$, a part with $\lambda_i<\lambda_1/(2t)$ is not learned in t steps. For a few
coordinates as input, the eigenvalues of a plain network fall as a power of the frequency (its spectral bias), and edges and
textures are out of reach. The symptom is the share of the targets' variance that lies there, by the kernel at the start; the
remedy is tried: the same training with sines and cosines of the coordinates at random frequencies before the first layer
(Rahaman et al. 2019; Tancik et al. 2020).
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from theodolite.core.ailment import Ailment, Finding
from theodolite.core.model_wrappers import copied_model
from theodolite.core.subject import Subject, once
from theodolite.evidence.batches import samples
from theodolite.evidence.interventions import Intervention, Outcome, found_by
from theodolite.evidence.start import at_weights, beginning, planned_steps, steps_are_known
from theodolite.evidence.task import is_finite, task
from theodolite.evidence.thresholds import A_FEW, FEWEST, SAMPLES, WORTH
from theodolite.evidence.trial import Change
from theodolite.measure.kernels import empirical_ntk

FEATURES = 32
"""Frequencies of the features."""
SCALES = (0.5, 2.0)
"""Standard deviations of the frequencies, in periods over one standard deviation of the inputs."""


class FourierLinear(nn.Linear):
    """A linear layer of sines and cosines of its inputs, in place of the first one."""

    waves: Tensor
    center: Tensor
    size: Tensor

    def __init__(self, like: nn.Linear, center: Tensor, size: Tensor, scale: float) -> None:
        super().__init__(2 * FEATURES, like.out_features, like.bias is not None)
        draw = torch.Generator().manual_seed(0)
        self.register_buffer("waves", 2 * math.pi * scale * torch.randn(like.in_features, FEATURES, generator=draw))
        self.register_buffer("center", center)
        self.register_buffer("size", size)
        self.to(like.weight.device, like.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Of the standardized inputs."""
        phase = ((x - self.center) / self.size) @ self.waves
        return super().forward(torch.cat([phase.sin(), phase.cos()], -1) * math.sqrt(2.0))


def _first(model: nn.Module, columns: int) -> str | None:
    """The name of the linear layer that is given the coordinates; None where there is not just one."""
    found = [name for name, m in model.named_modules() if type(m) is nn.Linear and m.in_features == columns]
    return found[0] if found else None


def _coordinates(subject: Subject) -> Tensor | None:
    sample = samples(subject)
    x = None if sample is None else sample.numbers
    if x is None or x.ndim != 2 or x.shape[1] > A_FEW or len(x) < FEWEST or len(sample.inputs) > 1:  # type: ignore[union-attr]
        return None
    return x


@once("share beyond reach")
def share_beyond(subject: Subject) -> float:
    """The share of the targets' variance along directions that the steps at hand cannot fit; not a number where none is told."""
    x, sample, model = _coordinates(subject), samples(subject), subject.model
    if x is None or sample is None or sample.target is None or model is None or not is_finite(subject):
        return math.nan
    kind, target = task(subject).kind, sample.target
    if kind == "classes" and target.ndim == 1:
        target = nn.functional.one_hot(target.long() - int(target.min()))
    elif kind not in ("numbers", "labels"):
        return math.nan
    if _first(model, x.shape[1]) is None:
        return math.nan
    rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:SAMPLES].to(x.device)
    with at_weights(model, beginning(subject)):
        kernel = empirical_ntk(model, x[rows]).double().cpu()
    y = target[rows].double().cpu().reshape(len(rows), -1)
    y = y - y.mean(0)
    values, vectors = torch.linalg.eigh(kernel)
    within = (vectors.T @ y).square().sum(1)
    slow = values < values[-1] / (2 * planned_steps(subject))
    return float(within[slow].sum() / within.sum().clamp(min=1e-300))


def interventions(subject: Subject) -> Iterator[Intervention]:
    """The same training with sines and cosines of the coordinates, where it is known how many steps it has."""
    if steps_are_known(subject) and share_beyond(subject) >= WORTH:
        for scale in SCALES:
            change = Change(f"Fourier features x {scale:g}", network=partial(_network, subject, scale))
            yield Intervention(change, _found(subject, scale), rank=46, sign=True)


def _network(subject: Subject, scale: float) -> nn.Module | None:
    x, model = _coordinates(subject), subject.model
    if x is None or model is None:
        return None
    name = _first(model, x.shape[1])
    if name is None:
        return None
    built = copied_model(model)
    start = beginning(subject)
    if start is not None:
        own = built.state_dict()
        built.load_state_dict({k: v for k, v in start.items() if k in own}, strict=False)
    torch.manual_seed(0)
    layer = FourierLinear(built.get_submodule(name), x.mean(0), x.std(0).clamp(min=1e-12), scale)  # type: ignore[arg-type]
    built.set_submodule(name, layer)
    return built


def _found(subject: Subject, scale: float) -> Callable[[Outcome], Finding]:
    return found_by(
        f"The targets vary faster over the inputs than the network can follow: {planned_steps(subject):,} steps cannot fit "
        f"{share_beyond(subject):.0%} of their variance (by the tangent kernel).",
        f"Fourier features before the first layer: B = {scale:g} * torch.randn(d, {FEATURES}) / x.std(0)[:, None]; "
        "x = torch.cat([(6.28 * x @ B).sin(), (6.28 * x @ B).cos()], -1)",
        {"fourier_scale": scale, "fourier_features": FEATURES},
    )


ailment = Ailment(
    question="Do targets vary faster than the network can follow?",
    needs={"model", "data", "loss", "optimizer"},
    interventions=interventions,
)
