r"""Hessian, Gauss-Newton and Fisher matrices of a model over all its data, as products with vectors and never as matrices.

Everything is taken in evaluation mode at the present weights. Where the graphs of the gradients of all batches fit into
``memory``, they are built once and reused by every product; else they are built anew, batch by batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError, tensors_in
from theodolite.core.model_wrappers import part_for
from theodolite.core.state import untouched
from theodolite.io.batches import Batch, Batches
from theodolite.io.overlapped_work import memory_kept
from theodolite.measure.functional import called_with, held, plain_attention, promoted, stateless

MEMORY = 1 << 30
"""Bytes that the kept graphs may take unless told otherwise."""

LARGEST_DENSE = 5000
"""Matrices of more rows than this are not formed."""

SMALL_SAMPLE = 4096
"""Samples of at most so many numbers are taken in batches of 2048 where tensors are cut into batches."""

Loss = Callable[[Any, Any], Any]
Reduction = Literal["mean", "sum"]
Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Operator:
    """A symmetric matrix known by its products: ``operator(v)`` for one vector (P,) or for rows of a block (k, P).

    ``shapes`` names the parameters that count, in the order of the vector; ``samples`` is how many the data hold;
    ``kept`` says whether the graphs stay in memory; ``sample_bytes`` what the graph of a sample takes there.
    """

    shapes: Mapping[str, torch.Size]
    like: Tensor = field(repr=False)
    samples: int
    kept: bool
    product: Product = field(repr=False)
    sample_bytes: float = 0.0

    @property
    def size(self) -> int:
        """The number of parameters P."""
        return sum(shape.numel() for shape in self.shapes.values())

    def __call__(self, vectors: Tensor) -> Tensor:
        """The matrix times each row."""
        if vectors.shape[-1] != self.size or vectors.ndim not in (1, 2):
            raise InputError(
                f"expected vectors of {self.size} entries, got {tuple(vectors.shape)}; flatten them in order"
            )
        found = self.product(vectors.to(self.like).reshape(-1, self.size)).reshape(vectors.shape)
        if not all(map(torch.isfinite, torch.aminmax(found))):  # no copy of a vector that may be long
            raise InputError(
                "expected finite curvature, got NaN or infinity in a product; are losses and gradients finite?"
            )
        return found

    def dense(self, *, block: int = 64) -> Tensor:
        """The matrix itself, (P, P), for at most `LARGEST_DENSE` parameters."""
        if self.size > LARGEST_DENSE:
            raise InputError(f"expected at most {LARGEST_DENSE} parameters for a matrix, got {self.size}; use products")
        rows = torch.eye(self.size, dtype=self.like.dtype, device=self.like.device)
        return torch.cat([self(part) for part in torch.split(rows, block)])

    def parts(self, vector: Tensor) -> dict[str, Tensor]:
        """A vector cut up into the parameters it belongs to."""
        pieces = torch.split(vector, [shape.numel() for shape in self.shapes.values()])
        return {name: piece.reshape(shape) for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)}


@dataclass(frozen=True)
class Point:
    """A model at its present weights: what is derived by, what stays fixed, the loss, and what both sides are scaled by."""

    model: nn.Module
    parameters: dict[str, Tensor]
    fixed: dict[str, Tensor] = field(repr=False)
    loss: Loss | None = None
    roots: Mapping[str, Tensor] | None = field(default=None, repr=False)

    def output(self, batch: Batch) -> Any:
        """What the loss is given: the answer, or of an answer with named parts its ``logits``."""
        every = {**self.fixed, **self.parameters}
        return part_for(self.loss, called_with(self.model, every, batch.inputs, batch.keywords))

    @contextmanager
    def held(self) -> Iterator[Callable[[Batch], Any]]:
        """`output`, for many batches while the point has the same tensors, whatever comes to be in them."""
        with held(self.model, {**self.fixed, **self.parameters}):
            yield lambda batch: part_for(self.loss, self.model(*batch.inputs, **batch.keywords))

    def value(self, output: Any, batch: Batch) -> Tensor:
        """The loss, one finite number."""
        assert self.loss is not None
        if batch.target is None:
            raise InputError("expected batches with a target for the loss, got inputs alone; pass (inputs, target)")
        value = self.loss(output, batch.target)
        if not isinstance(value, Tensor) or value.numel() != 1:
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InputError(f"expected a loss that is one number, got {got}; average it over the batch")
        if not torch.isfinite(value):
            raise InputError(f"expected a finite loss, got {value.item()}; check the data and the weights")
        return value

    def batches(self, data: Any) -> Iterator[Batch]:
        """Every batch on the model's device, half precision as float32."""
        whole = data if isinstance(data, Batches) else Batches(data, self.model)
        values = sum(tensor[0].numel() for tensor in whole.first().tensors())
        if values <= SMALL_SAMPLE:  # where the cut is ours: larger batches of small samples, fewer and longer products
            whole = replace(whole, batch_size=max(whole.batch_size, 2048))
        for batch in whole:
            moved = batch.on(self.model)
            inputs = tuple(_single(value) for value in moved.inputs)
            yield Batch(inputs, {name: _single(value) for name, value in moved.keywords.items()}, moved.target)

    def join(self, parts: Sequence[Tensor | None], rows: int) -> Tensor:
        """Blocks of derivatives, one a parameter, as rows (k, P); what does not depend on a parameter is zero."""
        own = list(self.parameters.values())
        filled = [
            p.new_zeros(rows, p.numel()) if part is None else part.reshape(rows, -1)
            for p, part in zip(own, parts, strict=True)
        ]
        return torch.cat(filled, dim=1)

    def split(self, vectors: Tensor) -> list[Tensor]:
        """Rows (k, P) as blocks, one a parameter, (k, *shape)."""
        own = list(self.parameters.values())
        pieces = torch.split(vectors, [p.numel() for p in own], dim=1)
        return [piece.reshape(len(vectors), *p.shape) for p, piece in zip(own, pieces, strict=True)]


Graph = Callable[[Point, Batch], tuple[Product, float]]
"""Builds the product with one batch's matrix, and says with which weight the batch counts."""


def point_of(model: nn.Module, loss: Loss | None = None, *, names: Sequence[str] = (), shared: bool = False) -> Point:
    """The model's trainable parameters (tied ones once) as the point where derivatives are taken.

    ``names`` keeps those of the parameters or modules named; frozen ones never count. A copy, unless ``shared``: the memory is
    then the model's own, and the point moves with it.
    """
    net = stateless(model)
    chosen = {
        name: (tensor.detach() if shared else tensor.detach().clone()).requires_grad_()
        for name, tensor in net.parameters.items()
        if not names or any(name == n or name.startswith(f"{n}.") for n in names)
    }
    if not chosen:
        raise InputError(
            f"expected names of trainable parameters or modules, got {list(names)}; see named_parameters()"
        )
    rest = {name: tensor.detach() for name, tensor in net.parameters.items() if name not in chosen}
    return Point(model, chosen, {**net.fixed, **rest}, loss)


def operator_of(
    point: Point,
    data: Any,
    product_graph: Graph,
    *,
    memory: int = MEMORY,
    distributed: bool = False,
    averaged: bool = True,
    sample_bytes: float | None = None,
) -> Operator:
    """Sum the batches' matrices with their weights and, if ``averaged``, divide by the sum of the weights.

    With ``distributed`` every process of the running torch.distributed group holds a part of the data, and all of them
    must make the same calls: the sums go over the group.
    """
    kept, samples, a_sample = _graphs(point, data, product_graph, memory, sample_bytes)
    total = _over_group(torch.tensor(float(samples), dtype=torch.float64), distributed)
    like = next(iter(point.parameters.values())).detach()
    if kept is not None and like.device.type == "cpu":
        memory_kept()

    def product(vectors: Tensor) -> Tensor:
        sums: Tensor | None = None
        weights = torch.zeros((), dtype=torch.float64)
        if kept is not None:
            for part, weight, together in kept:
                sums = _added(sums, _in_blocks(part, vectors, together), weight)
                weights += weight
        else:
            with untouched(point.model), plain_attention():
                for batch in point.batches(data):
                    part, weight = product_graph(point, batch)
                    image = _in_blocks(part, vectors, _together(like, a_sample * len(batch)))
                    sums = _added(sums, image, weight)
                    weights += weight
        sums = _over_group(like.new_zeros(vectors.shape) if sums is None else sums, distributed)
        weights = _over_group(weights, distributed)
        return sums.div_(float(weights)) if averaged else sums

    shapes = {name: p.shape for name, p in point.parameters.items()}
    made = Operator(shapes, like, int(total), kept is not None, product, a_sample)
    if kept is None and sample_bytes is None and not _in_memory(data):
        _check_repeatable(made)
    return made


def _graphs(
    point: Point, data: Any, graph: Graph, memory: int, sample_bytes: float | None
) -> tuple[list[Any] | None, int, float]:
    """The graphs of all batches, or None where they would not fit; the number of samples, and bytes a sample."""
    kept: list[Any] | None = []
    samples, a_sample = 0, sample_bytes or 0.0
    like = next(iter(point.parameters.values()))
    with untouched(point.model), plain_attention():
        for batch in point.batches(data):
            if samples == 0 and sample_bytes is None:
                _check_deterministic(point, batch)
                a_sample = _graph_bytes(point, batch, graph) / len(batch)
            samples += len(batch)
            if a_sample * samples > memory:
                kept = None
            if kept is not None:
                kept.append((*graph(point, batch), _together(like, a_sample * len(batch))))
    return kept, samples, a_sample


def _together(like: Tensor, graph_bytes: float) -> bool:
    """Whether a block of vectors goes through a graph together: on a processor only where the graph fits its cache."""
    return like.device.type != "cpu" or graph_bytes <= 1 << 20


def _added(sums: Tensor | None, image: Tensor, weight: float) -> Tensor:
    """The sum with one more batch: vectors may be as long as all memory that is left, so that none is made."""
    return image.mul_(weight) if sums is None else sums.add_(image, alpha=weight)


def _in_blocks(product: Product, vectors: Tensor, together: bool) -> Tensor:
    """Rows together where that is wanted and the model can be vectorized over them, else one by one."""
    if together and len(vectors) > 1:
        try:
            with plain_attention():
                return product(vectors)
        except RuntimeError:  # an operation that cannot be vectorized
            pass
    if len(vectors) == 1:
        return product(vectors)
    return torch.cat([product(vectors[row : row + 1]) for row in range(len(vectors))])


def derivative(outputs: Sequence[Tensor], inputs: Sequence[Tensor], direction: Sequence[Tensor]) -> list[Tensor | None]:
    r"""$\sum_a\langle v_a,\partial y_a/\partial x_b\rangle$ for a block of vectors, (k, *shape); the graph is kept.

    None where nothing depends on an input.
    """
    live = [(y, v) for y, v in zip(outputs, direction, strict=True) if y.requires_grad]
    if not live:
        return [None] * len(inputs)
    ys, vs = zip(*live, strict=True)
    if len(direction[0]) == 1:
        one: Sequence[Tensor | None] = torch.autograd.grad(
            ys, inputs, [v[0] for v in vs], retain_graph=True, allow_unused=True
        )
        return [None if g is None else g.unsqueeze(0) for g in one]
    return list(torch.autograd.grad(ys, inputs, vs, retain_graph=True, allow_unused=True, is_grads_batched=True))


def _check_deterministic(point: Point, batch: Batch) -> None:
    with torch.no_grad():
        first, second = (next(tensors_in(point.output(batch))) for _ in range(2))
    if not torch.equal(first, second):
        raise InputError(
            "expected the same answer twice in evaluation mode, got two different ones; make the model deterministic "
            "(dropout through nn.Dropout, noise from a fixed seed)"
        )


def _check_repeatable(operator: Operator) -> None:
    """Data that are read again for every product must be the same data."""
    vector = torch.ones(operator.size, dtype=operator.like.dtype, device=operator.like.device)
    first, second = operator(vector), operator(vector)
    if (first - second).norm() > 1e3 * torch.finfo(first.dtype).eps * first.norm():
        raise InputError(
            "expected the same data at every reading, got others; switch augmentation off, or raise memory"
        )


def _in_memory(data: Any) -> bool:
    """Tensors and lists are the same at every reading."""
    source = data.source if isinstance(data, Batches) else data
    return isinstance(source, Tensor | tuple | list)


def _graph_bytes(point: Point, batch: Batch, graph: Graph) -> int:
    """What the graph of a batch keeps, measured on a throw-away copy; what both sides are scaled by is there without it."""
    seen: dict[int, int] = {}
    known = {root.untyped_storage().data_ptr() for root in (point.roots or {}).values()}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        graph(point, batch)
    return sum(size for place, size in seen.items() if place not in known)


def _over_group(tensor: Tensor, distributed: bool) -> Tensor:
    if distributed:
        if not torch.distributed.is_initialized():
            raise InputError("expected a running process group for distributed=True, got none; call init_process_group")
        torch.distributed.all_reduce(tensor)
    return tensor


def _single(value: Any) -> Any:
    return promoted(value) if isinstance(value, Tensor) else value
