"""Products and eigenvalues against dense Hessians made by other means, in float64."""

import copy
import socket

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

import theodolite.measure.curvature.hessians as hessians
import theodolite.measure.curvature.lanczos as lanczos
from theodolite.core.statistics import mean_estimate
from theodolite.measure.curvature import (
    diagonal,
    empirical_fisher,
    extreme_eigenpairs,
    fisher,
    frobenius_norm,
    gauss_newton,
    hessian,
    spectral_density,
    top_hessian_eigenvalues,
    trace,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(module, scale=0.5):
    """The module in float64, its weights and buffers drawn from a fixed seed."""
    module, generator = module.double(), seeded(7)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(scale * torch.randn(p.shape, generator=generator, dtype=torch.float64))
        for name, b in module.named_buffers():
            if "running" in name:
                b.copy_(0.5 + torch.rand(b.shape, generator=generator, dtype=torch.float64))
    return module


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.block = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True, activation="gelu")
        self.head = nn.Linear(4, 6)

    def forward(self, tokens):
        return self.head(self.block(self.embed(tokens)).mean(1))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(6, 10), nn.Linear(10, 10), nn.Linear(10, 6, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.mix(self.embed(tokens))).mean(1))


def mlp(activation=nn.Tanh, outputs=4):
    return nn.Sequential(nn.Linear(6, 12), activation(), nn.Linear(12, 10), nn.GELU(), nn.Linear(10, outputs))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )


def problem(kind):
    generator = seeded(1)
    x = torch.randn(21, 6, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, (21,), generator=generator)
    if kind == "mlp":
        return drawn(mlp()), F.cross_entropy, x, labels
    if kind == "mse":
        return drawn(mlp(outputs=2)), F.mse_loss, x, x[:, :2]
    if kind == "bce":
        return drawn(mlp(nn.Sigmoid, 2)), F.binary_cross_entropy_with_logits, x, (x[:, :2] > 0).double()
    if kind == "cnn":
        return drawn(cnn()), F.cross_entropy, torch.randn(21, 1, 8, 8, generator=generator, dtype=torch.float64), labels
    tokens = torch.randint(0, 6, (21, 5), generator=generator)
    return drawn(Attention() if kind == "transformer" else Tied()), F.cross_entropy, tokens, labels


def dense_hessian(model, loss, x, y):
    """By torch.autograd.functional, rows of the gradient: another way to the same matrix."""
    model = copy.deepcopy(model).eval()
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    sizes = [p.numel() for p in own.values()]

    def value(flat):
        parts = {n: v.reshape(p.shape) for (n, p), v in zip(own.items(), flat.split(sizes), strict=True)}
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return loss(functional_call(model, parts, (x,)), y)

    return torch.autograd.functional.hessian(value, torch.cat([p.detach().flatten() for p in own.values()]))


KINDS = ("mlp", "mse", "bce", "cnn", "transformer", "tied")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*nested tensor.*")
def test_products_and_ten_eigenvalues_at_either_end(kind):
    model, loss, x, y = problem(kind)
    model.train()
    exact = dense_hessian(model, loss, x, y)
    unequal = [(x[:5], y[:5]), (x[5:18], y[5:18]), (x[18:], y[18:])]
    operator = hessian(model, loss, unequal)
    assert operator.size == len(exact)
    assert operator.kept and operator.samples == 21
    assert torch.allclose(operator.dense(), exact, atol=1e-12, rtol=0)
    values = torch.linalg.eigvalsh(exact)
    top = top_hessian_eigenvalues(model, loss, unequal, count=10)
    low = top_hessian_eigenvalues(model, loss, unequal, count=10, lowest=True)
    for found, wanted in ((top, values.flip(0)[:10]), (low, values[:10])):
        got, errors = (torch.tensor(v, dtype=torch.float64) for v in (found.values, found.errors))
        assert found.converged
        assert ((got - wanted).abs() <= 1e-8 * wanted.abs()).all()
        assert ((got - wanted).abs() <= 3 * errors).all()
        residual = exact @ found.vectors.T - found.vectors.T * got
        assert (residual.norm(dim=0) <= 1e-9 + 1.01 * torch.tensor(found.residuals, dtype=torch.float64)).all()
    assert model.training


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*nested tensor.*")
def test_gauss_newton_is_the_sandwich_of_jacobians(kind):
    model, loss, x, y = problem(kind)
    model.eval()
    own = {name: p.detach() for name, p in model.named_parameters()}
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        J = torch.func.jacrev(lambda p: functional_call(model, p, (x,)))(own)
        output = model(x).detach()
    J = torch.cat([J[name].flatten(2) for name in own], 2).flatten(0, 1)  # (samples x outputs, P)
    inner = torch.autograd.functional.hessian(lambda z: loss(z.reshape(output.shape), y), output.flatten())
    exact = J.T @ inner @ J
    assert torch.allclose(gauss_newton(model, loss, [(x[:8], y[:8]), (x[8:], y[8:])]).dense(), exact, atol=1e-12)
    if loss is F.cross_entropy:
        assert torch.allclose(fisher(model, [x[:8], x[8:]]).dense(), exact, atol=1e-12)
    if loss is F.mse_loss:  # two outputs: the loss is the mean over both, and has no half
        assert torch.allclose(fisher(model, x, likelihood="gaussian").dense(), exact, atol=1e-12)
    if loss is F.binary_cross_entropy_with_logits:
        assert torch.allclose(fisher(model, x, likelihood="bernoulli").dense(), 2 * exact, atol=1e-12)


def test_empirical_fisher_is_the_second_moment_of_gradients():
    model, loss, x, y = problem("mlp")
    own = list(model.parameters())
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(loss(model(x[i : i + 1]), y[i : i + 1]), own)])
        for i in range(len(x))
    ]
    exact = torch.stack(rows).T @ torch.stack(rows) / len(x)
    assert torch.allclose(empirical_fisher(model, loss, [(x[:4], y[:4]), (x[4:], y[4:])]).dense(), exact, atol=1e-12)


def test_frozen_parameters_do_not_count_and_names_choose():
    model, loss, x, y = problem("mlp")
    model[0].requires_grad_(False)
    assert torch.allclose(hessian(model, loss, (x, y)).dense(), dense_hessian(model, loss, x, y), atol=1e-12)
    operator = hessian(model, loss, (x, y), names=("4",))
    assert list(operator.shapes) == ["4.weight", "4.bias"]
    assert set(operator.parts(torch.zeros(operator.size))) == {"4.weight", "4.bias"}
    with pytest.raises(ValueError, match="trainable"):
        hessian(model, loss, (x, y), names=("0",))
    assert not model[0].weight.requires_grad


def test_graphs_that_do_not_fit_are_built_anew_and_sums_are_sums():
    model, loss, x, y = problem("mlp")
    vectors = torch.randn(3, sum(p.numel() for p in model.parameters()), generator=seeded(), dtype=torch.float64)
    kept, anew = (hessian(model, loss, (x, y), memory=memory) for memory in (1 << 30, 0))
    assert kept.kept and not anew.kept
    assert torch.allclose(kept(vectors), anew(vectors), atol=1e-13)
    total = hessian(
        model, lambda z, t: F.cross_entropy(z, t, reduction="sum"), [(x[:4], y[:4]), (x[4:], y[4:])], reduction="sum"
    )
    assert torch.allclose(total(vectors), 21 * kept(vectors), atol=1e-11)


def test_a_block_of_vectors_is_vectors_one_by_one_in_single_precision_too():
    model, loss, x, y = problem("cnn")
    operator = hessian(model.float(), loss, (x, y))
    rows = torch.randn(4, operator.size, generator=seeded())
    together = operator(rows)
    assert together.dtype == torch.float32
    assert torch.allclose(together, torch.stack([operator(row) for row in rows]), atol=1e-5)


def test_repeated_eigenvalues_are_all_found():
    x = torch.randn(30, 40, generator=seeded(), dtype=torch.float64)
    model = nn.Linear(40, 3, bias=False).double()  # three equal blocks: every eigenvalue three times
    found = top_hessian_eigenvalues(model, F.mse_loss, (x, x[:, :3]), count=6)
    exact = torch.linalg.eigvalsh(2 * x.T @ x / 90).flip(0)[:2].repeat_interleave(3)
    assert torch.allclose(torch.tensor(found.values, dtype=torch.float64), exact, rtol=1e-8)
    assert torch.allclose(found.vectors @ found.vectors.T, torch.eye(6, dtype=torch.float64), atol=1e-8)


class Matrix:
    def __init__(self, values, seed=3):
        basis = torch.linalg.qr(torch.randn(len(values), len(values), generator=seeded(seed), dtype=torch.float64))[0]
        self.dense = (basis * values) @ basis.T
        self.size, self.like = len(values), self.dense.new_zeros(())

    def __call__(self, vectors):
        return vectors @ self.dense


def test_restarts_and_giving_up_are_told():
    values = torch.linspace(1, 2, 400, dtype=torch.float64).flip(0)
    matrix = Matrix(-values)
    found = extreme_eigenpairs(matrix, count=12, lowest=True, memory=0)  # a basis of 44 rows
    assert found.converged and found.products > 44
    assert torch.allclose(torch.tensor(found.values, dtype=torch.float64), -values[:12], rtol=1e-8)
    short = extreme_eigenpairs(matrix, count=12, lowest=True, most=14)
    assert not short.converged
    assert max(short.errors) > 1e-6
    again = extreme_eigenpairs(matrix, count=12, lowest=True, start=found.vectors.sum(0))
    assert again.products < found.products


def test_trace_diagonal_and_norm_lie_within_their_errors():
    values = torch.cat([torch.tensor([50.0, 20.0, -9.0]), torch.linspace(-1, 1, 297)]).double()
    matrix = Matrix(values)
    sharp = trace(matrix, products=60)
    rows = torch.nn.functional.normalize(torch.randn(60, 300, generator=torch.Generator().manual_seed(0)).double())
    plain = mean_estimate([300 * float(row @ matrix(row)) for row in rows])  # Hutchinson's
    assert abs(sharp.value - values.sum().item()) < 3 * sharp.stderr
    assert sharp.stderr < plain.stderr / 3
    norm = frobenius_norm(matrix, products=80)
    assert abs(norm.value - values.norm().item()) < 3 * norm.stderr < 3.0
    assert abs(trace(Matrix(values[:3]), products=20).value - 61) < 1e-9
    low_rank = Matrix(torch.cat([torch.ones(4), torch.zeros(196)]).double())
    assert abs(trace(low_rank, products=40).value - 4) < 1e-8
    entries = diagonal(matrix, products=200)
    z = (entries.values - matrix.dense.diagonal()) / entries.errors
    assert (z.abs() < 3.5).double().mean() > 0.98


@pytest.mark.parametrize("told", [0, 3])
def test_density_lies_within_its_stated_error(told):
    values = torch.cat([torch.tensor([6.0, 5.0, 3.0]), torch.randn(497, generator=seeded()) * 0.5]).double()
    matrix = Matrix(values)
    known = extreme_eigenpairs(matrix, count=told) if told else None
    found = spectral_density(matrix, probes=8, steps=50, known=known)
    at, width = torch.linspace(-2, 7, 60, dtype=torch.float64), 0.15
    density, errors = found.density(at, bump_width=width)
    exact = torch.exp(-0.5 * ((at[:, None] - values) / width) ** 2).mean(1) / (width * (2 * torch.pi) ** 0.5)
    inside = (density - exact).abs() <= 3 * errors + 1e-12
    assert inside.double().mean() >= 0.95
    assert (errors < 0.1).all()
    assert abs(found.trace.value - values.sum().item()) < 3 * found.trace.stderr
    assert found.trace.stderr < (13.0 if told else 40.0)
    below = found.mass_below(0.0)
    assert abs(below.value - (values < 0).double().mean().item()) < 3 * below.stderr
    assert torch.allclose(found.weights.sum(1), torch.ones(8, dtype=torch.float64))


def test_clear_words_instead_of_wrong_numbers():
    model, loss, x, y = problem("mlp")
    with pytest.raises(ValueError, match="one number"):
        hessian(model, lambda z, t: F.cross_entropy(z, t, reduction="none"), (x, y))
    with pytest.raises(ValueError, match="same answer twice"):
        hessian(nn.Sequential(model, _Noise()), loss, (x, y))
    with pytest.raises(ValueError, match="target"):
        hessian(model, loss, x)
    with pytest.raises(ValueError, match="same data"):
        hessian(model, loss, _Augmented(x, y), memory=0)
    with pytest.raises(ValueError, match="finite"):
        hessian(model, lambda z, t: (z * 0).sqrt().sum(), (x, y))(torch.ones(258).double())
    with pytest.raises(ValueError, match="finite loss"):
        hessian(model, lambda z, t: z.sum() * float("nan"), (x, y))
    with pytest.raises(ValueError, match="entries"):
        hessian(model, loss, (x, y))(torch.ones(3).double())


class _Noise(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class _Augmented:
    def __init__(self, x, y):
        self.x, self.y, self.noise = x, y, seeded()

    def __iter__(self):
        yield self.x + 0.1 * torch.randn(self.x.shape, generator=self.noise, dtype=self.x.dtype), self.y


def _shard(rank, port, queue):
    torch.set_num_threads(1)  # those that OpenMP had before the fork are not there, and would be waited for
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model, loss, x, y = problem("mlp")
    part = slice(0, 6) if rank == 0 else slice(6, 21)
    found = extreme_eigenpairs(hessian(model, loss, (x[part], y[part]), distributed=True), count=3)
    if rank == 0:
        queue.put(found.values)
    torch.distributed.destroy_process_group()


def test_two_processes_with_unequal_parts_see_the_whole():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    workers = [context.Process(target=_shard, args=(rank, port, queue)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    model, loss, x, y = problem("mlp")
    alone = top_hessian_eigenvalues(model, loss, (x, y), count=3)
    assert torch.allclose(torch.tensor(queue.get()), torch.tensor(alone.values), rtol=1e-8)


def test_small_matrices_are_exhausted():
    for size in (1, 2, 3, 5, 9):
        values = torch.arange(1.0, size + 1, dtype=torch.float64)
        for count in (1, size, size + 3):
            found = extreme_eigenpairs(Matrix(values), count=count)
            assert torch.allclose(torch.tensor(found.values, dtype=torch.float64), values.flip(0)[:count])
            assert found.converged
    with pytest.raises(ValueError, match="nothing is left"):
        spectral_density(Matrix(values), known=extreme_eigenpairs(Matrix(values), count=9))
    zero = extreme_eigenpairs(Matrix(torch.zeros(30, dtype=torch.float64)), count=3)
    assert zero.values == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_product_with_a_long_vector_is_the_same_gathered_in_place(monkeypatch, scaled):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    model.unused = nn.Parameter(torch.ones(2, dtype=torch.float64))
    x, y = torch.randn(10, 4, dtype=torch.float64), torch.arange(10) % 3
    data = [(x[:6], y[:6]), (x[6:], y[6:])]
    roots = {name: torch.rand_like(p) for name, p in model.named_parameters()} if scaled else None
    D = torch.cat([root.flatten() for root in roots.values()]) if scaled else 1.0
    plain = hessians.hessian(model, nn.functional.cross_entropy, data)
    vector = torch.randn(plain.size, dtype=torch.float64)
    expected = D * plain(D * vector)
    for long in (hessians.LONG, 1):
        monkeypatch.setattr(hessians, "LONG", long)
        for memory in (1 << 20, 0):  # graphs that are kept, and that are built anew
            operator = hessians.hessian_again(
                model, nn.functional.cross_entropy, data, sample_bytes=None, memory=memory, roots=roots
            )
            assert operator.kept == (memory > 0)
            for _ in range(2):  # nothing is left over from the product before
                assert torch.allclose(operator(vector), expected, rtol=1e-12, atol=1e-15)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_both_sides_are_scaled_by_does_not_count_as_a_graph():
    model = nn.Sequential(nn.Linear(50, 400), nn.Tanh(), nn.Linear(400, 1))
    data = torch.randn(8, 50), torch.zeros(8, 1)
    roots = {name: torch.rand_like(p) for name, p in model.named_parameters()}
    plain, scaled = (
        hessians.hessian_again(model, nn.functional.mse_loss, data, sample_bytes=None, roots=told)
        for told in (None, roots)
    )
    assert plain.sample_bytes == scaled.sample_bytes > 400 * 4


def test_rows_taken_one_by_one_give_the_same_pairs(monkeypatch):
    """What is done on a GPU, where the library's products with few rows are slow."""
    values = torch.linspace(0.0, 1.0, 60, dtype=torch.float64) ** 3
    told = {"count": 1, "most": 30, "tolerance": 1e-9, "memory": 0}
    usual = extreme_eigenpairs(Matrix(values), **told)
    monkeypatch.setattr(lanczos, "_is_slow", lambda V: True)
    found = extreme_eigenpairs(Matrix(values), **told)
    assert found.values == pytest.approx(usual.values, rel=1e-12)
    assert found.products == usual.products
    assert torch.allclose(found.vectors, usual.vectors, atol=1e-9)
    few = lanczos.extreme_eigenpairs(Matrix(values), count=2, most=60, memory=0)
    assert few.values == pytest.approx((1.0, values[-2].item()), rel=1e-3)
