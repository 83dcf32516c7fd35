"""The multiplicative optimizers against their formulas, in every precision, and as torch's own optimizers behave."""

import copy
import io
import math

import pytest
import torch
from torch import nn

from theodolite.optim import EGU, EGUpm
from theodolite.theory.bias import multiplicative_safe_lr

KINDS = [(EGU, {}), (EGUpm, {"beta": 0.3})]


def parameters(dtype=torch.float64, sizes=((3, 4), (5,))):
    generator = torch.Generator().manual_seed(0)
    made = [nn.Parameter((0.1 + torch.rand(size, generator=generator)).to(dtype)) for size in sizes]
    for p in made:
        p.grad = torch.randn(p.shape, generator=generator).to(dtype)
    return made


def formula(kind, w, g, lr, beta=0.3):
    if kind is EGU:
        return w * torch.exp(-lr * g)
    plus, minus = ((torch.hypot(w, torch.full_like(w, beta)) + sign * w) / 2 for sign in (1, -1))
    return plus * torch.exp(-lr * g) - minus * torch.exp(lr * g)


@pytest.mark.parametrize(("kind", "more"), KINDS)
@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("maximize", [True, False])
def test_steps_follow_the_formula(kind, more, foreach, maximize):
    own = parameters()
    wanted = [formula(kind, p.detach(), -p.grad if maximize else p.grad, 0.7) for p in own]
    kind(own, lr=0.7, foreach=foreach, maximize=maximize, **more).step()
    for p, w in zip(own, wanted, strict=True):
        torch.testing.assert_close(p.detach(), w, rtol=1e-13, atol=1e-14)


def test_the_pair_keeps_its_product_and_gives_the_weight():
    own = parameters()
    optimizer = EGUpm(own, lr=0.5, beta=0.2)
    for _ in range(4):
        optimizer.step()
        plus, minus = optimizer.parts(own[0])
        torch.testing.assert_close(plus * minus, torch.full_like(plus, 0.01))
        torch.testing.assert_close(plus - minus, own[0].detach())
    with pytest.raises(ValueError, match="expected a parameter of this optimizer"):
        optimizer.parts(torch.ones(2))


def test_large_beta_is_gradient_descent():
    own, other = parameters(), parameters()
    EGUpm(own, lr=1e-6, beta=1e5).step()
    torch.optim.SGD(other, lr=0.1).step()
    for a, b in zip(own, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("kind", "more"), KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_accumulates_steps_too_small_to_see(kind, more, dtype):
    own, exact = parameters(dtype), [p.detach().double() for p in parameters(dtype)]
    optimizer = kind(own, lr=1e-3, **more)
    slopes = [p.grad.double() for p in own]
    for _ in range(300):
        optimizer.step()
        exact = [formula(kind, w, g, 1e-3) for w, g in zip(exact, slopes, strict=True)]
    for p, w in zip(own, exact, strict=True):
        assert p.dtype == dtype
        # one rounding to half at the end, and 300 in float32
        torch.testing.assert_close(p.detach().double(), w, rtol=torch.finfo(dtype).eps, atol=1e-4)


def test_weights_changed_from_outside_are_taken_up():
    for dtype in (torch.float32, torch.bfloat16):
        (p,) = parameters(dtype, ((4,),))
        optimizer = EGU([p], lr=math.log(2))
        optimizer.step()
        p.data.fill_(0.5)
        p.grad.fill_(1.0)
        optimizer.step()
        assert p.tolist() == pytest.approx([0.25] * 4, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("kind", "more"), KINDS)
def test_state_dicts_copies_and_files(kind, more, dtype):
    own = parameters(dtype)
    optimizer = kind([{"params": own[:1], "lr": 0.01}, {"params": own[1:]}], lr=0.3, **more)
    optimizer.step()
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    clones = [nn.Parameter(p.detach().clone()) for p in own]
    for p, q in zip(own, clones, strict=True):
        q.grad = p.grad.clone()
    other = kind([{"params": clones[:1]}, {"params": clones[1:]}], **more)
    other.load_state_dict(torch.load(file))
    pair = copy.deepcopy((own, optimizer))
    for p, q in zip(own, pair[0], strict=True):
        q.grad = p.grad.clone()
    for stepping in (optimizer, other, pair[1]):
        for _ in range(3):
            stepping.step()
    for p, q, r in zip(own, clones, pair[0], strict=True):
        assert torch.equal(p, q)
        assert torch.equal(p, r)


def test_closures_schedulers_and_missing_gradients():
    own = parameters()
    own[1].grad = None
    before = own[1].detach().clone()
    optimizer = EGU(own, lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def closure():
        optimizer.zero_grad()
        loss = own[0].square().sum()
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.05
    assert optimizer.step(closure).item() < first
    assert torch.equal(own[1].detach(), before)


def test_weights_that_fall_to_nothing_can_return():
    w = nn.Parameter(torch.tensor([0.5]))
    optimizer = EGU([w], lr=1.0)
    w.grad = torch.tensor([200.0])
    optimizer.step()
    assert w.item() > 0
    w.grad = torch.tensor([-80.0])
    optimizer.step()
    assert 1e-5 < w.item() < 1e-2  # the smallest normal float32 times exp(80)


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match=r"expected positive weights, got -1 in parameter 1 \(b\) of group 0"):
        EGU([("a", nn.Parameter(torch.ones(2))), ("b", nn.Parameter(torch.tensor([1.0, -1.0])))])
    with pytest.raises(ValueError, match="got 0 in parameter 0 of group 0"):
        EGU([nn.Parameter(torch.zeros(2))])
    with pytest.raises(ValueError, match="got nan"):
        EGU([nn.Parameter(torch.tensor([float("nan")]))])
    with pytest.raises(ValueError, match="expected a learning rate"):
        EGU([nn.Parameter(torch.ones(2))], lr=-1.0)
    with pytest.raises(ValueError, match="expected a positive beta"):
        EGUpm([nn.Parameter(torch.ones(2))], beta=0.0)
    p = nn.Parameter(torch.ones(3))
    p.grad = torch.sparse_coo_tensor([[0]], [1.0], (3,), check_invariants=False)
    with pytest.raises(ValueError, match="expected dense"):
        EGU([p]).step()


def test_a_batch_at_the_safe_rate_converges_to_the_sparse_target():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 200, generator=generator).sign()
    w = nn.Parameter(torch.full((200,), 1e-4 / 200))
    optimizer = EGU([w], lr=multiplicative_safe_lr(1.0, 1.0, 200))
    for _ in range(800):
        optimizer.zero_grad()
        (0.5 * (x @ w - x[:, 3]).square().mean()).backward()
        optimizer.step()
    assert w[3].item() == pytest.approx(1.0, abs=0.05)  # the smaller the start, the nearer to one
    assert w.sum().item() == pytest.approx(1.0, abs=0.1)
