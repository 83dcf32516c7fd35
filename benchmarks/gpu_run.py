"""What a whole run pays for being watched, its end included: a GPT of 98 million parameters, 1,200 steps, AdamW, bfloat16.

`python benchmarks/gpu_run.py` from the root of the repository. It starts itself as a training script: bare, with `th.Watch` in
its loop, and under `theodolite run` as it is, at level standard. Told are the seconds from the first step to the end of the
process beside those of the bare run, the most memory, and whether the weights are the same bit for bit (fused attention may not
be). Then one process of a group each for DDP and for FSDP2 (nccl on a GPU, gloo elsewhere), watched as they are. A short run
before the first one leaves compiled bytecode behind, as an installation does; `--rows` chooses rows.
"""

import argparse
import atexit
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
from benchmarks.gpu_watch import Gpt, batches, next_token  # noqa: E402

SIZES = {"tokens": 16384, "context": 256, "width": 768, "heads": 12, "layers": 12}
GROUPS = ("ddp", "fsdp")
TINY = {"tokens": 64, "context": 16, "width": 32, "heads": 2, "layers": 2}


def train(chosen):
    """The script: what it prints is read by whoever started it."""
    kind = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sizes, batch = (TINY, 8) if chosen.small else (SIZES, 32)
    data = list(batches(8, batch, kind, sizes))
    torch.manual_seed(0)
    model = whole = Gpt(**sizes).to(kind)
    if chosen.group:
        torch.distributed.init_process_group("nccl" if kind.type == "cuda" else "gloo")
        if chosen.group == "ddp":
            model = torch.nn.parallel.DistributedDataParallel(model)
        else:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            mesh = init_device_mesh(kind.type, (torch.distributed.get_world_size(),))
            for part in (*model.blocks, model):
                fully_shard(part, mesh=mesh)
    optimizer = torch.optim.AdamW(whole.parameters(), lr=3e-4, fused=kind.type == "cuda")
    watch = None
    if chosen.watch:
        import theodolite as th

        probe = next(iter(batches(1, 4, kind, sizes)))
        watch = th.Watch(
            whole, optimizer=optimizer, probe=probe, loss=next_token, level=chosen.watch, autocast=torch.bfloat16
        )
    torch.cuda.synchronize() if kind.type == "cuda" else None
    began = time.perf_counter()
    for step in range(chosen.steps):
        if watch is not None:
            watch(step)
        x, y = data[step % len(data)]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(kind.type, dtype=torch.bfloat16):
            loss = next_token(model(x), y)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize() if kind.type == "cuda" else None
    ended = time.perf_counter()
    digest = hashlib.sha256()
    for p in whole.parameters():
        full = p.full_tensor() if hasattr(p, "full_tensor") else p
        digest.update(full.detach().cpu().numpy().tobytes())
    spent = time.perf_counter() - ended  # for the digest
    if watch is not None:
        with tempfile.TemporaryDirectory() as folder:
            watch.look(chosen.steps, whole=False)
            watch.html(Path(folder) / "run.html")
    told = {"training": ended - began, "digest": digest.hexdigest()[:16], "loss": float(loss.detach())}
    if chosen.group:
        torch.distributed.destroy_process_group()

    def at_the_end():
        peak = torch.cuda.max_memory_allocated() / 2**30 if kind.type == "cuda" else float("nan")
        told.update(whole=time.perf_counter() - began - spent, peak=peak)
        Path(chosen.tell).write_text(json.dumps(told))

    atexit.register(at_the_end)


def started(name, chosen, command):
    """Run it as a process, and what it told."""
    with tempfile.TemporaryDirectory() as folder:
        place, out = Path(folder) / "told.json", Path(folder) / "run"
        command = [part.replace("OUT", str(out)) for part in command]
        own = [*command, "--train", "--steps", str(chosen.steps), "--tell", str(place)]
        own += ["--small"] if chosen.small else []
        path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        kept = {
            "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "gpu-run-bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        own_environment = {**os.environ, "PYTHONPATH": path, **kept}
        done = subprocess.run(own, capture_output=True, text=True, check=False, env=own_environment)
        if not place.exists():
            print(f"{name}: ended with {done.returncode}\n{done.stderr[-3000:]}", flush=True)
            return None
        told = json.loads(place.read_text())
        found = out / "run.json"
        findings = json.loads(found.read_text())["diagnosis"]["findings"] if found.exists() else []
        told["findings"] = [finding["name"] for finding in findings]
        told["said"] = [line for line in done.stderr.splitlines() if line.startswith("theodolite: ")]
        return told


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--small", action="store_true", help="a tiny model, to try the script out on a processor")
    usual = ["bare", "run standard", "Watch standard", *GROUPS]
    parser.add_argument("--rows", nargs="+", default=usual, choices=[*usual, "run cheap"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--watch", default="", help=argparse.SUPPRESS)
    parser.add_argument("--group", default="", help=argparse.SUPPRESS)
    parser.add_argument("--tell", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.train:
        train(chosen)
        return
    this, run = str(Path(__file__).resolve()), [sys.executable, "-m", "theodolite", "run", "--out", "OUT"]
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    short = argparse.Namespace(**{**vars(chosen), "steps": min(60, chosen.steps)})
    commands = {
        "bare": (chosen, [sys.executable, this]),
        "run standard": (chosen, [*run, this]),
        "Watch standard": (chosen, [sys.executable, this, "--watch", "standard"]),
        "run cheap": (chosen, [*run, "--level", "cheap", this]),
        **{kind: (short, [*ranks, *run[1:], "--every", "20", this, "--group", kind]) for kind in GROUPS},
    }
    tiny = argparse.Namespace(**{**vars(chosen), "steps": 30, "small": True})
    for first in ("run standard", "Watch standard"):
        started(first, tiny, commands[first][1])
    rows = {name: started(name, *commands[name]) for name in chosen.rows}
    bare = rows["bare"]
    for name, row in rows.items():
        if row is None or bare is None:
            continue
        price = f"{short.steps} steps" if name in GROUPS else f"{100 * (row['whole'] / bare['whole'] - 1):+.1f} %"
        print(
            f"{name}: training {row['training']:.2f} s, to the end {row['whole']:.2f} s ({price}), memory {row['peak']:.2f} GiB "
            f"({row['peak'] / bare['peak']:.2f}), same weights {row['digest'] == bare['digest']}, loss {row['loss']:.4f}, "
            f"findings {row['findings']}",
            flush=True,
        )
        for line in row["said"]:
            print("  ", line[:200])
    if chosen.out:
        chosen.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
