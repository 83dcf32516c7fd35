"""A model whose parameters are spread over processes (FSDP2's ``fully_shard``, DTensor), gathered whole where it is looked at.

Every process makes the same calls at the same steps: those of a number of steps are known to all, and with ``every="auto"`` the
first process tells the next step at each look. The first one keeps a plain copy of the model and of its optimizer, whose weights
and state are refreshed before a look; looks and trials are on the copy alone, so that no other process waits within them.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core.checks import InputError

COPIES = 4
"""Whole copies that the first process holds at most: the weights, those before a step, and two of an optimizer's state."""


def is_sharded(model: nn.Module) -> bool:
    """Whether some parameters are spread over processes."""
    if any("FullyShardedDataParallel" in type(module).__name__ for module in model.modules()):
        raise InputError(
            "expected parameters that a watch can gather, got FSDP1; shard the model with fully_shard (FSDP2)"
        )
    return any(hasattr(p, "placements") for p in model.parameters())


class Gathered:
    """``model`` and ``optimizer`` are plain copies on the first process; on the others nothing is kept for them."""

    def __init__(self, model: nn.Module, optimizer: Any) -> None:
        self._sharded = dict(model.named_parameters())  # a model in use may show other tensors in their place
        self._buffers = dict(model.named_buffers())
        self.real, self._optimizer = model, optimizer
        self._before: dict[str, Tensor] = {}
        self.first = torch.distributed.get_rank() == 0
        self._check_room()
        self.model = _plain_copy(model)
        self.optimizer = None if optimizer is None else self._plain_optimizer(optimizer)
        self.near, self.pulled = True, set[str]()
        self._handles: list[Any] = []
        if optimizer is not None:
            self._handles = [
                optimizer.register_step_pre_hook(self._steps),
                optimizer.register_step_post_hook(self._stepped),
            ]

    def _check_room(self) -> None:
        parameter = next(iter(self._sharded.values()))
        if parameter.device.type == "cuda":
            needed = COPIES * sum(p.numel() * p.element_size() for p in self._sharded.values())
            free = torch.tensor(torch.cuda.mem_get_info(parameter.device)[0], device=parameter.device)
            torch.distributed.broadcast(free, 0)  # all of them go on, or none
            if needed > int(free):
                raise InputError(
                    f"expected {needed / 2**30:.1f} GiB free on the first process for whole copies of a sharded model, got "
                    f"{int(free) / 2**30:.1f}; watch a smaller version of it"
                )

    def settle(self) -> None:
        """The watch is made: what only the first process looks at takes no memory on the others."""
        if not self.first:
            self.model.to("meta")

    def replaced(self, part: nn.Module) -> nn.Module:
        """The copy of a part that a script calls; others are as they are."""
        return self.model if part is self.real else part

    def remove(self) -> None:
        """Watch no longer."""
        for handle in self._handles:
            handle.remove()

    def _steps(self, *_: Any) -> None:
        if self.near:
            self._before = {name: p.detach().clone() for name, p in self._sharded.items()}
        self._call_hooks("_optimizer_step_pre_hooks")

    def _stepped(self, *_: Any) -> None:
        if self.near:
            self.pulled.update(name for name, p in self._sharded.items() if p.grad is not None)
        self._call_hooks("_optimizer_step_post_hooks")

    def _call_hooks(self, hooks: str) -> None:
        """What listens to the copy's optimizer hears of the real one's steps."""
        for hook in list(getattr(self.optimizer, hooks).values()) if self.first else ():
            hook(self.optimizer, (), {})

    def refresh(self) -> dict[int, Tensor]:
        """Gather weights, buffers and the optimizer's state, on all processes at once.

        The weights before the last step, by the identity of the copy's parameters that had a gradient in it.
        """
        before: dict[int, Tensor] = {}
        own = dict(self.model.named_parameters())
        for name, parameter in self._sharded.items():
            weights, earlier = _whole(parameter), _whole(self._before.get(name))
            state = getattr(self._optimizer, "state", {}).get(parameter, {})
            gathered = {key: _whole(value) for key, value in state.items()}
            if self.first:
                with torch.no_grad():
                    own[name].copy_(weights)
                if earlier is not None and name in self.pulled:
                    before[id(own[name])] = earlier
                if gathered and self.optimizer is not None:
                    self.optimizer.state[own[name]] = gathered
        self._before = {}
        if self.first:
            for name, buffer in self.model.named_buffers():
                buffer.copy_(self._buffers[name])
            for group, real in zip(*(o.param_groups for o in (self.optimizer, self._optimizer) if o), strict=True):
                group.update({name: value for name, value in real.items() if name != "params"})
        return before

    def agreed(self, number: float) -> float:
        """The first process's number, on all of them."""
        parameter = next(iter(self._sharded.values()))
        told = torch.tensor(float(number), dtype=torch.float64, device=parameter.device)
        torch.distributed.broadcast(told, 0)
        return float(told)

    def _plain_optimizer(self, optimizer: Any) -> Any:
        places = {id(p): name for name, p in self._sharded.items()}
        own = dict(self.model.named_parameters())
        made = copy.copy(optimizer)
        made.param_groups = [
            {**group, "params": [own[places[id(p)]] for p in group["params"] if id(p) in places]}
            for group in optimizer.param_groups
        ]
        made.state = type(optimizer.state)(dict)
        for name, value in vars(optimizer).items():
            if name.endswith("_hooks"):
                setattr(made, name, type(value)())
        return made


def _whole(value: Any) -> Any:
    """A tensor whose parts lie on several processes, put together; others are copied."""
    if not isinstance(value, Tensor):
        return value
    gathered = value.detach()
    return gathered.full_tensor() if hasattr(value, "placements") else gathered.clone()  # type: ignore[attr-defined]


def _plain_copy(model: nn.Module) -> Any:
    """The same modules with whole tensors, of their own classes and without hooks: those of sharding wait for other processes."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(_whole(parameter), requires_grad=parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = _whole(buffer)
    return _plain(model, memo)


def _plain(module: nn.Module, memo: dict[int, Any]) -> nn.Module:
    if id(module) in memo:
        return memo[id(module)]
    kind: Any = next(c for c in type(module).__mro__ if not any(b.__name__ == "FSDPModule" for b in c.__mro__))
    made: nn.Module = kind.__new__(kind)
    memo[id(module)] = made
    for name, value in _state_of(module):
        if name == "_modules":
            made.__dict__[name] = {key: None if m is None else _plain(m, memo) for key, m in value.items()}
        elif name.endswith("_hooks") or "_hooks_" in name:
            made.__dict__[name] = type(value)()
        else:
            made.__dict__[name] = copy.deepcopy(value, memo)
    return made


def _state_of(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """What a module holds, its children first: others may refer to them; without what sharding left in it."""
    state = dict(vars(module))
    yield "_modules", state.pop("_modules")
    for name, value in state.items():
        if not name.startswith(("__composable_api", "_is_fsdp", "_fsdp")):
            yield name, value
