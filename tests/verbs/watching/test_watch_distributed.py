"""Two processes of DistributedDataParallel under torchrun: one writes, and both train as they do unwatched."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import theodolite as th

SCRIPT = """
import sys, torch
from torch import nn
from torch.nn.functional import cross_entropy
import theodolite as th

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 3))
wrapped = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
y = torch.arange(96) % 3
x = torch.randn(96, 6, generator=torch.Generator().manual_seed(1)) + 2 * torch.eye(6)[y]
watch = None
if sys.argv[1] == "watched":
    page = sys.argv[2] + "/live.html"
    watch = th.Watch(wrapped, optimizer=optimizer, probe=(x[:32], y[:32]), every=2, out=sys.argv[2], page_at=page)
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


def launched(tmp_path, *command):
    (tmp_path / "train.py").write_text(SCRIPT)
    whole = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", *command]
    for _ in range(3):
        done = subprocess.run(whole, capture_output=True, text=True, cwd=tmp_path, timeout=240, check=False)
        if TEARDOWN not in done.stderr:
            break
        shutil.rmtree(tmp_path / "seen", ignore_errors=True)
    assert done.returncode == 0, done.stderr
    return done


def test_two_processes_train_as_they_do_alone_and_the_first_writes(tmp_path):
    alone = launched(tmp_path, "train.py", "bare").stdout
    assert launched(tmp_path, "train.py", "watched", str(tmp_path / "seen")).stdout == alone
    lines = (tmp_path / "seen" / "records.jsonl").read_text().splitlines()
    steps = [json.loads(line)["value"]["step"] for line in lines if "look at step" in line]
    assert steps == [0, 2, 4, 6]
    assert "while it trains" in (tmp_path / "seen" / "live.html").read_text()
    shutil.rmtree(tmp_path / "seen")
    watched = launched(tmp_path, "-m", "theodolite", "run", "--every", "2", "--out", "seen", "train.py", "bare")
    assert watched.stdout == alone  # the script as it is, without a word of the watch in it
    assert watched.stderr.count("theodolite: watching Sequential with AdamW, loss cross_entropy") == 1
    told = json.loads((tmp_path / "seen" / "run.json").read_text())
    assert sorted({row["step"] for row in told["readings"]}) == [0, 2, 4, 6, 7]


def test_sharded_parameters_are_refused_in_one_line():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        model = nn.Linear(4, 2)
        model.weight = nn.Parameter(distribute_tensor(model.weight.detach(), mesh, [Shard(0)]))
        with pytest.raises(ValueError, match="sharded ones"):
            th.Watch(model, probe=(torch.randn(3, 4), torch.zeros(3).long()))
    finally:
        torch.distributed.destroy_process_group()
