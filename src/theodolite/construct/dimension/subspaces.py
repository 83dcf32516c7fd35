r"""Any model, trained in a random subspace: $\theta=\theta_0+P\theta_d$ with few coordinates $\theta_d$."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from theodolite.construct.dimension.projections import KINDS, DenseProjection, Fastfood, Sparse, Tied
from theodolite.core.checks import InputError, InputTypeError
from theodolite.core.model_wrappers import copied_model
from theodolite.measure.functional import called_with

_Kind = Literal["fastfood", "sparse", "dense", "tied"]
_Structure = Literal["global", "layers"]

_FIRST = 1 << 62
"""Younger than any operation."""


class Subspace(nn.Module):
    """What `subspace` makes. ``coordinates`` is the only parameter that trains; ``base`` holds the starting point."""

    base: nn.Module
    coordinates: nn.Parameter
    recipe: Tensor  # seed, kind, structure: enough to draw the same projection again

    def __init__(self, model: nn.Module, dimension: int, *, recipe: tuple[int, int, int], shared: bool = False) -> None:
        super().__init__()
        # with shared weights copies of the parameters are new names for the same memory; buffers are always copied
        same = {id(p): nn.Parameter(p.detach(), requires_grad=p.requires_grad) for p in model.parameters() if shared}
        self.base = copied_model(model, same)
        self.names = tuple(
            name for name, p in self.base.named_parameters() if p.requires_grad and p.is_floating_point()
        )
        own = dict(self.base.named_parameters())
        self.sizes = tuple(own[name].numel() for name in self.names)
        if not self.names:
            raise InputError("expected a model with trainable parameters, got none; set requires_grad on some")
        self.base.requires_grad_(False)
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in self.names))
        self.layer_of = tuple(layers.index(name.rpartition(".")[0]) for name in self.names)
        self.dimension = dimension
        like = own[self.names[0]]
        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        self.register_buffer("recipe", torch.tensor(recipe))
        self._draw()
        self.coordinates = nn.Parameter(torch.zeros(dimension, dtype=dtype))
        self.to(like.device)

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """The model's answer at the present coordinates."""
        return called_with(self.base, self.weights(), args, keywords)

    def weights(self) -> dict[str, Tensor]:
        """Every trained parameter by name, differentiable in the coordinates."""
        found, own = {}, dict(self.base.named_parameters())
        scales = self.dimension - self.scaled
        table = self.projection.table(self.coordinates[:scales])
        for place, name in enumerate(self.names):
            start = own[name]
            change = self.projection.part(table, place)
            if self.scaled:
                change = change * (1 + self.coordinates[scales + self.layer_of[place]])
            # in place and before the view (whose gradient would be copied): no second copy of the largest layer
            found[name] = change.add_(start.reshape(-1)).view(start.shape).to(start.dtype)
            _hasten(found[name], table)
        return found

    def merged(self) -> nn.Module:
        """A plain model of the user's class with the weights that were found, trainable as it was."""
        model = copied_model(self.base)
        own = dict(model.named_parameters())
        with torch.no_grad():
            for name, value in self.weights().items():
                own[name].copy_(value)
                own[name].requires_grad_(True)
        return model

    def extra_repr(self) -> str:
        """What the printed module says of itself."""
        kind = get_args(_Kind)[int(self.recipe[1])]
        return f"{self.dimension} coordinates for {sum(self.sizes):,} parameters, projection={kind!r}"

    def _draw(self) -> None:
        seed, kind, structure = self.recipe.tolist()
        self.scaled = max(self.layer_of) + 1 if get_args(_Structure)[structure] == "layers" else 0
        if self.dimension <= self.scaled:
            raise InputError(
                f"expected more dimensions than the {self.scaled} layers, each of which takes one for its scale, "
                f"got {self.dimension}; use structure='global'"
            )
        drawn = KINDS[get_args(_Kind)[kind]](
            self.sizes, self.dimension - self.scaled, torch.Generator().manual_seed(seed)
        )
        self.projection: Fastfood | Sparse | DenseProjection | Tied = drawn.to(self.recipe.device)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        before = self.recipe.tolist()
        super()._load_from_state_dict(state, prefix, *rest)
        if self.recipe.tolist() != before:
            self._draw()


def _hasten(weight: Tensor, table: Tensor) -> None:
    """Let the gradient by a weight be projected as soon as it is known, and freed.

    Autograd takes the youngest operation first. Weights are made before the layers that use them: their gradients would all
    lie in memory until the last layer's is there.
    """
    step: Any = weight.grad_fn
    while step is not None and step is not table.grad_fn:
        if hasattr(step, "_set_sequence_nr"):
            step._set_sequence_nr(_FIRST)
        step = step.next_functions[0][0] if step.next_functions else None


def subspace(
    model: nn.Module,
    dimension: int,
    *,
    projection: _Kind = "fastfood",
    structure: _Structure = "global",
    seed: int = 0,
    shared: bool = False,
) -> Subspace:
    r"""The model as $\theta_0+P\theta_d$: a module whose only trainable parameter is $\theta_d$, zero at first.

    ``model`` is copied and stays as it is; frozen parameters, buffers and tied weights are respected, and
    ``.merged()`` gives the plain model back with the weights found. The columns of $P$ have unit norm (on average for
    Fastfood), so that steps in $\theta_d$ are steps of the same length in $\theta$. ``projection``: "fastfood" (memory
    and time nearly linear, no matrix), "tied" (each parameter is ±1 times one coordinate; the fastest), "sparse",
    "dense". ``structure="layers"`` spends one coordinate for each layer on a factor of that layer's change. With
    ``shared`` the starting point is the memory of ``model`` itself, which spares one model of it: leave ``model`` alone
    for as long as its subspace trains, and load no state dict of another start.

    Source: li2018; aghajanyan2021 (layers). The random draw comes from ``seed`` and is drawn again when a state dict of
    another seed is loaded; a state dict holds the starting point and the coordinates, not the projection.

    >>> net = subspace(nn.Linear(10, 10), 5)
    >>> sum(p.numel() for p in net.parameters() if p.requires_grad)
    5
    """
    if not isinstance(model, nn.Module):
        raise InputTypeError(f"expected an nn.Module, got {type(model).__name__}; pass the model itself")
    if projection not in get_args(_Kind) or structure not in get_args(_Structure):
        raise InputError(
            f"expected a projection among {get_args(_Kind)} and a structure among {get_args(_Structure)}, "
            f"got {projection!r} and {structure!r}; choose one of them"
        )
    most = sum(p.numel() for p in model.parameters() if p.requires_grad and p.is_floating_point())
    if not 1 <= dimension <= max(most, 1):
        raise InputError(f"expected a dimension from 1 to the {most:,} trainable parameters, got {dimension}")
    recipe = seed, get_args(_Kind).index(projection), get_args(_Structure).index(structure)
    return Subspace(model, dimension, recipe=recipe, shared=shared)
