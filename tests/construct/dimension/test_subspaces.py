import copy

import pytest
import torch
from torch import nn

import theodolite as th

ALL = pytest.mark.parametrize("projection", ["fastfood", "sparse", "dense", "tied"])


class Everything(nn.Module):
    """Convolution, batch normalization, tied and frozen weights, a buffer, keywords."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.conv = nn.Conv1d(6, 6, 3, padding=1)
        self.norm = nn.BatchNorm1d(6)
        self.out = nn.Linear(6, 7, bias=False)
        self.out.weight = self.embed.weight
        self.frozen = nn.Linear(6, 6)
        self.frozen.requires_grad_(False)
        self.register_buffer("shift", torch.ones(6))

    def forward(self, tokens, *, scale=1.0):
        h = self.norm(self.conv(self.embed(tokens).mT)).mT
        return self.out(torch.relu(self.frozen(h) + self.shift)) * scale


@pytest.fixture
def tokens():
    return torch.randint(0, 7, (4, 5), generator=torch.Generator().manual_seed(0))


def made(cls=Everything):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return cls()


def trained(model, tokens, steps=5):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()


@ALL
@pytest.mark.parametrize("structure", ["global", "layers"])
def test_only_the_coordinates_train_and_the_users_model_is_untouched(projection, structure, tokens):
    model = made()
    before = copy.deepcopy(model.state_dict())
    random = torch.get_rng_state()
    small = th.subspace(model, 12, projection=projection, structure=structure)
    assert torch.equal(random, torch.get_rng_state())
    assert [name for name, p in small.named_parameters() if p.requires_grad] == ["coordinates"]
    assert torch.equal(small.eval()(tokens), model.eval()(tokens))  # it starts where the model is
    small.train()
    frozen = small.base.frozen.weight.clone()
    trained(small, tokens)
    assert small.coordinates.abs().max() > 0
    assert torch.equal(small.base.frozen.weight, frozen)
    assert not torch.equal(small.base.norm.running_mean, before["norm.running_mean"])  # its own statistics move
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


@ALL
def test_merged_is_the_plain_model_with_the_weights_found(projection, tokens):
    small = th.subspace(made(), 12, projection=projection, structure="layers")
    trained(small, tokens)
    plain = small.merged()
    assert type(plain) is Everything
    assert plain.out.weight is plain.embed.weight
    assert plain.conv.weight.requires_grad and not plain.frozen.weight.requires_grad
    assert torch.allclose(plain.eval()(tokens, scale=2.0), small.eval()(tokens, scale=2.0))


def test_the_change_is_the_projection_of_the_coordinates():
    model = nn.Linear(9, 5).double()
    small = th.subspace(model, 7, projection="tied")
    with torch.no_grad():
        small.coordinates.copy_(torch.randn(7, generator=torch.Generator().manual_seed(0)))
    change = torch.cat([(small.weights()[name] - p).flatten() for name, p in model.named_parameters()])
    assert change.norm().item() == pytest.approx(small.coordinates.norm().item())  # an isometry


@ALL
def test_a_state_dict_brings_everything_back_even_the_projection(projection, tokens):
    small = th.subspace(made(), 12, projection=projection, seed=5)
    trained(small, tokens)
    state = small.state_dict()
    assert not any("projection" in name for name in state)
    other = th.subspace(made(), 12, projection="tied", seed=1)
    other.load_state_dict(state)
    assert torch.allclose(other.eval()(tokens), small.eval()(tokens))
    again = copy.deepcopy(small)
    assert torch.equal(again.eval()(tokens), small(tokens))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_precision_is_kept(dtype):
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2)).to(dtype)
    small = th.subspace(model, 5)
    assert small.coordinates.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    answer = small(torch.ones(3, 6, dtype=dtype))
    assert answer.dtype == dtype
    answer.float().sum().backward()
    assert torch.isfinite(small.coordinates.grad).all() and small.coordinates.grad.abs().sum() > 0


def test_shared_memory_is_read_and_not_written(tokens):
    model = made()
    before = copy.deepcopy(model.state_dict())
    small, copied = th.subspace(model, 12, shared=True), th.subspace(model, 12)
    assert small.base.conv.weight.data_ptr() == model.conv.weight.data_ptr() != copied.base.conv.weight.data_ptr()
    assert small.base.out.weight is small.base.embed.weight
    for net in (small, copied):
        trained(net, tokens)
    assert torch.equal(small.coordinates, copied.coordinates)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.conv.weight.requires_grad and not model.frozen.weight.requires_grad
    assert small.merged().conv.weight.data_ptr() != model.conv.weight.data_ptr()


def test_a_gradient_is_projected_before_the_next_layers_is_made(monkeypatch):
    """Else the gradients of all layers lie in memory together."""
    from theodolite.construct.dimension.projections import _Blocks

    order = []
    adjoint = _Blocks.adjoint
    monkeypatch.setattr(_Blocks, "adjoint", lambda self, y: (order.append(y.numel()), adjoint(self, y))[1])
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in ((6, 5), (5, 4), (4, 3))))
    for layer in model:
        layer.register_forward_hook(lambda layer, args, y: y.register_hook(lambda g: order.append(layer)) and None)
    net = th.subspace(model, 4)
    net(torch.randn(2, 6)).square().sum().backward()
    first, second, third = net.base
    assert order == [third, 12, second, 20, first, 30]


def test_recurrent_networks_train_too():
    small = th.subspace(made(lambda: nn.LSTM(3, 4)), 20, projection="tied")
    answer, _ = small(torch.ones(5, 2, 3))
    answer.sum().backward()
    assert small.coordinates.grad.abs().sum() > 0


def test_training_reaches_what_the_dimension_allows():
    """Least squares with 8 constraints: 8 coordinates suffice, 4 do not."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 40, generator=generator, dtype=torch.float64)
    y = torch.randn(8, 1, generator=generator, dtype=torch.float64)
    losses = {}
    for dimension in (4, 8):
        small = th.subspace(nn.Linear(40, 1, bias=False).double(), dimension)
        optimizer = torch.optim.LBFGS([small.coordinates], max_iter=200, tolerance_change=1e-16, tolerance_grad=1e-12)

        def closure(small=small, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (small(x) - y).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        losses[dimension] = closure().item()
    assert losses[8] < 1e-8 < 1e-2 < losses[4]


def test_seeds_differ_and_repeat():
    weights = []
    for seed in (0, 0, 1):
        small = th.subspace(made(lambda: nn.Linear(8, 8)), 3, seed=seed)
        with torch.no_grad():
            small.coordinates.fill_(1.0)
        weights.append(small.weights()["weight"])
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_bad_input():
    net = nn.Linear(3, 3)
    with pytest.raises(ValueError, match="expected a dimension from 1 to the 12"):
        th.subspace(net, 13)
    with pytest.raises(ValueError, match="expected a projection among"):
        th.subspace(net, 2, projection="magic")
    with pytest.raises(TypeError, match="expected an nn.Module"):
        th.subspace("net", 2)
    with pytest.raises(ValueError, match="expected a model with trainable parameters"):
        th.subspace(nn.Linear(3, 3).requires_grad_(False), 1)
    with pytest.raises(ValueError, match="expected more dimensions than the 1 layers"):
        th.subspace(net, 1, structure="layers")
    assert "2 coordinates for 12 parameters" in repr(th.subspace(net, 2))
