"""Folders of torch.distributed, written by the library itself."""

import os
import subprocess
import sys

import pytest
import torch

import theodolite as th
from theodolite.cli import main
from theodolite.io.checkpoints import checkpoint
from theodolite.io.weights import left_out

GENERATOR = torch.Generator().manual_seed(0)
TENSORS = {
    "a.weight": torch.randn(24, 64, generator=GENERATOR),
    "a.bias": torch.randn(24, generator=GENERATOR).half(),
    "b.weight": torch.randn(32, 40, generator=GENERATOR)[:, ::2],
}


@pytest.fixture
def saved(tmp_path):
    import torch.distributed.checkpoint as dcp

    state = {"model": TENSORS, "optim": {"state": {"a.weight": {"exp_avg": torch.ones(2, 2)}}}, "step": 3}
    dcp.save(state, checkpoint_id=str(tmp_path / "folder"))
    return tmp_path / "folder"


@pytest.mark.filterwarnings("ignore")
def test_a_folder_of_torch_distributed(saved):
    found = checkpoint(saved)
    assert sorted(found) == sorted(f"model.{name}" for name in TENSORS)
    for name, tensor in TENSORS.items():
        assert found[f"model.{name}"].dtype == tensor.dtype
        assert torch.equal(found[f"model.{name}"].read(), tensor)
    assert left_out(found) == {"state of an optimizer, not weights": ("optim.state.a.weight.exp_avg",)}


@pytest.mark.filterwarnings("ignore")
def test_its_survey_says_what_the_tensors_say(saved, tmp_path):
    torch.save({f"model.{name}": tensor.contiguous() for name, tensor in TENSORS.items()}, tmp_path / "m.pt")
    rows = [th.survey(path, cost="free").rows() for path in (saved, tmp_path / "m.pt")]
    assert sorted(map(str, rows[0])) == sorted(map(str, rows[1]))


@pytest.mark.filterwarnings("ignore")
def test_a_missing_part_is_named_and_the_rest_is_read(saved):
    for part in saved.glob("*.distcp"):
        part.unlink()
    with pytest.raises(ValueError, match="^expected .*distcp next to the metadata"):
        checkpoint(saved)["model.a.weight"].read()


@pytest.mark.filterwarnings("ignore")
def test_metadata_that_are_damaged_or_run_code_are_refused_in_one_line(saved, capsys, tmp_path):
    import pickle

    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    (saved / ".metadata").write_bytes(pickle.dumps(Trap()))
    assert main(["survey", str(saved), "--json"]) == 2
    assert capsys.readouterr().err.startswith("theodolite: expected a whole folder of torch.distributed.checkpoint")
    assert not (tmp_path / "ran").exists()


TWO = """
import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(35.0).reshape(7, 5)
dcp.save({"w": distribute_tensor(whole, mesh, [Shard(0)])}, checkpoint_id=folder + "/saved")
dist.barrier()
dist.destroy_process_group()
"""


def test_a_tensor_of_which_two_processes_wrote_a_part_each(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", TWO]
    runs = [subprocess.Popen([*command, str(rank), str(tmp_path)], env=dict(os.environ)) for rank in (0, 1)]
    for (
        run
    ) in runs:  # how each leaves the group afterwards is the library's affair: the one that is late may be aborted
        run.wait(timeout=120)
    assert (tmp_path / "saved" / ".metadata").is_file()
    assert len(list((tmp_path / "saved").glob("*.distcp"))) == 2
    assert torch.equal(checkpoint(tmp_path / "saved")["w"].read(), torch.arange(35.0).reshape(7, 5))
