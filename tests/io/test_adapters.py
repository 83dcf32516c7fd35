"""Adapters written by peft itself: alone, on their base, and merged against it."""

import json

import peft
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import theodolite as th
from theodolite.cli import main
from theodolite.io.adapters import adapter, configuration
from theodolite.io.checkpoints import checkpoint
from theodolite.io.loading import target


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 24)
        self.first, self.second = nn.Linear(24, 40), nn.Linear(40, 32)
        self.conv = nn.Conv1d(32, 16, 3)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        hidden = self.second(self.first(self.embed(x)).relu())
        return self.head(self.conv(hidden.transpose(1, 2)).mean(-1))


def trained(**config):
    """A network and an adapter whose factors are not zero."""
    torch.manual_seed(0)
    base = Net()
    before = {name: tensor.clone() for name, tensor in base.state_dict().items()}
    model = peft.get_peft_model(base, peft.LoraConfig(**config))
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name or "lora_embedding" in name:
            parameter.data = torch.randn(parameter.shape, generator=generator) * 0.1
    return before, model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "config",
    [
        {"r": 4, "lora_alpha": 8, "target_modules": ["first", "second"]},
        {"r": 4, "lora_alpha": 8, "target_modules": ["first", "second"], "use_rslora": True},
        {"r": 4, "target_modules": ["first", "second"], "alpha_pattern": {"second": 2}, "rank_pattern": {"first": 2}},
        {"r": 3, "target_modules": ["embed", "conv"]},
        {"r": 2, "target_modules": ["first"], "modules_to_save": ["head"]},
        {"r": 3, "target_modules": ["first"], "use_dora": True},
    ],
    ids=["plain", "rslora", "patterns", "embedding and convolution", "a head saved whole", "dora"],
)
def test_base_and_adapter_are_what_peft_merges(config, tmp_path):
    before, model = trained(**config)
    if "modules_to_save" in config:
        model.base_model.model.head.modules_to_save["default"].weight.data += 1
    model.save_pretrained(tmp_path / "adapter")
    save_file(before, tmp_path / "base.safetensors")
    subject = target(str(tmp_path / "adapter"), base=str(tmp_path / "base.safetensors"))
    merged = model.merge_and_unload().state_dict()
    changed = {name for name, tensor in merged.items() if not torch.equal(tensor, before[name])}
    assert set(subject.weights) >= changed
    for name in changed:
        assert torch.allclose(subject.weights[name].read(), merged[name], atol=1e-6), name
        assert torch.equal(subject.origin[name].read(), before[name])


@pytest.fixture
def saved(tmp_path):
    before, model = trained(r=6, lora_alpha=12, target_modules=["first", "second"])
    with torch.no_grad():  # one direction of six is used in the second module
        model.base_model.model.second.lora_B["default"].weight[:, 1:] *= 1e-4
    model.save_pretrained(tmp_path / "adapter")
    save_file(before, tmp_path / "base.safetensors")
    merged = model.merge_and_unload()
    save_file(dict(merged.state_dict()), tmp_path / "merged.safetensors")
    return tmp_path


@pytest.mark.filterwarnings("ignore")
def test_an_adapter_alone(saved):
    rows = {(row["quantity"], row["where"]): row for row in th.survey(saved / "adapter", cost="free").rows()}
    config = configuration(saved / "adapter")
    modules = adapter(checkpoint(saved / "adapter"), config)
    for name, module in modules.items():
        change = module.change()
        assert rows["size of what the adapter adds", name]["measured"] == pytest.approx(change.norm().item(), rel=1e-6)
        assert rows["rank of B A", name]["measured"] == torch.linalg.matrix_rank(change, rtol=1e-5) == 6
    assert rows["directions that the adapter uses", "first"]["status"] == "agrees"
    few = rows["directions that the adapter uses", "second"]
    assert few["status"] == "not random"
    assert few["measured"] < 1.1
    assert "a rank of 1 would hold most of it" in few["meaning"]


@pytest.mark.filterwarnings("ignore")
def test_on_its_base_and_merged_the_same_change_of_the_same_rank(saved):
    base = saved / "base.safetensors"
    found = [
        th.survey(target(str(saved / "adapter"), base=str(base)), cost="free"),
        th.survey(target(str(saved / "merged.safetensors"), origin=checkpoint(base)), cost="free"),
    ]
    ranks, sizes = (
        [{r["where"]: r["measured"] for r in each.rows() if r["quantity"] == quantity} for each in found]
        for quantity in ("rank of the change", "size of the change, relative to the start")
    )
    assert ranks[0]["first.weight"] == ranks[1]["first.weight"] == 6.0
    assert ranks[0]["second.weight"] >= 1  # five of its six directions are of the size of rounding
    for name in ranks[0]:
        assert sizes[0][name] == pytest.approx(sizes[1][name], rel=1e-4)
    (rest,) = [names for why, names in found[0].unsurveyed.items() if "leaves it alone" in why]
    assert "head.weight" in rest


@pytest.mark.filterwarnings("ignore")
def test_from_the_command_line(saved, capsys):
    arguments = ["survey", str(saved / "adapter"), "--base", str(saved / "base.safetensors"), "--json"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"adapter", "training-change"} <= {row["instrument"] for row in document["readings"]}
    assert main(["survey", str(saved / "merged.safetensors"), "--base", str(saved / "base.safetensors"), "--json"]) == 2
    assert "expected a low-rank adapter" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_base_of_another_network_is_named(saved):
    save_file({"other.weight": torch.ones(3, 3)}, saved / "wrong.safetensors")
    found = th.survey(target(str(saved / "adapter"), base=str(saved / "wrong.safetensors")), cost="free")
    assert sorted(found.faults) == ["first", "second"]
    assert found.faults["first"].startswith("expected the weight of first in the base")


def test_factors_by_the_names_of_image_trainers(tmp_path):
    generator = torch.Generator().manual_seed(0)
    up, down = torch.randn(12, 4, generator=generator), torch.randn(4, 20, generator=generator)
    names = {"lora_te_x.lora_up.weight": up, "lora_te_x.lora_down.weight": down, "lora_te_x.alpha": torch.tensor(2.0)}
    save_file(names, tmp_path / "m.safetensors")
    (module,) = adapter(checkpoint(tmp_path / "m.safetensors"), {}).values()
    assert (module.module, module.rank, module.scale) == ("lora_te_x", 4, 0.5)
    assert torch.allclose(module.change(), 0.5 * (up @ down).double())


def test_an_untrained_adapter_says_that_nothing_was_learnt(tmp_path):
    tensors = {"a.lora_A.weight": torch.randn(2, 9, generator=torch.Generator().manual_seed(0))}
    save_file(tensors | {"a.lora_B.weight": torch.zeros(7, 2)}, tmp_path / "m.safetensors")
    rows = {r["quantity"]: r for r in th.survey(tmp_path / "m.safetensors", cost="free").rows() if r["where"] == "a"}
    assert rows["rank of B A"]["measured"] == 0
    assert "nothing was learned" in rows["rank of B A"]["meaning"]


GENERATOR = torch.Generator().manual_seed(0)


TENSORS = {
    "a.weight": torch.randn(24, 64, generator=GENERATOR),
    "a.bias": torch.randn(24, generator=GENERATOR),
    "b.weight": torch.randn(32, 32, generator=GENERATOR),
}


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 24), nn.Linear(32, 32, bias=False)
        self.load_state_dict(TENSORS)

    def forward(self, x):
        return self.a(x).relu()


def test_an_adapter_folder(tmp_path):
    import peft

    model = peft.get_peft_model(Small(), peft.LoraConfig(r=2, target_modules=["a"]))
    model.save_pretrained(tmp_path)
    shapes = {name: weight.shape for name, weight in checkpoint(tmp_path).items()}
    assert sorted(shapes.values()) == [(2, 64), (24, 2)]
