"""Do two networks compute the same features, layer by layer, beyond what chance gives?"""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from rich.console import RenderableType
from torch import Tensor, nn

from theodolite.core.checks import at_least, tensors_in
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.measure.spectra.alignment import Similarity, gram_matrix, gram_similarity
from theodolite.report.overview import similarity_table
from theodolite.verbs._presented import Presentable


@dataclass(frozen=True)
class FeatureSimilarity(Presentable):
    """The alignment (CKA) of every layer of one network with every layer of another, each beside its null."""

    columns: ClassVar[tuple[str, ...]] = ("layer", "other", "value", "null", "null_error", "p_value")

    layers: tuple[str, ...]
    others: tuple[str, ...]
    found: tuple[tuple[Similarity, ...], ...]
    samples: int

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary a pair of layers."""
        return [
            {"layer": layer, "other": other, **asdict(self.found[i][j])}
            for i, layer in enumerate(self.layers)
            for j, other in enumerate(self.others)
        ]

    def document(self) -> dict[str, Any]:
        """What `json` writes."""
        return {"samples": self.samples, "pairs": self.rows()}

    def table(self) -> RenderableType:
        """A row for each layer: the layer of the other network that it is most like, and how much that is by chance."""
        return similarity_table(self)


def similarity(
    model: nn.Module, other: nn.Module, *, data: Any, samples: int = 256, permutations: int = 99
) -> FeatureSimilarity:
    """How similar are the features of two networks on the same data? 1: the same up to rotation and scale; 0: nothing in common.

    >>> import torch, theodolite as th
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    >>> found = th.similarity(model, model, data=torch.randn(100, 8, generator=torch.Generator().manual_seed(0)))
    >>> [round(found.found[place][place].value, 6) for place in range(2)]
    [1.0, 1.0]
    """
    at_least(8, samples=samples)
    mine, theirs = _grams(model, data, samples), _grams(other, data, samples)
    found = tuple(
        tuple(gram_similarity(gram, beside, permutations=permutations) for beside in theirs.values())
        for gram in mine.values()
    )
    count = len(next(iter(mine.values()))) if mine else 0
    return FeatureSimilarity(tuple(mine), tuple(theirs), found, count)


def _grams(model: nn.Module, data: Any, samples: int) -> dict[str, Tensor]:
    """The Gram matrix of the outputs of each layer that has weights, in the order in which they ran."""
    subject = Subject(model, data=data, checked=False)
    subject.check_runs()
    kept: dict[str, list[Tensor]] = {}

    def keep(name: str, _: Any, __: Any, answer: Any) -> None:
        tensor = next(tensors_in(answer), None)
        if tensor is not None and tensor.is_floating_point() and tensor.ndim > 1:
            kept.setdefault(name, []).append(tensor.detach().flatten(1).cpu())

    seen = 0
    with untouched(subject.model), torch.no_grad():
        for name, module in subject.model.named_modules():
            if any(p.ndim > 1 for p in module.parameters(recurse=False)):
                module.register_forward_hook(partial(keep, name))
        for batch in subject.batches():
            part = batch.picked(slice(samples - seen))
            subject.output(part)
            seen += len(part)
            if seen >= samples:
                break
    features = {name: torch.cat(parts) for name, parts in kept.items() if len({part.shape[1] for part in parts}) == 1}
    return {name: gram_matrix(rows) for name, rows in features.items() if len(rows) == seen}
