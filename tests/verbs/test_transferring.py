"""Step sizes that transfer: groups, first weights, multipliers that nothing notices, and the check that it holds."""

import copy
import io
import json
import os
import socket

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import theodolite as th


class Block(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(x).split(c, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()
        self.table, self.blocks = nn.Embedding(13, width), nn.ModuleList(Block(width) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 13, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


TOKENS = torch.randint(13, (4, 6), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def plan():
    torch.manual_seed(0)
    return th.transfer(Gpt(64, 4), Gpt(16, 2), inputs=TOKENS).initialize_(torch.Generator().manual_seed(0))


def test_at_the_size_of_the_base_nothing_changes():
    torch.manual_seed(0)
    plan = th.transfer(Gpt(16), Gpt(16), inputs=TOKENS)
    assert plan.multipliers == () and len({group["lr"] for group in plan.groups(0.1)}) == 1
    before = {t.name: t.spread for t in plan.tensors if t.fill is None}
    plan.initialize_(torch.Generator().manual_seed(0))
    own = dict(plan.model.named_parameters())
    for name, spread in before.items():
        values = own[name].detach()
        assert float(values.square().mean().sqrt()) == pytest.approx(spread, rel=5 / values.numel() ** 0.5), name


def test_multipliers_are_those_that_are_written_by_hand(plan):
    model = copy.deepcopy(plan.model)
    th.construct.dynamics.apply_multipliers_(model, ())

    def by_hand(model, tokens):
        x = model.table(tokens)
        for block in model.blocks:
            b, t, c = x.shape
            q, k, v = (z.view(b, t, 2, -1).transpose(1, 2) for z in block.qkv(block.norm1(x)).split(c, -1))
            mixed = F.scaled_dot_product_attention(0.5 * q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
            x = x + 0.5 * block.out(mixed)
            x = x + 0.5 * block.mlp(block.norm2(x))
        return model.head(0.25 * model.norm(x))

    assert torch.allclose(plan.model(TOKENS), by_hand(model, TOKENS), atol=1e-6)
    assert not torch.allclose(plan.model(TOKENS), model(TOKENS), atol=1e-3)


def test_state_dicts_copies_and_pickles_do_not_notice(plan):
    model, plain = plan.model, Gpt(64, 4)
    assert list(model.state_dict()) == list(plain.state_dict())
    plain.load_state_dict(model.state_dict())
    assert torch.equal(th.transfer(plain, Gpt(16, 2), inputs=TOKENS).apply_().model(TOKENS), model(TOKENS))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(other(TOKENS), model(TOKENS))
    assert torch.equal(plan.apply_().model(TOKENS), other(TOKENS))  # once more: nothing is multiplied twice


def test_a_compiled_model_says_the_same_and_is_one_graph(plan):
    plan.model.eval()
    compiled = torch.compile(plan.model, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(TOKENS), plan.model(TOKENS), atol=1e-5)


needs_shards_on_a_cpu = pytest.mark.skipif(
    not hasattr(torch.cpu.Stream, "record_event"), reason="torch 2.6 cannot train a sharded model on a CPU itself"
)

REPLICAS = """
import json, os, sys
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.nn.functional import cross_entropy
sys.path.insert(0, sys.argv[1])
from test_transferring import TOKENS, Gpt
import theodolite as th

torch.distributed.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))

def sharded(model):
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)

def losses(wrapped):
    torch.manual_seed(0)
    plan = th.transfer(Gpt(64, 4), Gpt(16, 2), inputs=TOKENS).initialize_(torch.Generator().manual_seed(0))
    model, found = wrapped(plan.model), []
    optimizer = torch.optim.AdamW(plan.groups(lr=1e-2, weight_decay=0.1))
    for _ in range(3):
        loss = cross_entropy(model(TOKENS[:, :-1]).flatten(0, 1), TOKENS[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found

told = [losses(one) for one in (lambda model: model, DistributedDataParallel, sharded)]
torch.distributed.barrier()
if torch.distributed.get_rank() == 0:
    print(json.dumps(told), flush=True)
os._exit(0)  # gloo's own threads may end a process that takes its leave in order
"""


@needs_shards_on_a_cpu
def test_replicas_and_shards_train_as_one_process_does(tmp_path, warm):
    (tmp_path / "train.py").write_text(REPLICAS)
    with socket.socket() as one:
        one.bind(("localhost", 0))
        told = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(one.getsockname()[1]), "WORLD_SIZE": "2"}
    ranks = [{**told, "RANK": f"{rank}", "LOCAL_RANK": f"{rank}"} for rank in range(2)]
    done, other = warm.ran_together(["train.py", os.path.dirname(__file__)], tmp_path, ranks)
    assert done.returncode == other.returncode == 0, done.stderr[-2000:]
    plain, replicated, sharded = json.loads(done.stdout.strip().splitlines()[-1])
    assert replicated == pytest.approx(plain, rel=1e-5) and sharded == pytest.approx(plain, rel=1e-5)
    assert plain[-1] < plain[0]


def test_an_encoder_of_torch_takes_the_multipliers_in_eval_mode_too():
    def build(n):
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(n, 2, 2 * n, batch_first=True, dropout=0.0), 1)

    torch.manual_seed(0)
    plan = th.transfer(build(32), build(8))
    assert [m.place for m in plan.multipliers] == ["key"]
    x = torch.randn(2, 5, 32)
    plan.initialize_(torch.Generator().manual_seed(0))
    plan.model.train()
    trained = plan.model(x)
    with torch.no_grad():
        assert torch.allclose(plan.model.eval()(x), trained, atol=1e-6)


def test_groups_hold_every_parameter_once_with_its_factor_and_a_decay_that_transfers(plan):
    groups = plan.groups(lr=1e-2, weight_decay=0.1)
    held = [p for group in groups for p in group["params"]]
    assert sorted(map(id, held)) == sorted(map(id, plan.model.parameters()))
    for group in groups:
        shapes = {p.ndim for p in group["params"]}
        assert group["lr"] * group["weight_decay"] == pytest.approx(1e-3 if shapes == {2} else 0.0)
    torch.optim.AdamW(groups)
    own = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert own[id(plan.model.blocks[0].mlp[0].weight)] == 1e-2 / 4 and own[id(plan.model.table.weight)] == 1e-2
    descent = {id(p): g["lr"] for g in plan.groups(lr=1.0, rule="sgd") for p in g["params"]}
    assert descent[id(plan.model.blocks[0].mlp[0].weight)] == 2 and descent[id(plan.model.table.weight)] == 4
    frozen = plan.model.table.weight.requires_grad_(False)
    assert all(p is not frozen for g in plan.groups(lr=1.0) for p in g["params"])


def test_orthogonal_steps_have_factors_of_their_own():
    def build(n):
        return nn.Sequential(nn.Linear(8, n), nn.Linear(n, n), nn.Linear(n, 2))

    groups = th.transfer(build, 8, width=32).groups(lr=1.0, rule="orthogonal")
    assert {(g["rule"], g["lr"]) for g in groups} >= {("orthogonal", 2.0), ("orthogonal", 1.0), ("orthogonal", 0.5)}
    assert {g["rule"] for g in groups if all(p.ndim == 1 for p in g["params"])} <= {"adam", "orthogonal"}


def net(width):
    return nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3))


def data():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(128, 8, generator=generator), torch.randint(3, (128,), generator=generator)


@pytest.mark.parametrize("rule", ["adam", "sgd"])
def test_the_check_passes_a_transferred_network_and_names_the_layers_of_one_that_is_not(rule):
    sizes = (24, 48, 96, 192)
    found = th.width_scaling(net, sizes, data=data(), loss=F.cross_entropy, rule=rule)
    assert found.wrong == () and "transfers" in found.sheet().facts["verdict"]

    def standard(width):
        model = net(width)
        kind = torch.optim.Adam if rule == "adam" else torch.optim.SGD
        return model, kind(model.parameters(), lr=1e-4)

    assert "4" in th.width_scaling(standard, sizes, data=data(), loss=F.cross_entropy, rule=rule).wrong


def test_the_check_in_depth():
    class Deep(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU()) for _ in range(depth)
            )

        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = x + block(x)
            return self.last(x)

    found = th.width_scaling(Deep, (2, 4, 8, 16), data=data(), loss=F.cross_entropy, inputs=data()[0][:2])
    assert found.wrong == ()


def test_the_command_prints_the_table(tmp_path, warm):
    (tmp_path / "zoo.py").write_text(
        "from torch import nn\ndef net(n): return nn.Sequential(nn.Linear(4, n), nn.ReLU(), nn.Linear(n, 2))\n"
        "def small(): return net(8)\ndef large(): return net(32)\n"
    )
    command = ["-m", "theodolite", "transfer", "zoo:small", "zoo:large", "--json"]
    done, again = (warm.ran(command, tmp_path) for _ in range(2))
    assert done.returncode == 0, done.stderr
    assert done.stdout == again.stdout
    assert {row["name"]: row["kind"] for row in json.loads(done.stdout)["tensors"]} == {
        "0.weight": "input",
        "0.bias": "vector",
        "2.weight": "output",
        "2.bias": "fixed",
    }


def test_what_cannot_be_taken_is_refused():
    with pytest.raises(TypeError, match="function of the width"):
        th.transfer(net, net(8))
    with pytest.raises(ValueError, match="four widths"):
        th.width_scaling(net, (8, 16), data=data(), loss=F.cross_entropy)
