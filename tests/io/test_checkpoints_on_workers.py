"""A survey of a checkpoint shared out among real workers: the same rows as one process gives, and when a worker is killed too."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import theodolite as th
from theodolite.instruments._common import weights
from theodolite.instruments._common.weights import _groups, _Order
from theodolite.io import workers
from theodolite.io.checkpoints import checkpoint
from theodolite.io.overlapped_work import overlapped
from theodolite.io.workers import completed, one_thread
from theodolite.verbs.checking import CheckSettings, checked_laws


def tensors():
    generator = torch.Generator().manual_seed(0)
    return {
        "rnn.weight_ih_l0": torch.randn(64, 24, generator=generator),
        "rnn.weight_hh_l0": torch.randn(64, 16, generator=generator),
        "a.weight": torch.randn(48, 40, generator=generator),
        "a.bias": torch.randn(48, generator=generator),
        "conv.weight": torch.randn(16, 8, 3, 3, generator=generator),
        "bad.weight": torch.full((9, 9), float("nan")),
    }


def single(folder):
    save_file(tensors(), folder / "m.safetensors")
    return folder / "m.safetensors"


def sharded(folder):
    for place, (name, tensor) in enumerate(tensors().items()):
        save_file({name: tensor}, folder / f"model-{place}.safetensors")
    where = {name: f"model-{place}.safetensors" for place, name in enumerate(tensors())}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return folder


def state_dict(folder):
    torch.save({"state_dict": tensors(), "epoch": 1}, folder / "m.pt")
    return folder / "m.pt"


def arrays(folder):
    np.savez(folder / "m.npz", **{name: tensor.numpy() for name, tensor in tensors().items()})
    return folder / "m.npz"


MAKERS = {"single": single, "sharded": sharded, "torch": state_dict, "npz": arrays}


def surveyed(path, **keywords):
    with one_thread():  # sums in one order
        result = th.survey(path, activation="relu", **keywords)
    return result.rows(), sorted(result.faults)


@pytest.mark.parametrize("kind", MAKERS)
def test_several_threads_give_the_rows_of_one(kind, tmp_path, monkeypatch):
    path = MAKERS[kind](tmp_path)
    seen = []
    monkeypatch.setattr(weights, "WORTH_THREADS", 1)
    monkeypatch.setattr(
        weights, "overlapped", lambda *given, **how: seen.append(how["threads"]) or overlapped(*given, **how)
    )
    for cores in (1, 3):
        monkeypatch.setattr(weights, "spare_cores", lambda cores=cores: cores)
        seen.append(surveyed(path))
    assert seen[1] == 3
    assert seen[0] == seen[2]


@pytest.mark.parametrize("kind", ["sharded", "torch"])  # the clusters below read every kind
def test_two_processes_give_the_rows_of_one(kind, tmp_path):
    path = MAKERS[kind](tmp_path)
    rows, faults = surveyed(path)
    assert faults == ["bad.weight"]
    assert {row["where"] for row in rows} >= {"a.weight", "rnn.weight_ih_l0[forget]"}
    assert surveyed(path, jobs=2, out=tmp_path / "out") == (rows, faults)


@pytest.mark.filterwarnings("ignore")  # the clusters' own
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_cluster_gives_the_rows_and_verdicts_of_one_process_and_survives_the_loss_of_a_worker(backend, tmp_path):
    from contextlib import nullcontext

    paths = [make(folder) for kind, make in MAKERS.items() if (folder := tmp_path / kind).mkdir() is None]
    if backend == "ray":
        import ray

        session = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    else:
        import distributed

        session = distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with session or nullcontext():
        for path in paths:
            assert surveyed(path, jobs=2, backend=backend) == surveyed(path)
        assert verdicts(jobs=2, backend=backend) == verdicts()
        done_though_one_is_killed(backend, tmp_path)


def verdicts(**keywords):
    names = ("relu-critical", "deep-linear-critical")
    return {r.verdict.law.name: r.verdict.readings for r in checked_laws(names, CheckSettings(seed=1), **keywords)}


def test_the_same_against_a_base(tmp_path):
    path = single(tmp_path)
    save_file({name: torch.ones_like(t) for name, t in tensors().items()}, tmp_path / "base.safetensors")
    facts = {"origin": checkpoint(tmp_path / "base.safetensors")}
    rows, _ = surveyed(path, **facts)
    assert any(row["instrument"] == "training-change" for row in rows)
    assert surveyed(path, jobs=2, **facts)[0] == rows


def test_large_tensors_go_alone_and_small_ones_together(tmp_path):
    save_file(
        {f"{i}": torch.zeros(2, 2) for i in range(50)} | {"large": torch.zeros(1 << 20, 1)}, tmp_path / "m.safetensors"
    )
    weights = checkpoint(tmp_path / "m.safetensors")
    groups = _groups([_Order(name, weight, None, ("spread",), {}) for name, weight in weights.items()])
    assert [len(group) for group in groups] == [1, 50]


def killed_once(folder, number):
    """The first worker that comes to number 3 is killed, as by a system that is out of memory."""
    mark = Path(folder) / "killed"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_killed(folder, number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_of_a_killed_worker_is_done_by_another(tmp_path):
    done_though_one_is_killed("loky", tmp_path)  # by the clusters above too


def done_though_one_is_killed(backend, tmp_path):
    tasks = [(str(tmp_path), number) for number in range(8)]
    assert sorted(completed(killed_once, tasks, jobs=2, backend=backend)) == [(n, n * n) for n in range(8)]
    assert (tmp_path / "killed").exists()


def test_work_that_kills_every_worker_is_given_up_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "LOSSES", 1)
    with pytest.raises(ValueError, match="^expected workers to survive"):
        list(completed(always_killed, [(str(tmp_path), 0)], jobs=2))


def children(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in found.read_text().split()] if found.exists() else []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    code = (
        "import time; from theodolite.io.workers import completed; "
        "print(list(completed(time.sleep, [(0.0,), (0.0,), (300.0,), (300.0,)], jobs=2)))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    workers = []
    for _ in range(600):
        workers = [pid for pid in children(parent.pid) if b"popen_loky" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        if len(workers) >= 2:
            break
        time.sleep(0.1)
    time.sleep(2)
    parent.kill()
    parent.wait()
    assert len(workers) >= 2
    for _ in range(300):
        if not any(_runs(pid) for pid in workers):
            return
        time.sleep(0.1)
    pytest.fail("workers run on without their parent")


def _runs(pid):
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_an_interrupted_survey_says_so_in_one_line_and_goes_on_later(tmp_path):
    generator = torch.Generator().manual_seed(0)
    many = {f"l{i}.weight": torch.randn(256, 256, generator=generator) for i in range(300)}  # seconds of work
    save_file(many, tmp_path / "m.safetensors")
    command = [
        sys.executable,
        "-m",
        "theodolite",
        "survey",
        str(tmp_path / "m.safetensors"),
        "--out",
        str(tmp_path / "out"),
    ]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores it
    )
    notes = tmp_path / "out" / "records.jsonl"
    for _ in range(6000):
        if notes.exists() and notes.stat().st_size > 2000:
            break
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert said.strip().splitlines()[-1] == "theodolite: interrupted"
    assert "Traceback" not in said
    kept = notes.read_text()
    rows = th.survey(tmp_path / "m.safetensors", out=tmp_path / "out", cost="free").rows()
    assert notes.read_text().startswith(kept[: kept.rindex("\n") + 1])
    assert len({row["where"] for row in rows}) == len(many)
