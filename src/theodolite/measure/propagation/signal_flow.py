"""Norms and correlations of signals through the layers of any module, and which activation feeds each layer."""

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from theodolite.core.checks import InputError
from theodolite.measure.propagation.weight_spread import _not_sums, fan_in

ACTIVATIONS = frozenset(
    {
        "abs",
        "arctan",
        "atan",
        "celu",
        "clamp",
        "cos",
        "elu",
        "erf",
        "exp",
        "gelu",
        "hardshrink",
        "hardsigmoid",
        "hardswish",
        "hardtanh",
        "leaky_relu",
        "logsigmoid",
        "log_sigmoid",
        "mish",
        "relu",
        "relu6",
        "rrelu",
        "selu",
        "sigmoid",
        "silu",
        "sin",
        "sinh",
        "softplus",
        "softshrink",
        "softsign",
        "square",
        "tan",
        "tanh",
        "tanhshrink",
        "threshold",
    }
)
SHAPES = frozenset(
    {
        "clone",
        "contiguous",
        "detach",
        "double",
        "flatten",
        "float",
        "movedim",
        "permute",
        "reshape",
        "squeeze",
        "swapaxes",
        "t",
        "to",
        "transpose",
        "type",
        "unflatten",
        "unsqueeze",
        "view",
    }
)
EXACT_NUMBERS, MOST_NUMBERS, FEWEST_SAMPLES = 1 << 21, 1 << 22, 32
"""Numbers behind a layer that are taken in double precision, that are looked at at all, and samples whatever their size."""

WORDS = {
    "add": "a sum",
    "sub": "a difference",
    "mul": "a product",
    "cat": "a concatenation",
    "matmul": "a matrix product",
    "softmax": "a softmax",
    "mean": "a mean",
    "linear": "a linear map",
    "scaled_dot_product_attention": "attention",
}


@dataclass(frozen=True)
class SignalStep:
    """One thing that happened to a signal: ``function`` is what to apply when it is an activation, else None."""

    name: str
    function: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True, kw_only=True)
class Signal:
    """What a layer with weights made of a batch.

    ``mean_square`` is the mean over samples of $|z|^2/n$ over the n units (and all positions) with its standard
    error and its ``spread`` over samples, ``cosine`` the mean over pairs of samples, likewise. ``weight_variance``
    is the mean square of the weights times ``fan_in``. ``activation`` and ``function`` say what fed the layer, when
    that was the layer before through one elementwise function; else they are None and ``between`` says what came
    between.
    """

    layer: str
    kind: str
    units: int
    mean_square: float
    stderr: float
    spread: float
    cosine: float
    cosine_stderr: float
    cosine_spread: float
    fan_in: int
    weight_variance: float
    bias_variance: float | None
    activation: str | None
    function: Callable[[Tensor], Tensor] | None
    between: str


@torch.no_grad()
def signals(model: nn.Module, *inputs: Any, **keywords: Any) -> tuple[Signal, ...]:
    """Each layer that multiplies by weights, in the order in which it ran on ``model(*inputs, **keywords)``.

    A layer that runs twice gives two records. Nothing of the model is changed and no hook is left behind.

    >>> model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    >>> [(signal.layer, signal.activation, signal.between) for signal in signals(model, torch.randn(8, 3))]
    [('0', None, 'the input'), ('2', 'tanh', '')]
    """
    found: list[Signal] = []
    trace = Trace()
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if is_matrix_layer(module):
                hook = functools.partial(_record, name, trace, found)
                stack.callback(module.register_forward_hook(hook, with_kwargs=True).remove)
            elif not any(module.children()) and not isinstance(module, nn.Dropout):
                stack.callback(module.register_forward_hook(functools.partial(_simplify, trace)).remove)
        with trace:
            model(*inputs, **keywords)
    return tuple(found)


def is_matrix_layer(module: nn.Module) -> bool:
    """Whether the module multiplies by a matrix (or kernel) of weights of its own."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim >= 2 and not isinstance(module, _not_sums())


class Trace(TorchFunctionMode):
    """Sees every torch function and remembers, for each tensor, what happened since the layer it came from."""

    def __init__(self) -> None:
        super().__init__()
        self.past: Any = WeakIdKeyDictionary()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function and extend the past of its inputs to its outputs."""
        kwargs = kwargs or {}
        known = [self.past[t] for t in _tensors((args, kwargs)) if t in self.past]
        result = func(*args, **kwargs)
        name = str(getattr(func, "__name__", func)).strip("_")
        if known:
            past = max(known, key=len)
            step = _step(func, name, args, kwargs)
            for out in _tensors(result):
                self.past[out] = past if step is None and len(known) == 1 else (*past, step or SignalStep("a choice"))
        return result


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [t for member in value for t in _tensors(member)] if isinstance(value, tuple | list) else []


def _step(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SignalStep | None:
    """What a call does to a signal; None when it only changes the shape."""
    name = name.removesuffix("_").removeprefix("i") if name in ("iadd", "imul", "isub") else name.removesuffix("_")
    if name in SHAPES or name == "get":  # reading .T, .mT or .data
        return None
    if "dropout" in name and not (kwargs.get("training", args[2] if len(args) > 2 else True)):
        return None
    if name not in ACTIVATIONS:
        kinds = [words for part, words in (("norm", "a normalization"), ("pool", "pooling")) if part in name]
        words = kinds[0] if kinds else WORDS.get(name)
        return SignalStep(f"{words} ({name})" if words else name)
    plain = getattr(F, name, None) or getattr(torch, name, None) or func
    rest = {key: value for key, value in kwargs.items() if key not in ("inplace", "input") and value != "none"}
    extra = tuple(args[1:])
    if extra and extra[-1] is False:  # F.relu(z, False): an inplace flag given by position
        extra = extra[:-1]
    if not rest and not extra:
        return SignalStep(name, plain)
    said = ", ".join([*(f"{value:g}" for value in extra), *(f"{key}={value}" for key, value in rest.items())])
    return SignalStep(
        f"{name}({said})",
        functools.partial(_applied, plain, extra, rest) if extra else functools.partial(plain, **rest),
    )


def _applied(function: Any, extra: tuple[Any, ...], keywords: dict[str, Any], z: Tensor) -> Tensor:
    return function(z, *extra, **keywords)


def _record(
    name: str, trace: Trace, found: list[Signal], module: nn.Module, args: Any, kwargs: Any, output: Any
) -> None:
    given = _tensors((args, kwargs))
    past = trace.past.get(given[0]) if given else None
    z = output if isinstance(output, Tensor) else _tensors(output)[0]
    with _untraced():
        found.append(_signal(name, module, z.detach(), past))
        if past is None and len(found) > 1:
            found[-1] = replace(found[-1], between="no layer, but functions of the input")
    trace.past[z] = ()


def _untraced() -> Any:
    return torch._C.DisableTorchFunction()


def _simplify(trace: Trace, module: nn.Module, args: Any, output: Any) -> None:
    """Take a whole module for one activation when it acts elementwise, whatever functions it is made of."""
    given = _tensors(args)
    if len(given) != 1 or not isinstance(output, Tensor) or output not in trace.past or given[0] not in trace.past:
        return
    before, after = trace.past[given[0]], trace.past[output]
    new = after[len(before) :]
    if (len(new) == 1 and new[0].function is not None) or not new:
        return
    with _untraced():
        if output.shape == given[0].shape and _is_elementwise(module, given[0]):
            trace.past[output] = (*before, SignalStep(type(module).__name__, module))


def _is_elementwise(module: nn.Module, like: Tensor) -> bool:
    z = torch.linspace(-3.0, 3.0, 64, dtype=like.dtype, device=like.device)
    try:
        whole, part = module.forward(z.clone()), module.forward(z[5:9].clone())
        return torch.allclose(whole.flip(0), module.forward(z.flip(0))) and torch.allclose(whole[5:9], part)
    except Exception:
        return False  # it wants another shape: no elementwise function


def _signal(name: str, module: nn.Module, z: Tensor, past: tuple[SignalStep, ...] | None) -> Signal:
    weight, bias = module.weight, getattr(module, "bias", None)
    assert isinstance(weight, Tensor)
    if len(z) < 2:
        raise InputError(f"expected a batch of at least two samples, got {len(z)}; give more")
    power, cosines = _power_and_cosines(z.reshape(len(z), -1))
    cosine, cosine_stderr, cosine_spread = _pair_statistics(cosines)
    inputs = weight.shape[0] if type(module).__name__ == "Conv1D" else fan_in(tuple(weight.shape), module)
    activation = None
    if past is not None and len(past) <= 1:
        activation = past[0] if past else SignalStep("identity", torch.clone)
    known = activation is not None and activation.function is not None
    units = z.shape[1] if "Conv" in type(module).__name__ and weight.ndim > 2 else z.shape[-1]
    return Signal(
        layer=name,
        kind=type(module).__name__,
        units=units,
        mean_square=power.mean().item(),
        stderr=power.std().item() / math.sqrt(len(power)),
        spread=power.std().item(),
        cosine=cosine,
        cosine_stderr=cosine_stderr,
        cosine_spread=cosine_spread,
        fan_in=inputs,
        weight_variance=weight.to(torch.float64).square().mean().item() * inputs,
        bias_variance=bias.to(torch.float64).square().mean().item() if isinstance(bias, Tensor) else None,
        activation=activation.name if activation and known else None,
        function=activation.function if activation else None,
        between="" if known else "the input" if past is None else _path_words([step.name for step in past]),
    )


def _path_words(steps: Sequence[str]) -> str:
    """What came between, each kind once: in a residual network the sums of all blocks before lie on the way.

    >>> _path_words(["relu", "a sum (add)", "a sum (add)"]), _path_words(["relu", "a mean (mean)"])
    ('relu, then a sum (add), repeatedly', 'relu, then a mean (mean)')
    """
    kinds = dict.fromkeys(steps)
    return ", then ".join(kinds) + (", repeatedly" if len(kinds) < len(steps) else "")


def _power_and_cosines(z: Tensor) -> tuple[Tensor, Tensor]:
    """The mean square of each sample, and the cosines between those that are not zero, (samples, samples).

    Large feature maps are taken in single precision, which knows six digits of a mean, and of some of the samples.
    """
    few = max(MOST_NUMBERS // z.shape[1], FEWEST_SAMPLES)
    z = z[:few].to(torch.float64 if z.numel() <= EXACT_NUMBERS or z.dtype == torch.float64 else torch.float32)
    power = z.square().mean(1)
    unit = z / z.norm(dim=1, keepdim=True).clamp(min=torch.finfo(z.dtype).tiny)
    alive = unit[power > 0]
    return power.double(), (alive @ alive.mT).double()


def _pair_statistics(matrix: Tensor) -> tuple[float, float, float]:
    """The mean over pairs of samples, its standard error and the spread over pairs; not numbers for fewer than two."""
    n = len(matrix)
    if n < 2:
        return math.nan, math.nan, math.nan
    pairs = matrix[~torch.eye(n, dtype=torch.bool, device=matrix.device)].reshape(n, n - 1)
    rows = pairs.mean(1)  # the mean over pairs varies twice as much as the mean of these would
    return pairs.mean().item(), 2 * rows.std().item() / math.sqrt(n), pairs.std(correction=0).item()
