"""Where a training began and how far it has gone, as far as that is known: nothing is guessed from how a network looks."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core.model_wrappers import copied_model
from theodolite.core.state import untouched
from theodolite.core.subject import Subject
from theodolite.evidence.thresholds import A_FEW, LONG, NOTHING, PART, RARELY, ROUNDING


def origin_tensors(subject: Subject) -> Mapping[str, Tensor] | None:
    """The weights before training by name, read once; None where they are not known."""
    if not subject.origin:
        return None

    def read() -> dict[str, Tensor]:
        return {name: torch.as_tensor(weight.read()) for name, weight in subject.origin.items()}

    return subject.once("origin tensors", read)


def was_trained(subject: Subject) -> bool:
    """Whether steps are known to have been taken: looks of a run, an optimizer's state, or running statistics tell."""
    if subject.run is not None and subject.run.moments:
        return True
    if subject.optimizer is not None and subject.optimizer.state:
        return True
    modules = [] if subject.model is None else list(subject.model.modules())
    counts = (getattr(module, "num_batches_tracked", None) for module in modules)
    if any(isinstance(count, Tensor) and int(count) > 0 for count in counts):
        return True
    return has_moved(subject)


def has_moved(subject: Subject) -> bool:
    """Whether the weights are known to differ from those before training."""
    before = origin_tensors(subject)
    if before is None or subject.model is None:
        return False
    state = subject.model.state_dict()
    return any(
        name in state and state[name].is_floating_point() and not torch.equal(value.to(state[name]), state[name])
        for name, value in before.items()
    )


def steps_made(subject: Subject) -> int:
    """How many steps the run has made, as far as is known; 0 before training, a thousand where only that it ran is known."""
    run = subject.run
    if run is not None and run.moments:
        return max(1, run.last_step, int(run.events.get("optimizer steps", 0.0)))
    counted = _counted(subject)
    if counted:
        return counted
    if not was_trained(subject):
        return 0
    return (run.steps if run is not None and run.steps else 0) or LONG


def steps_are_known(subject: Subject) -> bool:
    """Whether the number of steps is more than a guess."""
    run = subject.run
    return bool(_counted(subject)) or (run is not None and bool(run.moments or run.steps))


def planned_steps(subject: Subject) -> int:
    """Steps made or planned; a thousand where nobody said."""
    run = subject.run
    return (run.steps if run is not None and run.steps else 0) or steps_made(subject) or LONG


def after_steps(subject: Subject) -> str:
    """After how many steps, in words, where that is known."""
    return f"after {steps_made(subject):,} steps" if steps_are_known(subject) else "after training"


def _counted(subject: Subject) -> int:
    """The steps that the optimizer has counted itself, as Adam does; 0 where it keeps no count."""
    states = () if subject.optimizer is None else subject.optimizer.state.values()
    return int(
        max((float(state["step"]) for state in states if isinstance(state, Mapping) and "step" in state), default=0)
    )


def largest_lr(subject: Subject) -> float:
    """The largest step size that the run has used, else that of its schedule; 0: not known."""
    seen = [] if subject.run is None else subject.run.lrs
    groups = [] if subject.optimizer is None else subject.optimizer.param_groups
    base = max((base_lr(group) for group in groups), default=0.0)
    return max(seen) if len(seen) > 1 else max([base, *seen])


def passes(subject: Subject) -> int:
    """Batches whose gradients the run adds up before a step."""
    return 1 if subject.run is None else max(1, int(subject.run.events.get("backward passes", 1.0)))


def clip_as_the_run(subject: Subject, parameters: Iterable[Tensor]) -> None:
    """Clip gradients as the looks have seen that the run does; nothing where it does not."""
    events = {} if subject.run is None else subject.run.events
    if "clip norm" in events:
        nn.utils.clip_grad_norm_(parameters, events["clip norm"])
    elif "clip value" in events:
        nn.utils.clip_grad_value_(parameters, events["clip value"])


def base_lr(group: Mapping[str, Any]) -> float:
    """The step size that a group's schedule is a multiple of; the present one where there is none."""
    return float(group.get("initial_lr", group.get("lr", 0.0)))


def lr_left(subject: Subject) -> float:
    """The present step size over the largest of the run; 1 where no schedule has lowered it."""
    groups = [] if subject.optimizer is None else subject.optimizer.param_groups
    now = max((float(group.get("lr", 0.0)) for group in groups), default=0.0)
    top = largest_lr(subject)
    return min(1.0, now / top) if top else 1.0


def ended_early(subject: Subject) -> bool:
    """Whether a schedule had come to next to nothing when a fifth of the run or more was left, or nobody saw when.

    One that ends with the run, as a line or a cosine does, took nothing away.
    """
    top, rates = largest_lr(subject), [] if subject.run is None else subject.run.rates
    if lr_left(subject) >= RARELY:
        return False
    if len(rates) < A_FEW:
        return True
    awake = max((place for place, (_, lr) in enumerate(rates) if lr >= RARELY * top), default=-1)
    low = rates[min(awake + 1, len(rates) - 1)][0]
    return rates[-1][0] - low >= PART * (rates[-1][0] - rates[0][0])


def is_warming_up(subject: Subject) -> bool:
    """Whether the step still rises at the last look."""
    lrs = [] if subject.run is None else subject.run.lrs
    return len(lrs) > 1 and lrs[-1] >= max(lrs) > (1 + NOTHING) * lrs[0] and lrs[-1] > (1 + ROUNDING) * lrs[-2]


def schedule(subject: Subject, steps: int) -> list[float] | None:
    """The step size at each of the first steps beside the largest, as looks have seen it; None where it did not change.

    Trials that are shorter than the run (``seen["trial steps"]``) go through the whole of it faster: else they would all be
    warm-up.
    """
    if subject.run is None:
        return None
    seen = subject.run.rates
    top = largest_lr(subject)
    if not any(lr > 0 for _, lr in seen):
        return None
    if len(seen) < 2 or not top or max(lr for _, lr in seen) < (1 + NOTHING) * min(lr for _, lr in seen):
        return None
    places, values = zip(*seen, strict=True)
    faster = max(1.0, places[-1] / subject.seen.get("trial steps", math.inf))
    return [float(lr) / top for lr in np.interp(faster * np.arange(steps), places, values)]


def beginning(subject: Subject) -> Mapping[str, Tensor] | None:
    """Where a trial of the whole training begins: the weights before it, else such as layers draw; None: the present ones."""
    known = origin_tensors(subject)
    if known is not None or not was_trained(subject):
        return known
    return subject.once("drawn again", lambda: drawn_anew(subject.model))


def drawn_anew(model: nn.Module | None) -> dict[str, Tensor] | None:
    """The weights with which layers would begin that know how to draw their own; those of frozen ones are as they are."""
    if model is None:
        return None
    with untouched(None):
        copied = copied_model(model)
        torch.manual_seed(0)
        for module in copied.modules():
            draw = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if callable(draw) and all(p.requires_grad for p in module.parameters(recurse=False)):
                with suppress(TypeError):  # one that asks for something to draw by
                    draw()
    return copied.state_dict()


@contextmanager
def at_weights(model: nn.Module, weights: Mapping[str, Tensor] | None) -> Iterator[None]:
    """The model at other weights for a while; the very same numbers are put back."""
    if weights is None:
        yield
        return
    state = model.state_dict()
    kept = {name: value.detach().clone() for name, value in state.items()}
    try:
        load(model, weights)
        yield
    finally:
        with torch.no_grad():
            for name, value in model.state_dict().items():
                value.copy_(kept[name])


@torch.no_grad()
def load(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put weights into a model, those that it has and that fit."""
    state = model.state_dict()
    for name, value in weights.items():
        if name in state and state[name].shape == value.shape:
            state[name].copy_(value)


def decay_of(subject: Subject) -> float:
    """The largest weight decay of the optimizer's groups."""
    groups = [] if subject.optimizer is None else subject.optimizer.param_groups
    return max((float(group.get("weight_decay", 0.0) or 0.0) for group in groups), default=0.0)
