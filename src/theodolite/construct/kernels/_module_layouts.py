"""Where the channels of a signal are while a module is read: first, last, or in tokens."""

from collections.abc import Callable
from typing import Any

from torch import fx

from theodolite.core.checks import InputError
from theodolite.theory.kernels import Attention, Average, Convolution, Flatten
from theodolite.theory.kernels._map_sequences import Dense, Normalized, Sum

Program = tuple[Any, ...]


class Turned:
    """Stands at the end of a program while the channels of its images are last."""


def before_turn(program: Program, layer: Callable[[Program, bool], Program]) -> Program:
    """The program with a layer that does not mind where channels are; the turn of the axes stays at its end."""
    turned = bool(program) and isinstance(program[-1], Turned)
    return (*layer(program[:-1], True), Turned()) if turned else layer(program, False)


def image_axes(program: Program) -> int:
    """How many axes the images have here, as far as convolutions tell; 0 for vectors."""
    axes = 0
    for layer in program:
        if isinstance(layer, Convolution):
            axes = len(layer.window)
        elif isinstance(layer, Sum):
            axes = max(axes, image_axes(layer.branch), image_axes(layer.skip))
        elif isinstance(layer, Flatten | Dense) or (isinstance(layer, Average) and not layer.window):
            axes = 0
    return axes


def is_turn(node: fx.Node, axes: int, *, back: bool) -> bool:
    """Whether a call moves the channels of images behind their pixels, or back."""
    given: list[Any] = [a for a in node.args if not isinstance(a, fx.Node)]
    flat = tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else tuple(given)
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    last = 1 + axes
    if not axes or node.kwargs or not all(isinstance(a, int) for a in flat):
        return False
    places = tuple(a % (2 + axes) for a in flat)
    if name == "permute":
        return places == ((0, last, *range(1, last)) if back else (0, *range(2, 2 + axes), 1))
    if name == "movedim":
        return places == ((last, 1) if back else (1, last))
    return axes == 1 and set(places) == {1, 2}


def as_tokens(program: Program, spread: bool = True) -> tuple[Program, bool]:
    """The program on sequences: up to the average or the flattening, linear layers act on each position."""
    found: list[Any] = []
    for layer in program:
        if isinstance(layer, Convolution):
            raise InputError(
                "expected no convolution together with attention, got one; sequences have their channels last there"
            )
        if isinstance(layer, Normalized) and layer.whole:
            raise InputError(
                "expected LayerNorm with attention, got GroupNorm, which takes positions for channels there"
            )
        if isinstance(layer, Sum):
            (branch, one), (skip, two) = as_tokens(layer.branch, spread), as_tokens(layer.skip, spread)
            found.append(Sum(branch, skip))
            spread = one and two
        elif isinstance(layer, Dense) and spread:
            found.append(Convolution(layer, (1,), (1,), (0,), (1,)))
        else:
            spread = spread and not isinstance(layer, Average | Flatten)
            if isinstance(layer, Attention) and not spread:
                raise InputError("expected attention before positions are averaged or flattened, got one behind")
            found.append(layer)
    return tuple(found), spread
