"""A training script as it is, watched without a changed line.

Torch's own global hooks show which module is run and which optimiser steps; thin wrappers around the losses of
torch.nn.functional show what was compared with what. They look until the first steps have shown model, batch, loss and optimiser,
then only the hook of the optimiser is left. Nothing goes to standard output, and random numbers are left as they were.
"""

from __future__ import annotations

import functools
import logging
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.verbs.watching.scene import Level
from theodolite.verbs.watching.starts import bare_model
from theodolite.verbs.watching.training import autocast_now
from theodolite.verbs.watching.watch import Watch

LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "poisson_nll_loss",
    "gaussian_nll_loss",
)
"""Functions of torch.nn.functional whose first two arguments are an output and a target; loss modules call them too."""

PATIENCE = 20
"""Steps after which a script whose model and loss were not found is left alone."""

_DROPPED = ("num_items_in_batch",)
"""Arguments of a model that are about the whole batch, and would be wrong for a part of it."""


@dataclass(frozen=True)
class _Forward:
    """One call of a module: with what, and what came."""

    module: nn.Module
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]
    output: Any


@dataclass(frozen=True)
class _Compared:
    """One call of a loss: the function without its first two arguments, these two, and its value."""

    function: Callable[[Any, Any], Tensor]
    output: Tensor
    target: Any
    value: Tensor


class Watched(nn.Module):
    """The model of a script as a function of one batch by names: ``arg0``, ``arg1``, ... and its keywords.

    It answers the output that the loss is given, or where the model computes its loss itself, that loss.
    """

    def __init__(self, model: nn.Module, *, own_loss: bool) -> None:
        super().__init__()
        self.model, self.own_loss = model, own_loss
        self.training = model.training  # its parts keep the modes that the script gave them

    def forward(self, **batch: Any) -> Any:
        """Call the model as the script does."""
        args = [batch[f"arg{n}"] for n in range(len(batch)) if f"arg{n}" in batch]
        named = {key.removeprefix("key_"): value for key, value in batch.items() if key.startswith("key_")}
        output = self.model(*args, **named)
        return _loss_in(output) if self.own_loss else _tensor_in(output)


@dataclass
class Observer:
    """What the first steps of a script show, and the watch once they have."""

    out: Path
    every: int | Literal["auto"] = "auto"
    level: Level = "standard"
    watch: Watch | None = None
    steps: int = 0
    optimizer: Any = None
    _forward: _Forward | None = None
    _compared: list[_Compared] = field(default_factory=list)
    _backward: bool = False
    _sizes: dict[int, int] = field(default_factory=dict)
    _undo: list[Callable[[], Any]] = field(default_factory=list)
    _looking: bool = False

    def install(self) -> None:
        """Hooks and wrappers, all of which `remove` takes away."""
        from torch.nn.modules.module import register_module_forward_hook
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        handles = [
            register_module_forward_hook(self._ran, with_kwargs=True),
            register_optimizer_step_pre_hook(self._steps),
            register_optimizer_step_post_hook(self._stepped),
        ]
        self._undo = [handle.remove for handle in handles]
        for name in LOSSES:
            whole = getattr(torch.nn.functional, name)
            setattr(torch.nn.functional, name, self._listening(whole))
            self._undo.append(functools.partial(setattr, torch.nn.functional, name, whole))
        backward: Any = torch.Tensor.backward

        @functools.wraps(backward)
        def seen(tensor: Tensor, *args: Any, **keywords: Any) -> Any:
            self._backward = True
            return backward(tensor, *args, **keywords)

        setattr(torch.Tensor, "backward", seen)  # noqa: B010  a method that is put back
        self._undo.append(functools.partial(setattr, torch.Tensor, "backward", backward))

    def remove(self) -> None:
        """Look no longer."""
        for undo in self._undo:
            undo()
        self._undo = []

    def _listening(self, whole: Any) -> Any:
        @functools.wraps(whole)
        def loss(*args: Any, **keywords: Any) -> Any:
            value = whole(*args, **keywords)
            searching = self.watch is None and not self._looking and self.steps <= PATIENCE
            if searching and torch.is_grad_enabled() and isinstance(value, Tensor) and value.requires_grad:
                self._remember(whole, args, keywords, value)
            return value

        return loss

    def _remember(self, whole: Any, args: tuple[Any, ...], keywords: dict[str, Any], value: Tensor) -> None:
        rest = dict(keywords)
        both = [*args[:2], *(rest.pop(name) for name in ("input", "target")[len(args[:2]) :] if name in rest)]
        if len(both) == 2 and isinstance(both[0], Tensor) and value.numel() == 1:
            self._compared.append(_Compared(functools.partial(_called, whole, args[2:], rest), both[0], both[1], value))
            del self._compared[:-4]

    def _ran(self, module: nn.Module, args: Any, keywords: Any, output: Any) -> None:
        if self.watch is not None or self._looking or not module.training or not torch.is_grad_enabled():
            return
        size = self._sizes.get(id(module))
        if size is None:
            size = self._sizes[id(module)] = sum(p.numel() for p in module.parameters() if p.requires_grad)
        held = 0 if self._forward is None else self._sizes[id(self._forward.module)]
        if size > 0 and size >= held:
            self._precision = autocast_now(module)
            self._forward = _Forward(module, args, keywords, output)

    def _steps(self, optimizer: Any, *_: Any) -> None:
        """Before a step of the script: find what is trained, or look at it."""
        if self._looking or (self.optimizer is not None and optimizer is not self.optimizer):
            return
        self._looking = True
        try:
            if self.watch is None and self.steps <= PATIENCE and self._forward is not None and self._backward:
                self._begin(optimizer)
            if self.watch is not None:
                self.watch(self.steps)
        finally:
            self._looking = False

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if not self._looking and (self.optimizer is None or optimizer is self.optimizer):
            self.steps += 1
            if self.steps == PATIENCE and self.watch is None:
                said("no model and loss that can be read again were seen in 20 steps; the script runs on unwatched")
                self._forward, self._compared = None, []

    def _begin(self, optimizer: Any) -> None:
        forward = self._forward
        assert forward is not None
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if not any(id(p) in held for p in forward.module.parameters()):
            return
        probe = _probe_of(forward, self._compared)
        if probe is None:
            return
        model, batch, loss, words = probe
        try:
            self.watch = Watch(
                model,
                optimizer=optimizer,
                probe=[batch],
                loss=loss,
                every=self.every,
                level=self.level,
                page_at=self.out / "run.html",
                autocast=self._precision,
                name=type(bare_model(forward.module)).__name__,
            )
        except (ValueError, TypeError, RuntimeError) as error:
            said(f"{type(forward.module).__name__} cannot be watched: {' '.join(str(error).split())}")
            self.steps = PATIENCE + 1
            return
        self.optimizer = optimizer
        self._forward, self._compared = None, []
        said(
            f"watching {self.watch.subject.name} with {type(optimizer).__name__}, {words}; page: {self.out / 'run.html'}"
        )

    def end(self) -> None:
        """A last look, the page and the numbers."""
        if self.watch is None:
            said("nothing was watched: no step of an optimiser with a loss that can be read again was seen")
            return
        self._looking = True
        watch = self.watch
        if not watch.records or watch.records[-1].step < self.steps:
            watch.look(self.steps)
        watch.close()
        watch.html(self.out / "run.html")
        watch.json(self.out / "run.json")
        said(f"{watch.phase.name}: {watch.phase.reason}")
        said(f"{watch.diagnosis.headline} ({self.out / 'run.html'})")


def run_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    *,
    out: Path,
    every: int | Literal["auto"] = "auto",
    level: Level = "standard",
) -> int:
    """Run a script as ``python script arguments`` would, watched; its exit status.

    The page ``run.html`` and the numbers ``run.json`` are in ``out`` at the end; findings are on standard error as they appear.
    """
    path = Path(script)
    if not path.is_file():
        raise ValueError(f"expected a script that can be read, got {script}; pass its path")
    log = logging.getLogger("theodolite")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("theodolite: %(message)s"))
    log.addHandler(handler)
    log.propagate = False
    observer = Observer(out, every, level)
    before = list(sys.argv), list(sys.path)
    sys.argv, sys.path[0] = [str(script), *arguments], str(path.resolve().parent)
    observer.install()
    try:
        status = _status(path)
    finally:
        observer.remove()
        sys.argv, sys.path[:] = before
    try:
        sys.stdout.flush()
        observer.end()
    except Exception as error:  # the script is over and its status is its own
        said(f"the run could not be told: {type(error).__name__}: {' '.join(str(error).split())}")
    finally:
        log.removeHandler(handler)
        log.propagate = True
    return status


def said(words: str) -> None:
    """One line on standard error; only the first of several processes speaks."""
    from theodolite.verbs.watching.training import is_silent

    if not is_silent():
        print(f"theodolite: {words}", file=sys.stderr, flush=True)


def _status(path: Path) -> int:
    """Run it, and the exit status that Python would give; a traceback begins in the script."""
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and Path(trace.tb_frame.f_code.co_filename).resolve() != path.resolve():
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace or error.__traceback__)
        return 1
    return 0


def _probe_of(forward: _Forward, compared: Sequence[_Compared]) -> tuple[nn.Module, dict[str, Any], Any, str] | None:
    """Model, batch and loss as a watch takes them, and what was seen in words."""
    model = bare_model(forward.module)  # a look is on one process: the wrapper would wait for the others
    batch = {f"arg{n}": _kept(value) for n, value in enumerate(forward.args)}
    batch |= {f"key_{name}": _kept(value) for name, value in forward.keywords.items() if name not in _DROPPED}
    first = next((value for value in batch.values() if isinstance(value, Tensor) and value.ndim), None)
    if first is None:
        return None
    if _loss_in(forward.output) is not None:
        words = "whose loss the model computes itself"
        return Watched(model, own_loss=True), {**batch, "y": torch.zeros(len(first))}, _itself, words
    with suppress(TypeError, StopIteration):
        output = _tensor_in(forward.output)
        for call in reversed(compared):
            same = call.output is output or (
                call.output.numel() == output.numel()
                and call.output.untyped_storage().data_ptr() == output.untyped_storage().data_ptr()
            )
            if same and isinstance(call.target, Tensor) and call.target.numel() % len(first) == 0:
                shapes = call.output.shape[1:], call.target.shape[1:]
                target = _kept(call.target).reshape(len(first), -1, *shapes[1])
                target = target[:, 0] if target.shape[1] == 1 else target
                loss = functools.partial(_compared_again, call.function, shapes)
                return (Watched(model, own_loss=False), {**batch, "y": target}, loss, f"loss {_name(call.function)}")
    return None


def _compared_again(function: Any, shapes: tuple[Any, Any], output: Any, target: Any) -> Tensor:
    """The loss of the script on an output and a target of another number of samples."""
    found: Tensor = function(output.reshape(-1, *shapes[0]), target.reshape(-1, *shapes[1]))
    return found


def _called(whole: Any, rest: tuple[Any, ...], keywords: Mapping[str, Any], output: Any, target: Any) -> Any:
    return whole(output, target, *rest, **keywords)


def _name(function: Any) -> str:
    return str(function.args[0].__name__)


def _itself(output: Any, target: Any) -> Tensor:
    value: Tensor = output
    return value


def _loss_in(output: Any) -> Tensor | None:
    """The loss that an answer holds under that name."""
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return found if isinstance(found, Tensor) and found.numel() == 1 else None


def _tensor_in(output: Any) -> Tensor:
    from theodolite.measure import first_tensor

    return first_tensor(output)


def _kept(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value
