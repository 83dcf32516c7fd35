"""What is read of an optimizer is what it does: one more step of a real one, beside the rule."""

import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

import theodolite.optim as multiplicative
from theodolite.measure.curvature import extreme_eigenpairs, hessian
from theodolite.measure.dynamics import bare_optimizer, parameters_left_out, preconditioned, update_rule
from theodolite.theory.dynamics import update_edge

OPTIMIZERS = {
    "SGD": lambda own: torch.optim.SGD(own, 0.05),
    "dampened": lambda own: torch.optim.SGD(own, 0.05, momentum=0.5, dampening=0.25),
    "Adam": lambda own: torch.optim.Adam(own, 0.05, betas=(0.0, 0.9)),
    "amsgrad": lambda own: torch.optim.Adam(own, 0.05, betas=(0.0, 0.9), amsgrad=True),
    "Adamax": lambda own: torch.optim.Adamax(own, 0.05, betas=(0.0, 0.9)),
    "RAdam": lambda own: torch.optim.RAdam(own, 0.05, betas=(0.0, 0.9)),
    "RAdam at first": lambda own: torch.optim.RAdam(own, 0.05, betas=(0.0, 0.999)),
    "RMSprop": lambda own: torch.optim.RMSprop(own, 0.05, alpha=0.9),
    "centered": lambda own: torch.optim.RMSprop(own, 0.05, alpha=0.9, centered=True),
    "Adagrad": lambda own: torch.optim.Adagrad(own, 0.05, lr_decay=0.1),
    "Adadelta": lambda own: torch.optim.Adadelta(own, 0.5),
    "EGUpm": lambda own: multiplicative.EGUpm(own, 1e-5, beta=0.3),
}


def trained(make, steps=7):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x, y = torch.randn(16, 3).double(), torch.randn(16, 1).double()
    optimizer = make(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
    return model, optimizer, x, y


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_without_momentum_the_next_step_is_the_gain_times_the_gradient(name):
    """The state after the step is the one that divides it, so the rule is read after and laid beside the step made."""
    model, optimizer, x, y = trained(OPTIMIZERS[name], steps=2 if name == "RAdam at first" else 7)
    if name == "dampened":
        optimizer.state.clear()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer.zero_grad()
    mse_loss(model(x), y).backward()
    gains = update_rule(optimizer, model).gains if name == "EGUpm" else None
    sums = [optimizer.state[p]["acc_delta"].clone() for p in model.parameters()] if name == "Adadelta" else []
    optimizer.step()
    for p, own in zip(model.parameters(), sums, strict=False):
        optimizer.state[p]["acc_delta"] = own  # that of the steps before
    rule = update_rule(optimizer, model)
    for n, p in model.named_parameters():
        gain = (rule.gains if gains is None else gains)[n]
        lr = 0.05 if name == "dampened" else rule.lr  # its first step is not dampened
        torch.testing.assert_close(p.detach() - before[n], -lr * gain * p.grad, rtol=1e-4, atol=1e-12)
    assert rule.plain == (name in ("SGD", "dampened", "RAdam at first"))


def test_groups_differ_and_what_no_group_holds_stays():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1))
    groups = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[1].parameters(), "lr": 0.025}]
    optimizer = torch.optim.SGD(groups, lr=1.0, momentum=0.9, weight_decay=0.01)
    rule = update_rule(optimizer, model)
    assert (rule.lr, rule.momentum, rule.kind, rule.penalty) == (0.1, 0.9, "heavy-ball", 0.01)
    assert [rule.gains[f"{n}.weight"] for n in range(3)] == [1.0, 0.25, 0.0]
    model[1].weight.grad = torch.zeros(2, 2)
    assert parameters_left_out(model, optimizer) == (["2.weight", "2.bias"], ["0.weight", "0.bias", "1.bias"])


def test_what_is_not_known_is_said():
    model = nn.Linear(2, 1)
    assert "not known" in update_rule(torch.optim.NAdam(model.parameters()), model).why
    for kind in (torch.optim.Adam, torch.optim.Adagrad):  # Adagrad has a state before its first step
        assert update_rule(kind(model.parameters()), model).waiting
    assert "zero" in update_rule(torch.optim.SGD(model.parameters(), lr=0.0), model).why
    assert "maximizes" in update_rule(torch.optim.SGD(model.parameters(), lr=0.1, maximize=True), model).why

    class Own(torch.optim.Optimizer):
        pass

    for named, group, said in (("Adam", {"lr": 0.1}, "betas"), ("SGD", {"lr": 0.1}, "nesterov"), ("SGD", {}, "no lr")):
        own = type(named, (Own,), {})(model.parameters(), group)
        assert said in update_rule(own, model).why
    whole = {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8}
    own = type("Adam", (Own,), {})(model.parameters(), whole)
    assert update_rule(own, model).waiting
    own.state[model.weight] = {"variance": torch.ones(1, 2)}
    assert "its state is not that" in update_rule(own, model).why
    heavy = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=2.0)
    assert "2 or more" in update_rule(heavy, model).why

    class Lion(torch.optim.SGD):
        pass

    assert update_rule(Lion(model.parameters(), lr=0.1), model).kind == "heavy-ball"  # it is an SGD by its class

    class SignSteps(torch.optim.Optimizer):
        def __init__(self, own):
            super().__init__(own, {"lr": 0.1})

    optimizer = SignSteps(model.parameters())
    assert update_rule(optimizer, model).kind == "sign"

    class Wrapper:
        def __init__(self, inner):
            self.optimizer = inner

    assert bare_optimizer(Wrapper(Wrapper(optimizer))) is optimizer and bare_optimizer(None) is None


@pytest.mark.parametrize("fused", [False, True])
def test_preconditioned_eigenvalue_is_that_of_the_dense_matrix(fused):
    model, optimizer, x, y = trained(lambda own: torch.optim.AdamW(own, 0.01, weight_decay=0.1, fused=fused))
    rule = update_rule(optimizer, model)
    assert (rule.kind, rule.momentum, rule.decay, rule.penalty) == ("averaged", 0.9, 0.1, 0.0)
    H = hessian(model, mse_loss, (x, y))
    divisors = []
    for p in model.parameters():
        state = optimizer.state[p]
        second = 1 - 0.999 ** float(state["step"])
        divisors.append((1 - 0.9 ** float(state["step"])) * ((state["exp_avg_sq"] / second).sqrt() + 1e-8))
    P = torch.cat([d.flatten() for d in divisors])
    dense = torch.linalg.eigvalsh(H.dense() / (P[:, None] * P).sqrt())[-1].item()
    found = extreme_eigenpairs(preconditioned(H, rule), count=1)
    assert found.values[0] == pytest.approx(dense, rel=1e-8)


def test_a_penalty_joins_the_curvature():
    model, optimizer, x, y = trained(lambda own: torch.optim.SGD(own, 0.01, weight_decay=0.5))
    H = hessian(model, mse_loss, (x, y))
    top = torch.linalg.eigvalsh(H.dense())[-1].item()
    found = extreme_eigenpairs(preconditioned(H, update_rule(optimizer, model)), count=1)
    assert found.values[0] == pytest.approx(top + 0.5, rel=1e-8)


def test_groups_differ_in_their_weight_decay():
    """Decay that joins the gradient counts where it joins; decay that shrinks moves each group's edge by its own factor."""
    model, _, x, y = trained(lambda own: torch.optim.SGD(own, 0.01))
    H = hessian(model, mse_loss, (x, y)).dense()
    halves = list(model[0].parameters()), list(model[2].parameters())
    sizes = [sum(p.numel() for p in half) for half in halves]
    groups = [{"params": half, "weight_decay": decay} for half, decay in zip(halves, (0.0, 0.7), strict=True)]
    rule = update_rule(torch.optim.SGD(groups, lr=0.01), model)
    joined = torch.cat([torch.full((size,), decay) for size, decay in zip(sizes, (0.0, 0.7), strict=True)]).double()
    found = extreme_eigenpairs(preconditioned(hessian(model, mse_loss, (x, y)), rule), count=1)
    assert found.values[0] == pytest.approx(torch.linalg.eigvalsh(H + torch.diag(joined))[-1].item(), rel=1e-8)
    steps = [
        {"params": halves[0], "lr": 0.1, "weight_decay": 8.0},
        {"params": halves[1], "lr": 0.05, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(steps, betas=(0.0, 0.99), eps=1.0)
    mse_loss(model(x), y).backward()
    optimizer.step()
    rule = update_rule(optimizer, model)
    top = extreme_eigenpairs(preconditioned(hessian(model, mse_loss, (x, y)), rule), count=1)
    size = top.values[0] / update_edge(rule.lr, momentum=rule.momentum, kind=rule.kind, decay=rule.decay)
    H = hessian(model, mse_loss, (x, y)).dense() / size
    squares = [optimizer.state[p]["exp_avg_sq"] for p in model.parameters()]
    gains = torch.cat([1 / ((square / 0.01).sqrt() + 1.0).flatten() for square in squares])
    lrs, kept = (
        torch.cat([torch.full((n,), v).double() for n, v in zip(sizes, pair, strict=True)])
        for pair in ((0.1, 0.05), (0.2, 1.0))
    )
    mapped = torch.diag(kept) - (lrs * gains)[:, None] * H  # at the edge a step turns the steepest direction round
    assert torch.linalg.eigvals(mapped).real.min().item() == pytest.approx(-1, abs=1e-6)
