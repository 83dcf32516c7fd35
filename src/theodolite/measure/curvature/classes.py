r"""Class and cross-class structure: exact decompositions of second moments of gradients, errors and activations.

With softmax probabilities $p_i$ and $g_{icc'}=\nabla\ell(f(x_i),c')$ for a sample i of class c, the Gauss-Newton matrix of the
cross-entropy is $G=\sum w_{icc'}\,g_{icc'}g_{icc'}^T$ with $w_{icc'}=p_i(c')/N$. Within the pairs (c, c') and then within the
classes it splits, exactly and for any class sizes, into four parts. No matrix of the size of the vectors is formed: each
part is kept as the factor whose rows it is the sum of squares of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError
from theodolite.core.state import untouched
from theodolite.io.batches import Batch
from theodolite.measure.curvature.operators import point_of
from theodolite.measure.functional import called_with, plain_attention

CELLS, COLUMNS = 1 << 27, 1 << 16
"""Numbers that per-sample gradients may take."""


@dataclass(frozen=True)
class Parts:
    r"""A second moment as a sum of parts, each given by a factor F whose $F^TF$ it is, rows (any number, D)."""

    factors: Mapping[str, Tensor] = field(repr=False)

    @property
    def traces(self) -> dict[str, float]:
        """The trace of each part."""
        return {
            name: sum(float(part.double().square().sum()) for part in torch.split(factor, COLUMNS, dim=1))
            for name, factor in self.factors.items()
        }

    def eigenvalues(self, *names: str) -> Tensor:
        """The nonzero spectrum of the sum of some parts (of all without names), largest first, from the smaller Gram matrix."""
        F = torch.cat([self.factors[name] for name in names or self.factors])
        if len(F) > F.shape[1]:
            gram = F.double().T @ F.double()
        else:  # a few columns in double precision at a time
            gram = sum(
                ((part := wide.double()) @ part.T for wide in torch.split(F, COLUMNS, dim=1)), F.new_zeros(()).double()
            )
        values: Tensor = torch.linalg.eigvalsh(gram)
        return values.flip(0).clamp_min(0)

    def rank(self, *names: str, tolerance: float = 1e-10) -> int:
        """How many eigenvalues of the sum exceed the tolerance times the largest."""
        values = self.eigenvalues(*names)
        return int((values > tolerance * values[0]).sum())

    def matrix(self, *names: str) -> Tensor:
        """The sum of parts as a matrix (D, D): for small D."""
        F = torch.cat([self.factors[name] for name in names or self.factors])
        return F.T @ F


def class_structure(vectors: Tensor, probabilities: Tensor, labels: Tensor) -> Parts:
    r"""$\sum w_{icc'}v_{icc'}v_{icc'}^T$ = class + cross + within + equal, exactly.

    ``vectors`` (N, C, D) are $v_{icc'}$, gradients or back-propagated errors for every possible label c';
    ``probabilities`` (N, C) the softmax outputs; ``labels`` (N,) the classes c. With $w_{cc'}=\sum_iw_{icc'}$,
    $v_{cc'}=\sum_iw_{icc'}v_{icc'}/w_{cc'}$, $w_c=\sum_{c'\neq c}w_{cc'}$, $v_c=\sum_{c'\neq c}w_{cc'}v_{cc'}/w_c$: *class* is
    $\sum_cw_cv_cv_c^T$, *cross* $\sum_{c\neq c'}w_{cc'}(v_{cc'}-v_c)(\cdot)^T$, *equal* $\sum_cw_{cc}v_{cc}v_{cc}^T$, *within*
    $\sum w_{icc'}(v_{icc'}-v_{cc'})(\cdot)^T$ over all c'. Source: papyan2020traces.
    Differs from the source: means are weighted by the probabilities, and *within* takes c' = c too.

    >>> vectors = torch.tensor([[[0.5], [-0.5]], [[1.0], [-1.0]]])
    >>> parts = class_structure(vectors, torch.full((2, 2), 0.5), torch.tensor([0, 1]))
    >>> parts.traces
    {'class': 0.3125, 'cross': 0.0, 'equal': 0.3125, 'within': 0.0}
    """
    N, C, D = vectors.shape
    w = probabilities / N  # (N, C)
    w_pair = vectors.new_zeros(C, C).index_add_(0, labels, w)
    v_pair = vectors.new_zeros(C, C, D).index_add_(0, labels, w[:, :, None] * vectors)
    v_pair = v_pair / w_pair.clamp_min(torch.finfo(w.dtype).tiny)[:, :, None]
    parts = pair_structure(v_pair, w_pair)
    rest = w.sqrt()[:, :, None] * (vectors - v_pair[labels])
    return Parts({**parts.factors, "within": rest.reshape(N * C, D)})


def pair_structure(means: Tensor, weights: Tensor) -> Parts:
    """The class, cross and equal parts from the means (C, C, D) of the pairs (c, c') and their weights (C, C)."""
    C = len(weights)
    if weights.shape != (C, C) or means.shape[:-1] != (C, C):
        raise InputError(
            f"expected means (C, C, D) and weights (C, C), got shapes {tuple(means.shape)} and {tuple(weights.shape)}"
        )
    other = weights * (1 - torch.eye(C, dtype=weights.dtype, device=weights.device))
    w_class = other.sum(1)
    center = (other[:, :, None] * means).sum(1) / w_class.clamp_min(torch.finfo(weights.dtype).tiny)[:, None]
    cross = other.sqrt()[:, :, None] * (means - center[:, None])
    apart = ~torch.eye(C, dtype=torch.bool, device=weights.device)
    same = torch.arange(C, device=weights.device)
    return Parts(
        {
            "class": w_class.sqrt()[:, None] * center,
            "cross": cross[apart],
            "equal": weights[same, same].sqrt()[:, None] * means[same, same],
        }
    )


def activation_structure(features: Tensor, labels: Tensor) -> Parts:
    r"""$\frac{1}{N}\sum hh^T=\sum_c\frac{n_c}{N}\mu_c\mu_c^T+\frac{1}{N}\sum_i(h_i-\mu_{c(i)})(\cdot)^T$, exactly.

    ``features`` (N, d), not centered; ``labels`` (N,). Source: papyan2020traces.

    >>> parts = activation_structure(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]))
    >>> {name: round(trace, 4) for name, trace in parts.traces.items()}
    {'class': 11.0, 'within': 0.6667}
    """
    N, classes = len(features), int(labels.max()) + 1
    counts = torch.bincount(labels, minlength=classes).to(features)
    means = features.new_zeros(classes, features.shape[1]).index_add_(0, labels, features)
    means = means / counts.clamp_min(1)[:, None]
    return Parts({"class": (counts / N).sqrt()[:, None] * means, "within": (features - means[labels]) / N**0.5})


def label_gradients(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    r"""$g_{ic'}=\nabla_\theta\ell(f(x_i),c')=J_i^T(p_i-e_{c'})$ for every label c', (N, C, P), and probabilities (N, C).

    For small models: N C P numbers at most `CELLS`. The model answers logits (N, C).
    """
    point = point_of(model)
    own = point.parameters

    def one(parameters: dict[str, Tensor], sample: Tensor) -> tuple[Tensor, Tensor]:
        logits = called_with(model, {**point.fixed, **parameters}, (sample[None],))[0]
        return logits, logits

    with untouched(model), plain_attention():
        size = sum(p.numel() for p in own.values())
        J, logits = torch.func.vmap(torch.func.jacrev(one, has_aux=True), in_dims=(None, 0))(own, x)
        N, C = logits.shape
        if N * C * size > CELLS:
            raise InputError(
                f"expected at most {CELLS} numbers, got {N} x {C} x {size}; use pair_gradients, or fewer samples"
            )
        jacobian = torch.cat([part.detach().flatten(2) for part in J.values()], 2)  # (N, C, P)
    p = torch.softmax(logits.detach(), 1)
    errors = p[:, None, :] - torch.eye(C, dtype=p.dtype, device=p.device)  # (N, c', C)
    return errors @ jacobian, p


def pair_gradients(model: nn.Module, data: Any, *, classes: int) -> tuple[Tensor, Tensor]:
    r"""Mean gradients $g_{cc'}$ (C, C, P) and weights $w_{cc'}$ (C, C) over all the data: C backward passes, no more.

    $w_{cc'}g_{cc'}=\sum_{i\in c}\frac{p_i(c')}{N}J_i^T(p_i-e_{c'})$ is one vector-Jacobian product for each pair. ``data``
    gives inputs with labels from 0 to C-1.
    """
    point = point_of(model)
    own = list(point.parameters.values())
    size, like = sum(p.numel() for p in own), own[0].detach()
    sums, weights = like.new_zeros(classes, classes, size), like.new_zeros(classes, classes)
    N = 0
    with untouched(model), plain_attention():
        for batch in point.batches(data):
            N += len(batch)
            for c in torch.unique(batch.target).tolist():
                part = batch_of(batch, batch.target == c)
                logits = point.output(part)
                p = torch.softmax(logits.detach(), 1)
                weights[c] += p.sum(0)
                for other in range(classes):
                    error = p[:, other : other + 1] * (p - _unit(p, other))
                    found = torch.autograd.grad(logits, own, error, retain_graph=True, materialize_grads=True)
                    sums[c, other] += torch.cat([g.reshape(-1) for g in found])
    return sums / weights.clamp_min(torch.finfo(like.dtype).tiny)[:, :, None], weights / N


def label_errors(run: Callable[[], Tensor], layer: nn.Module, *, flatten: bool = True) -> tuple[Tensor, Tensor]:
    r"""Back-propagated errors $\delta_{ic'}=\partial\ell(f(x_i),c')/\partial h_i$ behind a layer, (N, C, D), and p (N, C).

    Give both to `class_structure` to see how the errors at one layer, rather than the gradients of weights, group by class.

    ``run()`` calls the model on a batch and answers logits (N, C).
    """
    seen: list[Tensor] = []

    def keep(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        seen.append(output if output.requires_grad else output.detach().requires_grad_())
        return seen[-1]

    with layer.register_forward_hook(keep):
        logits = run()
    if not seen:
        raise InputError(
            "expected a layer that runs when the model does, got one that did not; pass a layer of this model"
        )
    p = torch.softmax(logits.detach(), 1)
    rows = [
        torch.autograd.grad(logits, seen[-1], p - _unit(p, other), retain_graph=True)[0] for other in range(p.shape[1])
    ]
    errors = torch.stack(rows, 1)
    return errors.flatten(2) if flatten else errors, p


def outlier_gap(values: Tensor) -> tuple[int, float]:
    """Where eigenvalues, largest first, fall most: how many lie before the largest ratio of neighbors, and that ratio.

    >>> outlier_gap(torch.tensor([9.0, 8.0, 2.0, 1.5]))
    (2, 4.0)
    """
    if not bool(values.isfinite().all()):
        raise InputError("expected finite eigenvalues, got NaN or infinity among them; look at where they come from")
    positive = values[values > 0].double()
    if len(positive) < 2:
        raise InputError(f"expected at least two positive eigenvalues, got {len(positive)}")
    ratios = positive[:-1] / positive[1:]
    place = int(ratios.argmax())
    return place + 1, float(ratios[place])


def batch_of(batch: Batch, chosen: Tensor) -> Batch:
    """The chosen samples of a batch."""
    return batch.picked(chosen)


def _unit(p: Tensor, place: int) -> Tensor:
    unit = torch.zeros_like(p)
    unit[:, place] = 1
    return unit
