import pytest
import torch
from torch import nn

from theodolite.measure.kernels import (
    empirical_ntk,
    fan_in_rates,
    kernel_alignment,
    kernel_drift,
    kernel_matrix,
    kernel_spectrum,
    ntk_plan,
)


def brute_force(model, x, other=None, *, rates=None):
    """Every derivative of every output of every sample by plain autograd, model in evaluation mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]

    def jacobian(batch):
        return torch.stack(
            [torch.stack([row(entry) for entry in outputs(batch[i : i + 1])]) for i in range(len(batch))]
        )

    def outputs(sample):
        z = model(sample)
        return (z if isinstance(z, torch.Tensor) else z["logits"] if isinstance(z, dict) else z[0]).reshape(-1)

    def row(entry):
        found = torch.autograd.grad(entry, [p for _, p in named], retain_graph=True, allow_unused=True)
        scales = [(rates or {}).get(name, 1.0) ** 0.5 for name, _ in named]
        parts = [
            scale * (torch.zeros_like(p) if g is None else g)
            for g, (_, p), scale in zip(found, named, scales, strict=True)
        ]
        return torch.cat([part.flatten() for part in parts])

    left = jacobian(x)
    right = left if other is None else jacobian(other)
    for module, mode in modes:
        module.training = mode
    return torch.einsum("acp,bdp->abcd", left, right)


def traced(full):
    return full.diagonal(dim1=2, dim2=3).mean(-1)


class Tied(nn.Module):
    """One matrix used twice, and a third time as an embedding's."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.second(torch.tanh(self.first(self.table(tokens))))))[:, -1]


class TokensFirst(nn.Module):
    """Attention with the samples on the second axis, as many as there are tokens."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layer(x.transpose(0, 1)).mean(0))


class Several(nn.Module):
    """Answers a mapping, with the logits not first."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        hidden = torch.sin(self.body(x))
        return {"hidden": hidden, "logits": self.head(hidden)}


class Transposed(nn.Module):
    """Weights stored (in, out), as in some language models."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(6))
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        hidden = torch.addmm(self.bias, x.reshape(-1, 4), self.weight).reshape(len(x), -1, 6)
        return self.head(hidden.tanh()).mean(1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


def convolutional():
    norm = nn.BatchNorm2d(4)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    norm.weight.data.normal_()
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding="same"),
        norm,
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 4, 3, stride=2, groups=2, padding_mode="circular", padding=1),
        nn.GELU(),
        nn.Conv2d(4, 6, 1, stride=2),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(6 * 2 * 2, 3),
    )


def line():
    return nn.Sequential(nn.Conv1d(2, 3, 3, padding=2, dilation=2), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 7, 2))


def mlp():
    layers = nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)
    return nn.Sequential(*layers)


MODELS = {
    "linear": (lambda: nn.Linear(3, 2), (4, 3)),
    "mlp": (mlp, (9, 5)),
    "convolution, BatchNorm, Dropout": (convolutional, (4, 2, 7, 7)),
    "convolution over a line": (line, (4, 2, 7)),
    "tied": (Tied, (4, 5)),
    "tokens first": (TokensFirst, (5, 5, 4)),
    "transformer layer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True), (3, 2, 4)),
    "several answers": (Several, (5, 3)),
    "transposed": (Transposed, (4, 3, 4)),
    "recurrent": (Recurrent, (3, 4, 3)),
    "transposed convolution": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 3, 2), nn.Flatten(), nn.Linear(48, 2)),
        (3, 2, 3, 3),
    ),
}


@pytest.fixture(params=MODELS, name="case")
def _case(request):
    torch.manual_seed(0)
    make, shape = MODELS[request.param]
    model = make().double()
    x = torch.randint(0, 6, shape) if request.param == "tied" else torch.randn(shape, dtype=torch.float64)
    return model, x


def test_it_equals_brute_force_whole_and_traced_and_in_blocks_of_one_sample(case):
    model, x = case
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    exact = brute_force(model, x)
    largest = exact.abs().max()
    for memory in (1 << 30, 1):
        full = empirical_ntk(model, x, outputs="full", memory=memory)
        assert (full - exact).abs().max() < 1e-12 * largest
        assert (empirical_ntk(model, x, memory=memory) - traced(exact)).abs().max() < 1e-12 * largest
        pair = empirical_ntk(model, x, x[1:3], outputs="full", memory=memory)
        assert (pair - exact[:, 1:3]).abs().max() < 1e-12 * largest
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert model.training
    assert all(p.grad is None for p in model.parameters())


def test_rates_weigh_each_parameter(case):
    model, x = case
    rates = fan_in_rates(model, weight_rate=3.0, bias_rate=0.25)
    exact = brute_force(model, x, rates=rates)
    found = empirical_ntk(model, x, outputs="full", rates=rates)
    assert (found - exact).abs().max() < 1e-12 * exact.abs().max()


def test_a_linear_model_has_the_known_kernel():
    x = torch.randn(6, 3, dtype=torch.float64)
    kernel = empirical_ntk(nn.Linear(3, 4).double(), x, outputs="full")
    expected = (x @ x.T + 1)[:, :, None, None] * torch.eye(4, dtype=torch.float64)
    assert torch.allclose(kernel, expected, atol=1e-14)


def test_frozen_parameters_are_left_out_unless_asked_for():
    torch.manual_seed(0)
    model, x = mlp().double(), torch.randn(4, 5, dtype=torch.float64)
    whole = brute_force(model, x)
    model[0].bias.requires_grad_(False)
    model[2].weight.requires_grad_(False)
    assert torch.allclose(empirical_ntk(model, x, outputs="full"), brute_force(model, x), atol=1e-12)
    assert torch.allclose(empirical_ntk(model, x, outputs="full", frozen=True), whole, atol=1e-12)
    assert ntk_plan(model, x).frozen == ("0.bias", "2.weight")
    assert not model[2].weight.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    torch.manual_seed(0)
    model, x = mlp().to(dtype), torch.randn(4, 5).to(dtype)
    exact = brute_force(mlp_like(model), x.double(), x.double())
    found = empirical_ntk(model, x, outputs="full")
    assert found.dtype == torch.float32
    assert (found - exact).abs().max() < 1e-5 * exact.abs().max()
    assert model[0].weight.dtype == dtype


def mlp_like(model):
    twin = mlp().double()
    twin.load_state_dict({name: value.double() for name, value in model.state_dict().items()})
    return twin


def test_inputs_by_position_and_by_name():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, first, second):
            return self.layer(first * second)

    torch.manual_seed(0)
    model, a, b = Two().double(), torch.randn(4, 3).double(), torch.randn(4, 3).double()
    expected = (a * b) @ (a * b).T + 1
    assert torch.allclose(empirical_ntk(model, (a, b)), expected)
    assert torch.allclose(empirical_ntk(model, {"first": a, "second": b}), expected)


def test_the_plan_says_how_and_why():
    x = torch.randn(8, 5)
    plan = ntk_plan(mlp(), x)
    assert plan.method == "layers" and plan.block == 8 and plan.outputs == 4
    assert plan.formed == ("4.weight", "4.bias")
    assert "0.weight" in plan.contracted and "MiB" in plan.reason
    assert ntk_plan(mlp(), x, memory=1).block == 1
    assert ntk_plan(Recurrent(), torch.randn(2, 4, 3)).method == "jacobian"


def test_wrong_input_is_refused_in_one_line():
    x = torch.randn(2, 3)
    with pytest.raises(ValueError, match="trace"):
        empirical_ntk(nn.Linear(3, 2), x, outputs="all")
    with pytest.raises(ValueError, match="rates"):
        empirical_ntk(nn.Linear(3, 2), x, rates={"weights": 1.0})
    with pytest.raises(ValueError, match="trainable"):
        empirical_ntk(nn.ReLU(), x)
    with pytest.raises(ValueError, match="one row a sample"):
        empirical_ntk(nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)), x)


def test_statistics_of_kernels():
    values = torch.tensor([4.0, 2.0, 1.0, 1.0])
    spectrum = kernel_spectrum(torch.diag(values))
    assert spectrum.largest == 4.0
    assert spectrum.condition == 4.0
    assert kernel_spectrum(torch.eye(5)).effective_rank == pytest.approx(5.0)
    assert kernel_spectrum(torch.ones(3, 3)).condition == float("inf")
    full = empirical_ntk(mlp(), torch.randn(3, 5), outputs="full")
    assert kernel_matrix(full).shape == (12, 12)
    assert torch.equal(kernel_matrix(full)[5, 2], full[1, 0, 1, 2])
    assert kernel_drift(full, full) == 0.0
    labels = torch.tensor([0, 0, 1, 1, 2])
    own = nn.functional.one_hot(labels).double()
    assert kernel_alignment(own @ own.T, labels) == pytest.approx(1.0)
    assert kernel_alignment(own @ own.T + 7.0, labels) == pytest.approx(1.0)
    assert kernel_alignment(own @ own.T + 7.0, labels, centered=False) < 0.8
    assert kernel_alignment(torch.zeros(5, 5), labels) == 0.0


@pytest.mark.parametrize("scale", [1e-38, 1e-25, 1e25, 1e37])
def test_drift_in_single_precision_does_not_depend_on_the_unit(scale):
    before = torch.eye(3) * scale
    assert kernel_drift(before, 1.5 * before) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-160, 1e-100, 1e100, 1e160])
def test_alignment_does_not_depend_on_the_unit(scale):
    y = torch.tensor([[1.0], [-1.0], [0.5]], dtype=torch.float64)
    kernel = y @ y.T + torch.eye(3, dtype=torch.float64)
    one = kernel_alignment(kernel, y)
    assert 0.5 < one < 1
    assert kernel_alignment(scale * kernel, y) == pytest.approx(one, rel=1e-12)
    assert kernel_alignment(kernel, scale * y) == pytest.approx(one, rel=1e-12)
