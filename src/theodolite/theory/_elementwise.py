"""Elementwise functions by name, and the check that a callable is one."""

import difflib
import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from theodolite.core.checks import InputError
from theodolite.theory._closed_forms import Nonlinearity

_Elementwise = Callable[[torch.Tensor], torch.Tensor]


def identity(z: torch.Tensor) -> torch.Tensor:
    """The identity.

    >>> identity(torch.tensor(2.0)).item()
    2.0
    """
    return z.clone()


def square(z: torch.Tensor) -> torch.Tensor:
    """The square.

    >>> square(torch.tensor(3.0)).item()
    9.0
    """
    return z * z


def hard_sigmoid(z: torch.Tensor) -> torch.Tensor:
    """The hard sigmoid by a clamp, which can be differentiated twice; torch's own cannot.

    >>> hard_sigmoid(torch.tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return (z / 6 + 0.5).clamp(0.0, 1.0)


OWN: dict[str, _Elementwise] = {"identity": identity, "quadratic": square, "hardsigmoid": hard_sigmoid}
ALIASES = {
    "linear": "identity",
    "swish": "silu",
    "arctan": "atan",
    "square": "quadratic",
    "absolute": "abs",
    "hard_tanh": "hardtanh",
    "hard_swish": "hardswish",
    "hardsilu": "hardswish",
    "hard_sigmoid": "hardsigmoid",
    "log_sigmoid": "logsigmoid",
    "leakyrelu": "leaky_relu",
    "soft_sign": "softsign",
    "soft_plus": "softplus",
    "expit": "sigmoid",
}
MODULES: dict[type[nn.Module], str] = {
    nn.Identity: "identity",
    nn.ReLU: "relu",
    nn.ReLU6: "relu6",
    nn.ELU: "elu",
    nn.SELU: "selu",
    nn.CELU: "celu",
    nn.GELU: "gelu",
    nn.SiLU: "silu",
    nn.Mish: "mish",
    nn.Tanh: "tanh",
    nn.Hardtanh: "hardtanh",
    nn.Hardswish: "hardswish",
    nn.Hardsigmoid: "hardsigmoid",
    nn.Sigmoid: "sigmoid",
    nn.Softplus: "softplus",
    nn.Softsign: "softsign",
    nn.Softshrink: "softshrink",
    nn.LeakyReLU: "leaky_relu",
    nn.LogSigmoid: "logsigmoid",
    nn.Tanhshrink: "tanhshrink",
    nn.PReLU: "prelu",
}
KNOWN = tuple(
    sorted(
        {*MODULES.values(), *OWN, "abs", "atan", "cos", "erf", "exp", "linear", "sin", "swish"} - {MODULES[nn.PReLU]}
    )
)
"""What a message names; the slope of a PReLU is learned, so that it is no function by itself."""


@functools.cache
def nonlinearity(name: str) -> Nonlinearity | None:
    """What the file of that name in ``nonlinearities/`` defines, or None where there is none.

    >>> nonlinearity("relu_squared").function(torch.tensor(3.0)).item()
    9.0
    """
    if name not in _file_names():
        return None
    return importlib.import_module(f"theodolite.theory.nonlinearities.{name}").nonlinearity


@functools.cache
def _file_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (Path(__file__).parent / "nonlinearities").glob("[!_]*.py")))


def named(source: Any, parameters: Mapping[str, Any]) -> tuple[str, _Elementwise]:
    """The name and the function that a name, a callable or a module stands for.

    >>> named("swish", {})[0]
    'silu'
    """
    if isinstance(source, nn.Module):
        name = MODULES.get(type(source), type(source).__name__)
        if name == "hardsigmoid":
            return name, hard_sigmoid
        plain = not isinstance(source, nn.GELU) or source.approximate == "none"
        return (name if plain else f"{name}({source.extra_repr()})"), source
    if type(source).__module__.startswith("numpy"):
        raise InputError(
            f"expected a torch function or a name, got NumPy's {getattr(source, '__name__', source)}; "
            "NumPy's cannot be differentiated, give the name as a word"
        )
    if source is F.hardsigmoid:
        source = hard_sigmoid
    if callable(source):
        return _name_of(source, parameters), functools.partial(source, **parameters) if parameters else source
    if not isinstance(source, str):
        raise InputError(
            f"expected the name of an activation or an elementwise torch callable, got {type(source).__name__}; "
            f"give one of {', '.join((*KNOWN, *_file_names()))}, or a function"
        )
    name = ALIASES.get(source.strip().lower(), source.strip().lower())
    own = nonlinearity(name)
    function = own.function if own else OWN.get(name)
    for library in (F, torch, torch.special):
        function = function or getattr(library, name, None)
    if not callable(function) or name.startswith("_") or name.endswith("_"):
        known = (*KNOWN, *_file_names())
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
        raise InputError(
            f"expected the name of an elementwise function in torch.nn.functional or torch, got {source!r}; "
            f"{hint} Any elementwise torch callable works too."
        )
    if not parameters:
        return name, function
    words = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return f"{name}({words})", functools.partial(function, **parameters)


def _name_of(function: Any, parameters: Mapping[str, Any]) -> str:
    """A known name only for the torch function of that name, called plainly; else what it calls itself, in brackets."""
    if isinstance(function, functools.partial):
        return f"{_name_of(function.func, {})}({', '.join(f'{k}={v}' for k, v in function.keywords.items())})"
    name = ALIASES.get(getattr(function, "__name__", ""), getattr(function, "__name__", type(function).__name__))
    originals = [OWN.get(name), *(getattr(library, name, None) for library in (F, torch, torch.special))]
    if any(function is original for original in originals):
        return name if not parameters else f"{name}({', '.join(f'{k}={v}' for k, v in parameters.items())})"
    return name if name.startswith("<") else f"<{name}>"


def checked(name: str, function: _Elementwise) -> None:
    """Nothing for an elementwise, deterministic, finite function of float64; a ValueError that says why otherwise."""
    z = torch.linspace(-8.0, 8.0, 130, dtype=torch.float64)
    advice = "give a function that maps each number of a float64 tensor by itself, such as torch.tanh"
    try:
        with torch.no_grad(), warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            first: Any = function(z.clone())
            again, zero = function(z.clone()), function(z.new_zeros(3))
            turned, part = function(z.flip(0).reshape(13, 10).clone()), function(z[:37].clone())
    except Exception as error:
        raise InputError(f"expected an elementwise function, got {name}, which fails: {error}; {advice}") from error
    if not isinstance(first, torch.Tensor) or first.shape != z.shape or turned.shape != (13, 10):
        shape = tuple(first.shape) if isinstance(first, torch.Tensor) else type(first).__name__
        raise InputError(f"expected an elementwise function, got {name}, which makes {shape} of shape (130,); {advice}")
    if first.dtype != torch.float64:
        raise InputError(f"expected a function that keeps float64, got {name}, which returns {first.dtype}; {advice}")
    if not (torch.isfinite(first).all() and torch.isfinite(zero).all()):
        raise InputError(f"expected a function finite on the whole line, got {name}, which is not; {advice}")
    if not torch.equal(first, again):
        raise InputError(f"expected a deterministic function, got {name}, which is random; {advice}")
    whole = torch.cat([first, first[:37]])
    if not torch.allclose(torch.cat([turned.reshape(-1).flip(0), part]), whole, rtol=1e-12, atol=1e-12):
        raise InputError(f"expected an elementwise function, got {name}, which mixes its entries; {advice}")
