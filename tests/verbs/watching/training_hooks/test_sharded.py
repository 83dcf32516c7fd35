"""Two processes of DistributedDataParallel, as torchrun starts them: one writes, and both train as they do unwatched."""

import json
import shutil
import socket

import pytest
import torch

SCRIPT = """
import sys, torch
from torch import nn
from torch.nn.functional import cross_entropy
import theodolite as th

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
for way in sys.argv[1].split("+"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 3))
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    y = torch.arange(96) % 3
    x = torch.randn(96, 6, generator=torch.Generator().manual_seed(1)) + 2 * torch.eye(6)[y]
    watch = None
    if way == "watched":
        page = sys.argv[2] + "/live.html"
        own = dict(every=2, out=sys.argv[2], page_at=page, budget=float("inf"))
        watch = th.Watch(wrapped, optimizer=optimizer, probe=(x[:32], y[:32]), **own)
    torch.manual_seed(7 + rank)
    for step in range(7):
        if watch is not None:
            record = watch(step)
            assert (record is not None) == (rank == 0 and step % 2 == 0)
        rows = torch.randint(0, 96, (16,))
        optimizer.zero_grad()
        cross_entropy(wrapped(x[rows]), y[rows]).backward()
        optimizer.step()
    total = torch.stack([v.double().sum() for v in model.state_dict().values()]).sum()
    seen = [torch.zeros_like(total) for _ in range(2)]
    torch.distributed.all_gather(seen, total)
    if rank == 0:
        print([v.item() for v in seen], torch.rand(1).item(), flush=True)
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""


TEARDOWN = "terminate called without an active exception"
"""What a process says that gloo's own threads end while it leaves its group, watched or not: it is started again."""


def launched(warm, tmp_path, *command, script=SCRIPT, count=2):
    """The processes that torchrun would start, without itself; what all of them say."""
    (tmp_path / "train.py").write_text(script)
    for _ in range(3):
        with socket.socket() as one:
            one.bind(("localhost", 0))
            told = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(one.getsockname()[1]), "WORLD_SIZE": str(count)}
        ranks = [{**told, "RANK": f"{rank}", "LOCAL_RANK": f"{rank}"} for rank in range(count)]
        ended = warm.ran_together(list(command), tmp_path, ranks)
        stderr = "".join(process.stderr for process in ended)
        if TEARDOWN not in stderr:
            break
        shutil.rmtree(tmp_path / "seen", ignore_errors=True)
    assert not any(process.returncode for process in ended), stderr
    return "".join(process.stdout for process in ended), stderr


def test_two_processes_train_as_they_do_alone_and_the_first_writes(tmp_path, warm):
    alone, seen = launched(warm, tmp_path, "train.py", "bare+watched", str(tmp_path / "seen"))[0].splitlines()
    assert alone == seen
    lines = (tmp_path / "seen" / "records.jsonl").read_text().splitlines()
    steps = [json.loads(line)["value"]["step"] for line in lines if "look at step" in line]
    assert steps == [0, 2, 4, 6]
    assert "Training of " in (tmp_path / "seen" / "live.html").read_text()
    shutil.rmtree(tmp_path / "seen")
    watched = launched(
        warm,
        tmp_path,
        "-m",
        "theodolite",
        "run",
        "--every",
        "2",
        "--level",
        "full",
        "--out",
        "seen",
        "train.py",
        "bare",
    )
    assert watched[0].strip() == alone  # the script as it is, without a word of the watch in it
    assert watched[1].count("theodolite: watching Sequential with AdamW, loss cross_entropy") == 1
    told = json.loads((tmp_path / "seen" / "run.json").read_text())
    assert sorted({row["step"] for row in told["readings"]}) == [0, 2, 4, 6, 7]


needs_shards_on_a_cpu = pytest.mark.skipif(
    not hasattr(torch.cpu.Stream, "record_event"), reason="torch 2.6 cannot train a sharded model on a CPU itself"
)

SHARDED = """
import os, sys, torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

steps, dies = int(sys.argv[1]), len(sys.argv) > 2
torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.Tanh(), nn.Linear(12, 3))
for part in (model[0], model[3], model):
    fully_shard(part, mesh=init_device_mesh("cpu", (world,)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
draw = torch.Generator().manual_seed(1)
for step in range(steps):
    y = torch.arange(32) % 3
    x = torch.randn(32, 6, generator=draw) + torch.eye(6)[y]
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()  # the same on each, so that one process does the same steps
    optimizer.step()
    if dies and rank == 1 and step == 5:
        os._exit(9)
whole = [p.full_tensor() for p in model.parameters()]
if rank == 0:
    print([float(p.detach().double().sum()).hex() for p in whole], torch.rand(1).item(), flush=True)
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""


@needs_shards_on_a_cpu
def test_a_sharded_model_is_watched_as_on_one_process(tmp_path, warm):
    """FSDP2: the same weights with and without, and the readings of one process."""
    run = ("-m", "theodolite", "run", "--every", "3", "--level", "full", "--no-diagnosis", "--out")
    alone, _ = launched(warm, tmp_path, "train.py", "8", script=SHARDED)
    two = launched(warm, tmp_path, *run, "two", "train.py", "8", script=SHARDED)
    launched(
        warm,
        tmp_path,
        *(part for part in run if part != "--no-diagnosis"),
        "one",
        "train.py",
        "8",
        script=SHARDED,
        count=1,
    )
    assert two[0] == alone
    assert two[1].count("theodolite: watching Sequential with AdamW, loss cross_entropy") == 1
    records = {name: json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "two")}
    assert not [found for found in records["one"]["diagnosis"]["findings"] if found["severity"] == "critical"]
    told = {name: record["readings"] for name, record in records.items()}
    assert sorted({row["step"] for row in told["two"]}) == [0, 3, 6]
    assert any("Hessian" in row["quantity"] for row in told["two"])
    for one, other in zip(told["one"], told["two"], strict=True):
        assert (one["step"], one["quantity"]) == (other["step"], other["quantity"])
        apart = 3 * ((one["stderr"] or 0) ** 2 + (other["stderr"] or 0) ** 2) ** 0.5
        assert other["measured"] == pytest.approx(one["measured"], rel=1e-3, abs=apart + 1e-6)


@needs_shards_on_a_cpu
def test_a_process_that_dies_leaves_a_record_that_can_be_read(tmp_path, warm):
    (tmp_path / "train.py").write_text(SHARDED)
    whole = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    own = ["-m", "theodolite", "run", "--every", "2", "--no-diagnosis", "--out", "seen", "train.py", "40", "dies"]
    done = warm.ran([*whole, *own], tmp_path)
    assert done.returncode != 0
    told = json.loads((tmp_path / "seen" / "run.json").read_text())
    assert {row["step"] for row in told["readings"]} >= {0}
    assert "Training of " in (tmp_path / "seen" / "run.html").read_text()
