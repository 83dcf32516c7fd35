"""Exact facts about a model and its optimizer that no training should show; each is a few comparisons, without a pass."""

import random
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from theodolite.core.state import untouched
from theodolite.io.batches import Batch


def parameters_replaced(model: nn.Module, optimizer: Any) -> tuple[str, ...]:
    """Trainable parameters in no group for which the optimizer holds a tensor of the same shape that is not the model's."""
    own = {id(p) for p in model.parameters()}
    held = [p for group in optimizer.param_groups for p in group["params"]]
    strangers = [tuple(p.shape) for p in held if id(p) not in own]
    ids, found = {id(p) for p in held}, []
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        if parameter.requires_grad and id(parameter) not in ids and shape in strangers:
            strangers.remove(shape)
            found.append(name)
    return tuple(found)


def generator_shared(loader: Any) -> tuple[str, ...]:
    """How many workers of a loader copy a random generator that its data set holds, and its name; nothing where none does."""
    workers = getattr(loader, "num_workers", 0)
    if not isinstance(workers, int) or workers < 2 or getattr(loader, "worker_init_fn", None) is not None:
        return ()
    import numpy as np

    kinds = (np.random.Generator, np.random.RandomState, torch.Generator, random.Random)
    name = next(_held(getattr(loader, "dataset", None), kinds), None)
    return () if name is None else (str(workers), name)


def _held(owner: Any, kinds: tuple[type, ...], depth: int = 3) -> Iterator[str]:
    """Names of attributes of these kinds that samples are drawn with, also of transforms and of data sets within."""
    for name, value in getattr(owner, "__dict__", {}).items():
        if isinstance(value, kinds):
            yield from [name] if name in _read_by_samples(type(owner)) else []
        elif depth and not isinstance(value, type | Tensor | nn.Module):
            for member in value[:20] if isinstance(value, list | tuple) else [value]:
                yield from (f"{name}.{inner}" for inner in _held(member, kinds, depth - 1))


SAMPLES = ("__getitem__", "__getitems__", "__iter__", "__call__", "forward")
"""What a worker calls for samples: what only the constructor draws is drawn once, before there are workers."""


def _read_by_samples(kind: type) -> set[str]:
    """The names of attributes that these methods read, and those that they call."""
    methods = {
        name: getattr(value, "__code__", None) for own in reversed(kind.__mro__) for name, value in vars(own).items()
    }
    waiting = [methods.get(name) for name in SAMPLES]
    read: set[str] = set()
    while waiting:
        code = waiting.pop()
        if code is not None:
            new = set(code.co_names) - read
            read |= new
            waiting += [methods.get(name) for name in new]
            waiting += [within for within in code.co_consts if hasattr(within, "co_names")]
    return read


def unregistered(model: nn.Module, held: Collection[int]) -> tuple[str, ...]:
    """Names of plain lists of layers and of plain tensors that have gradients, which no module knows of and no group holds."""
    own = {id(m) for m in model.modules()}
    return tuple(
        f"{path}.{name}".lstrip(".")
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if any(p.grad is not None and id(p) not in held for p in _plain_leaves(name, value, own))
    )


def _plain_leaves(name: str, value: Any, own: Collection[int]) -> Iterator[Tensor]:
    """Tensors that ask for a gradient in an attribute of a module that is none of its parameters, buffers and submodules."""
    if name not in ("_modules", "_parameters", "_buffers") and isinstance(value, Tensor | list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else [value] if isinstance(value, Tensor) else value:
            if isinstance(part, nn.Module) and id(part) not in own:
                yield from (p for p in part.parameters() if p.requires_grad)
            elif isinstance(part, Tensor) and part.is_leaf and part.requires_grad and part is value:
                yield part


def checkpoint_left_out(module: nn.Module, state: Any, found: Any) -> tuple[str, ...]:
    """What a module did not take of a file, and what to type.

    Only where it took none of them, or where half of the file's numbers would fit tensors that are missing but for the first
    part of their names.
    """
    odd, missing = list(getattr(found, "unexpected_keys", ())), list(getattr(found, "missing_keys", ()))
    own = module.state_dict() if odd else {}
    pairs = {name: next((other for other in missing if _renamed(name, other, state, own)), "") for name in odd}
    fit = [name for name, other in pairs.items() if other]
    numbers = {name: value.numel() for name, value in state.items() if isinstance(value, Tensor)} if odd else {}
    if not odd or (len(odd) < len(state) and 2 * sum(numbers[name] for name in fit) < sum(numbers.values())):
        return ()
    first = fit[0] if fit else odd[0]
    names = f"the file calls them {first}, the model {pairs[first] or next(iter(own), 'none')}"
    return (
        f"load_state_dict(strict=False) did not load {len(odd):,} tensors into {type(module).__name__}: {names}",
        'rename them before loading: {name.removeprefix("module."): value for name, value in state.items()}',
    )


def restored_itself(module: nn.Module, state: Any, *, trained: bool) -> tuple[str, ...]:
    """What is said where a module loads the very tensors that it has, before training or after it."""
    own = {name: value.data_ptr() for name, value in module.state_dict().items() if value.numel()}
    given = {name: value for name, value in state.items() if isinstance(value, Tensor) and value.numel()}
    if not own or own.keys() != given.keys() or any(value.data_ptr() != own[name] for name, value in given.items()):
        return ()
    if not trained:
        return (
            f"load_state_dict gave {type(module).__name__} its own tensors: nothing was loaded, and it keeps its first weights",
            "compare the names in the file with those of model.state_dict() before any are left out",
        )
    return (
        f"load_state_dict gave {type(module).__name__} its own tensors, which training has changed: nothing was restored",
        "best = copy.deepcopy(model.state_dict()), which keeps the weights as they are at that step",
    )


LEAST, ENTRIES = 64, 256
"""Entries from which on a matrix is told from others, and how many of them are kept."""


@torch.no_grad()
def entries_of(tensor: Tensor) -> Tensor:
    """Some entries of a tensor, spread over it."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // ENTRIES)][:ENTRIES].double().cpu().clone()


def is_unrelated(one: Tensor, other: Tensor) -> bool:
    """Whether the correlation of two draws is no more than that of independent ones, within four errors."""
    if (
        len(one) < LEAST
        or one.shape != other.shape
        or not bool(torch.isfinite(one).all() & torch.isfinite(other).all())
    ):
        return False
    one, other = one - one.mean(), other - other.mean()
    size = float(one.norm() * other.norm())
    return size > 0 and abs(float(one @ other)) < 4 * size / len(one) ** 0.5


NAMED = ("lr", "learning_rate")


def lr_ignored(optimizer: Any) -> tuple[str, ...]:
    """A step size that a script sets where no optimizer of torch reads it, while that of the groups stays as it was made."""
    if not type(optimizer).__module__.startswith("torch.optim"):
        return ()
    groups = optimizer.param_groups
    told = {f"optimizer.{name}": vars(optimizer)[name] for name in NAMED if name in vars(optimizer)}
    told |= {f'group["{key}"]': g[key] for g in groups for key in g if key.lower() in NAMED and key != "lr"}
    made = optimizer.defaults.get("lr")
    for name, value in told.items():
        if all(g["lr"] == made != value for g in groups):
            return (
                f"{name} = {value:g} has no effect: no step reads it, and the learning rate is still {made:g}",
                'for group in optimizer.param_groups: group["lr"] = lr',
            )
    return ()


FREEZES = re.compile("requires?_grads?|require_gradients?", re.IGNORECASE)


def freeze_ignored(modules: Iterable[nn.Module], held: Iterable[Tensor]) -> tuple[str, ...]:
    """What a script sets to freeze weights, on layers or parameters, and torch does not read, while an optimizer moves them."""
    trained = {id(p): p for p in held if p.requires_grad}
    owners = [("p", p, [p]) for p in trained.values()] + [("layer", m, list(m.parameters())) for m in modules]
    told = [(f"{name}.{key}", own) for name, owner, own in owners for key in _freezes(owner)]
    moved = {id(p): p.numel() for _, own in told for p in own if id(p) in trained}
    if not moved:
        return ()
    return (
        f"{told[0][0]} = False freezes nothing: torch does not read it, and {sum(moved.values()):,} weights there are trained",
        "layer.requires_grad_(False), or p.requires_grad = False for each of its parameters",
    )


def _freezes(owner: Any) -> list[str]:
    return [name for name, value in vars(owner).items() if value is False and FREEZES.fullmatch(name)]


def _renamed(name: str, other: str, state: Any, own: Any) -> bool:
    tails = {name, name.partition(".")[2]} & {other, other.partition(".")[2]}
    fits = isinstance(state[name], Tensor) and state[name].shape == own[other].shape
    return fits and any("." in tail for tail in tails)


def tied_names(model: nn.Module) -> tuple[tuple[str, ...], ...]:
    """The names that have one parameter together."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return tuple(tuple(own) for own in names.values() if len(own) > 1)


def parted_copies(model: nn.Module) -> tuple[tuple[str, str], ...]:
    """An embedding and an output layer that are two tensors with the very same entries: tied once, and copied apart."""
    modules = dict(model.named_modules())
    tables = {name: m.weight for name, m in modules.items() if isinstance(m, nn.Embedding)}
    layers = {name: m.weight for name, m in modules.items() if isinstance(m, nn.Linear)}
    return tuple(
        (f"{one}.weight", f"{other}.weight")
        for one, a in tables.items()
        for other, b in layers.items()
        if a is not b and a.shape == b.shape and a.requires_grad and b.requires_grad and _same_and_drawn(a, b)
    )


def _same_and_drawn(one: Tensor, other: Tensor) -> bool:
    corner = one.detach().reshape(-1)[:64]
    return (
        bool((corner != corner[0]).any())
        and torch.equal(corner, other.detach().reshape(-1)[:64])
        and torch.equal(one, other)
    )


def state_rounded(optimizer: Any) -> tuple[str, ...]:
    """The type of a running mean of squares that a step can change by less than rounding alone, and its decay."""
    for group in optimizer.param_groups:
        decay = group["betas"][1] if "betas" in group else group.get("alpha", 0.0)
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            mean = state.get("exp_avg_sq", state.get("square_avg")) if isinstance(state, dict) else None
            if isinstance(mean, Tensor) and mean.is_floating_point() and 1 - decay < torch.finfo(mean.dtype).eps / 4:
                return str(mean.dtype).removeprefix("torch."), f"{decay:g}"
    return ()


def not_finite(model: nn.Module) -> tuple[str, ...]:
    """Names of floating parameters and running statistics that hold NaN or infinite entries."""
    tensors = [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if "running" in n)]
    named = [(name, tensor) for name, tensor in tensors if tensor.is_floating_point() and not tensor.is_sparse]
    if not named:
        return ()
    sums = torch.stack([tensor.detach().sum(dtype=torch.float32).cpu() for _, tensor in named])
    odd = [pair for pair, fine in zip(named, torch.isfinite(sums).tolist(), strict=True) if not fine]
    return tuple(name for name, tensor in odd if not bool(torch.isfinite(tensor).all()))


def layers_of_training(model: nn.Module) -> list[nn.Module]:
    """Layers that do another thing in training than in evaluation: dropout, and normalization over batches."""
    found = []
    for module in model.modules():
        drops = isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0
        normalizes = isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats
        drops |= isinstance(module, nn.RNNBase | nn.MultiheadAttention) and float(module.dropout) > 0
        if drops or normalizes:
            found.append(module)
    return found


class DropsAlways(TorchFunctionMode):
    """Notes functions that drop at random although the model is in evaluation mode: ``F.dropout(x)`` without ``training=``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, None] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call it, with a note where it drops."""
        keywords, name = kwargs or {}, getattr(func, "__name__", "")
        if "dropout" in name and name in vars(torch.nn.functional):
            rate, on = (args[n] if len(args) > n else keywords.get(key, usual) for n, key, usual in _DROPOUT)
            if on and rate:
                self.found[f"F.{name}"] = None
        elif name == "scaled_dot_product_attention" and (args[4] if len(args) > 4 else keywords.get("dropout_p")):
            self.found[f"F.{name}(dropout_p=...)"] = None
        return func(*args, **keywords)


_DROPOUT = (1, "p", 0.5), (2, "training", True)
"""Place, name and default of the arguments of the dropout functions."""


def drops_always(model: nn.Module, batch: Batch) -> tuple[str, ...]:
    """Functions by which a model in evaluation mode drops at random."""
    with untouched(model), torch.no_grad(), DropsAlways() as mode:
        model.eval()
        model(*batch.inputs, **batch.keywords)
    return tuple(mode.found)


def configured_ties(parts: Iterable[nn.Module]) -> list[tuple[str, str]]:
    """The embedding and the output layer of a model whose configuration ties them, where they are two tensors."""
    found = []
    for part in parts:
        wanted = getattr(getattr(part, "config", None), "tie_word_embeddings", False)
        getters = [getattr(part, name, None) for name in ("get_input_embeddings", "get_output_embeddings")]
        if wanted and all(callable(get) for get in getters):
            one, other = (getattr(get(), "weight", None) for get in getters)  # type: ignore[misc]
            if isinstance(one, Tensor) and isinstance(other, Tensor) and one is not other and one.shape == other.shape:
                found.append(("the input embeddings", "the output embeddings (config.tie_word_embeddings)"))
    return found
