r"""What an optimizer does with a gradient, read from its groups and its state: step, momentum, decay, and its preconditioner."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from theodolite.measure.curvature import Operator

Momentum = Literal["heavy-ball", "nesterov", "averaged", "sign"]
Gain = Tensor | float
EMPTY = "no step was taken yet, so that its state is empty"


@dataclass(frozen=True)
class UpdateRule:
    r"""An update $x\leftarrow(1-\eta\omega)x-\eta P^{-1}(Fg)$: step, momentum and its kind, decay, penalty, and $P^{-1}$.

    ``lr`` is the largest of the groups; ``gains`` maps each parameter's name to its $P^{-1}$, groups of smaller steps scaled by
    their share, and 0 for parameters that no group holds. ``decay`` is weight decay that shrinks the weights, ``penalties`` that
    which joins each parameter's gradient. ``kind`` is None where this optimizer's edge is not known, with ``why`` in words.
    """

    name: str
    lr: float
    kind: Momentum | None = None
    momentum: float = 0.0
    decay: float = 0.0
    gains: Mapping[str, Gain] = field(default_factory=dict, repr=False)
    penalties: Mapping[str, float] = field(default_factory=dict, repr=False)
    why: str = ""

    @property
    def penalty(self) -> float:
        """The largest weight decay that joins a gradient."""
        return max(self.penalties.values(), default=0.0)

    @property
    def waiting(self) -> bool:
        """Whether the rule will be known once a step was taken."""
        return self.kind is None and self.why == EMPTY

    @property
    def plain(self) -> bool:
        """Whether every parameter has the same gain, 1: the Hessian itself counts."""
        return all(isinstance(gain, float) and gain == 1.0 for gain in self.gains.values())


@dataclass(frozen=True)
class _Told:
    """One group's part of a rule."""

    lr: float
    kind: Momentum
    momentum: float = 0.0
    decay: float = 0.0
    penalty: float = 0.0


def bare_optimizer(optimizer: Any) -> Any:
    """The optimizer itself where accelerate or Lightning wrap it."""
    while not isinstance(optimizer, torch.optim.Optimizer) or "Accelerated" in type(optimizer).__name__:
        inner = getattr(optimizer, "optimizer", None)
        if inner is None or inner is optimizer:
            return optimizer
        optimizer = inner
    return optimizer


def update_rule(optimizer: torch.optim.Optimizer, model: nn.Module) -> UpdateRule:
    """How the optimizer would turn gradients into steps now, for the model's parameters by name.

    Known: SGD, Adam, AdamW, Adamax, RAdam, RMSprop, Adagrad, Adadelta, theodolite's multiplicative updates, and sign updates
    (Lion and the like).

    >>> layer = nn.Linear(1, 1)
    >>> rule = update_rule(torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9), layer)
    >>> rule.kind, rule.lr, rule.momentum, rule.plain
    ('heavy-ball', 0.1, 0.9, True)
    """
    name = type(optimizer).__name__
    groups = [group for group in optimizer.param_groups if group["params"]]
    lr = max((float(group.get("lr", math.nan)) for group in groups), default=math.nan)
    family = _family_of(optimizer)
    if family is None:
        return UpdateRule(name, lr, why=f"the edge of {name} is not known here")
    if not lr > 0:
        return UpdateRule(name, lr, why="its groups have no lr" if math.isnan(lr) else "the step is zero now")
    if any(group.get("maximize") for group in groups):
        return UpdateRule(name, lr, why="it maximizes")
    try:
        read, gain, kept = _READ[family]
        told = [read(group) for group in groups]
    except KeyError as missing:
        return UpdateRule(name, lr, why=f"its groups have no {missing}: it is another {family} than that of torch")
    first = max(told, key=lambda group: group.lr)
    if any((group.kind, group.momentum) != (first.kind, first.momentum) for group in told):
        return UpdateRule(name, lr, why="groups differ in their momentum")
    if any(group.lr * group.decay >= 2 for group in told):
        return UpdateRule(name, lr, why="weight decay times the step is 2 or more, which is unstable at any curvature")
    steps = _steps_made(optimizer)
    held = {id(p): (group, own) for group, own in zip(groups, told, strict=True) for p in group["params"]}
    gains: dict[str, Gain] = {}
    penalties: dict[str, float] = {}
    known = False
    for called, parameter in model.named_parameters():
        if not parameter.requires_grad or not parameter.is_floating_point():
            continue
        gains[called] = penalties[called] = 0.0  # in no group, or without a gradient so far: it does not move
        if id(parameter) not in held:
            continue
        group, own = held[id(parameter)]
        state = optimizer.state.get(parameter, {})
        state = {**state, "step": steps[parameter]} if parameter in steps else state
        if not kept or (kept in state and state.get("step", 1) >= 1):
            share = own.lr / first.lr * (2 - first.lr * first.decay) / (2 - own.lr * own.decay)
            value = gain(parameter, group, state)
            gains[called], penalties[called] = value if share == 1 else value * share, own.penalty
            known = True
        elif _has_stepped(optimizer, parameter):
            return UpdateRule(name, lr, why=f"its state is not that of torch's {family}")
        elif parameter.grad is not None:
            return UpdateRule(name, lr, why=EMPTY)
    if not known:
        return UpdateRule(name, lr, why=EMPTY)
    return UpdateRule(name, first.lr, first.kind, first.momentum, first.decay, gains, penalties)


def preconditioned(operator: Operator, rule: UpdateRule) -> Operator:
    r"""The Hessian as the optimizer sees it, $P^{-1/2}(H+\rho)P^{-1/2}$, with the eigenvalues of $P^{-1}(H+\rho)$.

    The operator itself where P is 1.

    >>> from theodolite.measure.curvature import hessian
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> H = hessian(layer, nn.functional.mse_loss, (torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1)))
    >>> preconditioned(H, UpdateRule("", 1.0, "averaged", gains={"weight": torch.full((1, 1), 0.25)}))(torch.ones(1)).item()
    2.5
    """
    if rule.plain and not rule.penalty:
        return operator
    like = operator.like

    def flat(values: Mapping[str, Gain]) -> Tensor:
        told = [(values.get(name, 0.0), shape) for name, shape in operator.shapes.items()]
        whole = [torch.as_tensor(v, dtype=like.dtype, device=like.device).expand(shape) for v, shape in told]
        return torch.cat([part.reshape(-1) for part in whole])

    moving = {rule.penalties.get(name, 0.0) for name, gain in rule.gains.items() if not _is_still(gain)}
    penalties = flat(rule.penalties) if len(moving) > 1 else like.new_tensor(rule.penalty)
    roots = flat(rule.gains).clamp_(min=0).sqrt_()

    def product(vectors: Tensor) -> Tensor:
        scaled = vectors * roots
        image = operator.product(scaled)
        if rule.penalty:
            image.addcmul_(scaled, penalties)
        del scaled
        return image.mul_(roots)

    return replace(operator, product=product)


def gain_roots(rule: UpdateRule, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    r"""$P^{-1/2}$ for each of these parameters by name."""
    kinds = {name: torch.promote_types(p.dtype, torch.float32) for name, p in like.items()}
    told = {name: torch.as_tensor(rule.gains.get(name, 0.0)).to(p.device, kinds[name]) for name, p in like.items()}
    return {name: gain.clamp(min=0).sqrt_() for name, gain in told.items()}


def _is_still(gain: Gain) -> bool:
    return isinstance(gain, float) and gain == 0.0


def parameters_left_out(
    model: nn.Module, optimizer: torch.optim.Optimizer, *, pulled: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Names of trainable parameters that no group holds, and of those held that have no gradient though others have one.

    ``pulled`` are names of those that had a gradient at earlier steps, where it was cleared since.

    >>> model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    >>> parameters_left_out(model, torch.optim.SGD(model[0].parameters(), lr=0.1))[0]
    ['1.weight', '1.bias']
    """
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    own = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    missing = [name for name, p in own if id(p) not in held]
    moved = {name for name, p in own if p.grad is not None or name in pulled or _has_stepped(optimizer, p)}
    return missing, [name for name, p in own if id(p) in held and name not in moved] if moved else []


def _has_stepped(optimizer: torch.optim.Optimizer, parameter: Tensor) -> bool:
    state = optimizer.state.get(parameter, {})
    return bool(state) and float(state.get("step", 1)) >= 1


def _steps_made(optimizer: torch.optim.Optimizer) -> dict[Tensor, float]:
    """The number of steps of each parameter: where they lie on a GPU all are brought over at once, not one by one."""
    told = {p: state["step"] for p, state in optimizer.state.items() if "step" in state}
    far: dict[torch.device, list[Tensor]] = {}
    for p, step in told.items():
        if isinstance(step, Tensor) and step.device.type != "cpu":
            far.setdefault(step.device, []).append(p)
    for those in far.values():
        told |= zip(those, torch.stack([told[p].float().reshape(()) for p in those]).tolist(), strict=True)
    return {p: float(step) for p, step in told.items()}


def _family_of(optimizer: torch.optim.Optimizer) -> str | None:
    for kind in type(optimizer).__mro__:
        if kind.__name__ in _READ:
            return kind.__name__
    name = type(optimizer).__name__.lower()
    return "Sign" if "lion" in name or "sign" in name else None


def _sgd(group: Mapping[str, Any]) -> _Told:
    kind: Momentum = "nesterov" if group["nesterov"] else "heavy-ball"
    lr = float(group["lr"]) * (1 - float(group["dampening"] if group["momentum"] else 0.0))
    return _Told(lr, kind, float(group["momentum"]), penalty=float(group["weight_decay"]))


def _adam(group: Mapping[str, Any]) -> _Told:
    decoupled = bool(group.get("decoupled_weight_decay", False))
    weight_decay, lr = float(group.get("weight_decay", 0.0)), float(group["lr"])
    decay, penalty = (weight_decay, 0.0) if decoupled else (0.0, weight_decay)
    return _Told(lr, "averaged", float(group["betas"][0]), decay, penalty)


def _adamw(group: Mapping[str, Any]) -> _Told:
    return _adam({**group, "decoupled_weight_decay": True})


def _rmsprop(group: Mapping[str, Any]) -> _Told:
    return _Told(float(group["lr"]), "heavy-ball", float(group["momentum"]), penalty=float(group["weight_decay"]))


def _plain(group: Mapping[str, Any]) -> _Told:
    return _Told(float(group["lr"]), "heavy-ball", penalty=float(group.get("weight_decay", 0.0)))


def _sign(group: Mapping[str, Any]) -> _Told:
    return _Told(float(group["lr"]), "sign")


def _one(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    return 1.0


def _adam_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    first, second = (1 - float(beta) ** float(state["step"]) for beta in group["betas"])
    square = state["max_exp_avg_sq"] if group.get("amsgrad") else state["exp_avg_sq"]
    return 1 / (first * ((square / second).sqrt() + group["eps"]))


def _adamax_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    return 1 / ((1 - float(group["betas"][0]) ** float(state["step"])) * state["exp_inf"].clamp(min=group["eps"]))


def _radam_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    steps, held = float(state["step"]), float(group["betas"][1])
    first, second = (1 - float(beta) ** steps for beta in group["betas"])
    most = 2 / (1 - held) - 1
    length = most - 2 * steps * held**steps / second
    if length <= 5:  # too few steps for a second moment: descent with an averaged gradient
        return float(1 / first)
    factor = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
    return factor * math.sqrt(second) / (first * (state["exp_avg_sq"].sqrt() + group["eps"]))


def _rmsprop_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    square = state["square_avg"]
    if group["centered"]:
        square = (square - state["grad_avg"].square()).clamp(min=0)
    return 1 / (square.sqrt() + group["eps"])


def _adagrad_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    return 1 / ((1 + (float(state["step"]) - 1) * group["lr_decay"]) * (state["sum"].sqrt() + group["eps"]))


def _adadelta_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    return ((state["acc_delta"] + group["eps"]) / (state["square_avg"] + group["eps"])).sqrt()


def _egu_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    return parameter.detach().clone()


def _egupm_gain(parameter: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> Gain:
    return (parameter.detach().square() + group["beta"] ** 2).sqrt()


_Gains = Callable[[Tensor, Mapping[str, Any], Mapping[str, Any]], Gain]
_READ: Mapping[str, tuple[Callable[[Mapping[str, Any]], _Told], _Gains, str]] = {
    "SGD": (_sgd, _one, ""),
    "AdamW": (_adamw, _adam_gain, "exp_avg_sq"),
    "Adam": (_adam, _adam_gain, "exp_avg_sq"),
    "Adamax": (_adam, _adamax_gain, "exp_inf"),
    "RAdam": (_adam, _radam_gain, "exp_avg_sq"),
    "RMSprop": (_rmsprop, _rmsprop_gain, "square_avg"),
    "Adagrad": (_plain, _adagrad_gain, "sum"),
    "Adadelta": (_plain, _adadelta_gain, "acc_delta"),
    "EGU": (_plain, _egu_gain, ""),
    "EGUpm": (_plain, _egupm_gain, ""),
    "Sign": (_sign, _one, ""),
}
"""By family: what a group says, the gain of a parameter, and what the optimizer keeps for it from the first step on."""
