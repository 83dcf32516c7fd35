"""Kernels of attention and of normalization, against wide random networks drawn and differentiated by torch itself."""

import pytest
import torch
from torch import nn

from theodolite.construct.kernels import kernel_of
from theodolite.nn import SelfAttention
from theodolite.theory.kernels import Attention, Average, Convolution, Flatten, ImageKernel
from theodolite.theory.kernels._map_sequences import Dense, Nonlinear, Normalized, Sum

C_W, C_B = 1.5, 0.1
IMAGES = torch.randn(3, 2, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
IMAGES[1] *= torch.linspace(0.2, 2.0, 12, dtype=torch.float64).reshape(4, 3)  # pixels and images of unlike sizes
TOKENS = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
TOKENS[1] *= 0.5


class Permuted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem, self.norm, self.head = (
            nn.Conv2d(2, width, 3, padding=1),
            nn.LayerNorm(width),
            nn.Linear(12 * width, 32),
        )

    def forward(self, x):
        h = torch.relu(self.norm(self.stem(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        return self.head(h.flatten(1))


class Block(nn.Module):
    """One block of a transformer: attention and an MLP, each on a normalized copy, added to what there was."""

    def __init__(self, width, **how):
        super().__init__()
        self.embed, self.attend = nn.Linear(5, width), SelfAttention(width, **how)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.up, self.down, self.head = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 32)

    def forward(self, x):
        h = self.embed(x)
        h = h + self.attend(self.norms[0](h))
        h = h + self.down(torch.relu(self.up(self.norms[1](h))))
        return self.head(h.mean(dim=1))


def grouped(width, norm):
    stem, inner = nn.Conv2d(2, width, 3, padding=1), nn.Conv2d(width, width, 2, stride=2)
    return nn.Sequential(
        stem, norm, nn.ReLU(), inner, nn.GroupNorm(2, width), nn.ReLU(), nn.Flatten(), nn.Linear(2 * width, 32)
    )


def attending(width, **how):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.attend, self.head = (
                nn.Linear(5, width),
                SelfAttention(width, **how),
                nn.Linear(4 * width, 32),
            )

        def forward(self, x):
            return self.head(torch.relu(self.attend(self.embed(x))).flatten(1))

    return Net()


NETS = {
    "over channels": (lambda: Permuted(128), IMAGES),
    "over groups": (lambda: grouped(128, nn.GroupNorm(4, 128)), IMAGES),
    "over channels and pixels": (lambda: grouped(128, nn.LayerNorm([128, 4, 3])), IMAGES),
    "fixed logits, softmax": (lambda: attending(192), TOKENS),
    "fixed logits, identity": (lambda: attending(192, weighting="identity", bias=True), TOKENS),
    "random logits": (lambda: attending(64, heads=64, channels=4, tied=False, weighting="identity", bias=True), TOKENS),
    "a block of a transformer": (lambda: Block(192), TOKENS),
}


def drawn(make, x, *, draws, generator):
    """NNGP and NTK of random networks, (draws, n, n) each; gradients scaled as the NTK parametrization has them."""
    outputs, tangents = [], []
    for _ in range(draws):
        net = make().double()
        scales = []
        for name, parameter in net.named_parameters():
            if "norm" in name or (isinstance(net, nn.Sequential) and isinstance(net[int(name.split(".")[0])], NORMS)):
                parameter.requires_grad_(False)
                continue
            variance = C_W / parameter[0].numel() if parameter.ndim > 1 else C_B
            nn.init.normal_(parameter, 0.0, variance**0.5, generator=generator)
            scales.append(variance**0.5)
        learnt = [p for p in net.parameters() if p.requires_grad]
        out = net(x)
        outputs.append((out @ out.T / out.shape[1]).detach())
        rows = [torch.autograd.grad(o, learnt, retain_graph=True) for o in out[:, 0]]
        flat = torch.stack([torch.cat([s * g.flatten() for s, g in zip(scales, row, strict=True)]) for row in rows])
        tangents.append(flat @ flat.T)
    return torch.stack(outputs), torch.stack(tangents)


NORMS = (nn.GroupNorm, nn.LayerNorm)


@pytest.mark.parametrize("name", NETS)
def test_wide_random_networks_have_these_kernels(name):
    make, x = NETS[name]
    draws = 16
    found = drawn(make, x, draws=draws, generator=torch.Generator().manual_seed(2))
    for kind, sample in zip(("nngp", "ntk"), found, strict=True):
        expected = kernel_of(make(), kind=kind, weight_variance=C_W, bias_variance=C_B)(x)
        error = sample.std(0) / draws**0.5
        # 4.5 errors of the mean for six numbers, and finite width: layers over channels of the size
        assert ((sample.mean(0) - expected).abs() < 4.5 * error + 5 / 128 * expected.abs().max()).all(), kind


def test_attention_on_the_inputs_themselves_by_hand():
    """The mean over weights is exact at any width: here of a sequence of one channel, summed out."""
    x = torch.tensor([[[1.0], [2.0], [-1.0]]], dtype=torch.float64)
    K = x[0] @ x[0].T
    one = Dense(1.0)
    read = (Flatten(), one)
    random = ImageKernel((Attention(one, one, one, key=one, weighting="identity"), *read), "nngp", channels_last=True)
    assert random(x).item() == pytest.approx((K.diagonal().mean() * K.square().sum()).item(), rel=1e-13)
    fixed = ImageKernel((Attention(one, one, one), *read), "nngp", channels_last=True)
    weights = K.softmax(1)
    assert fixed(x).item() == pytest.approx((weights @ K @ weights.T).diagonal().mean().item(), rel=1e-13)


def test_each_weight_matrix_of_attention_adds_its_own_kernel():
    """Outputs are linear in query, key, value and output, so that each adds the NNGP kernel to the tangent kernel."""
    one = Dense(1.3)
    program = (Attention(one, one, one, key=one, weighting="identity"), Flatten(), one)
    both = ImageKernel(program, channels_last=True).both(TOKENS)
    assert torch.allclose(both.ntk, 5 * both.nngp, rtol=1e-12)
    tied = ImageKernel((Attention(one, one, one), Flatten(), one), channels_last=True).both(TOKENS)
    assert torch.allclose(tied.ntk, 3 * tied.nngp, rtol=1e-12)  # queries move nothing


def test_layers_are_read_as_they_are():
    net = Block(16)
    program = kernel_of(net, weight_variance=2.0, bias_variance=0.3).program
    dense, relu, norm = Dense(2.0, 0.3), program[2].skip[2], Normalized(1e-5)
    assert isinstance(relu, Nonlinear) and relu.activation.name == "relu"
    each = Convolution(dense, (1,), (1,), (0,), (1,))
    attention = Attention(Dense(2.0), Dense(2.0), Dense(2.0))
    assert program == (each, Sum((), (norm, attention)), Sum((), (norm, each, relu, each)), Average(), dense)
    kernel = kernel_of(net)
    own = 16 * net.attend.value.weight.double().square().mean().item()
    assert kernel.program[1].skip[1].value.weight_variance == pytest.approx(own)
    variances = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    ordered = kernel_of(net, weight_variance=variances).program
    assert (ordered[1].skip[1].query, ordered[1].skip[1].output) == (Dense(1.1), Dense(1.3))
    with pytest.raises(ValueError, match="each of 7 layers"):
        kernel_of(net, weight_variance=variances[:4])


def test_blocks_and_nearly_equal_images_agree(monkeypatch):
    from theodolite.theory.kernels import convolutions

    kernel = kernel_of(Block(16), weight_variance=C_W, bias_variance=C_B)
    whole = kernel(TOKENS)
    assert torch.allclose(kernel(TOKENS[:2], TOKENS[1:]), whole[:2, 1:], rtol=1e-10)
    assert torch.allclose(kernel.diagonal(TOKENS), whole.diagonal(), rtol=1e-10)
    monkeypatch.setitem(convolutions.PAIRS_AT_ONCE, "cpu", 16)
    assert torch.allclose(kernel(TOKENS), whole, rtol=1e-10)
    images = kernel_of(grouped(8, nn.GroupNorm(2, 8)), weight_variance=C_W, bias_variance=C_B)
    falls = []
    for step in (1e-5, 1e-7, 1e-9):  # the tangent kernel of ReLU falls linearly with the angle, however small
        pair = torch.cat([IMAGES[:1], IMAGES[:1] + step * IMAGES[2:]])
        found = images(pair)
        falls.append(((found[0, 0] + found[1, 1]) / 2 - found[0, 1]).item() / step)
    assert falls == pytest.approx([falls[0]] * 3, rel=1e-3)


class Odd(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.conv, self.linear, self.norm = nn.Conv2d(2, 4, 1), nn.Linear(4, 4), nn.LayerNorm(4)
        self.function = forward

    def forward(self, x):
        return self.function(self, x)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.BatchNorm2d(4)), "BatchNorm2d at '1'.*batch"),
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.InstanceNorm2d(4)), "single channels"),
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.GroupNorm(4, 4)), "several channels"),
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.LayerNorm(4)), "between two permutes"),
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.LayerNorm([4, 4])), "all pixels"),
        (nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 1)), "mean zero"),
        (nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU(), nn.GroupNorm(2, 4)), "mean zero"),
        (Odd(lambda self, x: self.linear(self.conv(x).permute(0, 2, 3, 1))), "channels last"),
        (Odd(lambda self, x: self.conv(x).permute(0, 3, 1, 2)), "to the end and back"),
        (Odd(lambda self, x: self.norm(self.conv(x).permute(0, 2, 3, 1))), "ends in a permute"),
        (nn.Sequential(nn.Linear(4, 4), nn.MultiheadAttention(4, 1)), "softmax of random"),
        (nn.Sequential(SelfAttention(4, tied=False)), "closed form.*at '0'"),
        (nn.Sequential(nn.Conv1d(2, 4, 1), SelfAttention(4)), "no convolution"),
        (nn.Sequential(nn.Linear(4, 4), nn.GroupNorm(2, 4), SelfAttention(4)), "GroupNorm"),
        (nn.Sequential(nn.Flatten(), SelfAttention(4)), "before positions are"),
    ],
)
def test_what_has_no_such_kernel_is_refused_in_one_line(module, words):
    with pytest.raises(ValueError, match=words) as refusal:
        kernel_of(module)
    assert str(refusal.value).startswith("expected") and "\n" not in str(refusal.value)


def test_attention_says_what_it_expects():
    with pytest.raises(ValueError, match="multiple of heads"):
        SelfAttention(5, heads=2)
    with pytest.raises(ValueError, match="weighting"):
        SelfAttention(4, weighting="tanh")
    with pytest.raises(ValueError, match="weighting"):
        Attention(Dense(1.0), Dense(1.0), Dense(1.0), weighting="tanh")
    layer = SelfAttention(6, heads=2, channels=5)
    assert layer.query.out_features == 10


def test_attention_behind_a_layer_by_the_published_formula():
    r"""Without biases in it: $K\sum K^2$ and $2K\sum K\Theta+(\Theta+4K)\sum K^2$, as neural-tangents has them too."""
    K = 0.2 + 1.3 * torch.einsum("nac,mbc->nmab", TOKENS, TOKENS) / TOKENS.shape[2]
    seen, both = K.square().sum((2, 3), keepdim=True), (K * K).sum((2, 3), keepdim=True)  # behind one layer K is Theta
    nngp, ntk = K * seen, 2 * K * both + (K + 4 * K) * seen
    one = Dense(1.0)
    embed = Convolution(Dense(1.3, 0.2), (1,), (1,), (0,), (1,))
    program = (embed, Attention(one, one, one, key=one, weighting="identity"), Flatten(), one)
    found = ImageKernel(program, channels_last=True).both(TOKENS)
    on_line = [block.diagonal(dim1=2, dim2=3).mean(2) for block in (nngp, ntk)]
    assert torch.allclose(found.nngp, on_line[0], rtol=1e-12)
    assert torch.allclose(found.ntk, on_line[0] + on_line[1], rtol=1e-12)
