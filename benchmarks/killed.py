"""Killed in the middle and started again: are the results those of a run that was left alone?

    python benchmarks/killed.py [--kills 20] [survey | check | watch | diagnose | ray | dask ...]

``kill -9`` at moments spread over the length of a whole run; the second run goes on in the same folder. ``ray`` and ``dask`` kill
a worker of a survey shared out among two, and let the run go on. One line a verb: how many of the results were equal. A watch
that was killed has lost the vector that its next search for an eigenvalue would begin from: readings with an error count as
equal within it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MATRICES, SIDE = 40, 160
MANY, LONG_SIDE = 64, 640
"""A survey among workers must last long enough for one of them to be killed at work."""
LAWS = ("marchenko-pastur", "bbp-spikes", "relu-critical", "depth-scale")
TRAINING = """
import sys, torch
from pathlib import Path
import theodolite as th
from theodolite.io.files import write_atomically
import io
folder = Path(sys.argv[1])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3))
x = torch.randn(256, 20); y = x[:, :3].argmax(1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
saved = folder / "state.pt"
start = 0
if saved.exists():
    state = torch.load(saved, weights_only=True)
    model.load_state_dict(state["model"]); start = state["step"]
told = {"optimizer": optimizer, "probe": (x, y), "loss": torch.nn.functional.cross_entropy, "out": folder / "out"}
watch = th.Watch(model, every=5, budget=float("inf"), **told)
for step in range(start, 120):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    watch(step)  # as the guide has it: after the step, before the state is saved
    if (step + 1) % 5 == 0:
        buffer = io.BytesIO(); torch.save({"model": model.state_dict(), "step": step + 1}, buffer)
        write_atomically(saved, buffer.getvalue())
watch.json(folder / "watch.json")
"""


def weights(folder, matrices=MATRICES, side=SIDE):
    import torch
    from safetensors.torch import save_file

    path = folder / f"m{side}.safetensors"
    if not path.exists():
        generator = torch.Generator().manual_seed(0)
        save_file({f"l{i}.weight": torch.randn(side, side, generator=generator) for i in range(matrices)}, path)
    return path


def survey(shared, folder, *more, path=None):
    path = path or weights(shared)
    arguments = ["-m", "theodolite", "survey", str(path), "--budget", "none", "--out", str(folder), *more]
    return arguments, lambda: _rows(folder / "readings.json")


def long_survey(shared, folder, *more):
    return survey(shared, folder, *more, path=weights(shared, MANY, LONG_SIDE))


def check(shared, folder):
    arguments = ["-m", "theodolite", "check", *LAWS, "--out", str(folder)]
    return arguments, lambda: [
        json.loads(line)["value"] for line in sorted((folder / "records.jsonl").read_text().splitlines())
    ]


def watch(shared, folder):
    return ["-W", "ignore", "-c", TRAINING, str(folder)], lambda: _rows(folder / "watch.json")


def diagnose(shared, folder):
    arguments = ["-m", "theodolite", "diagnose", str(weights(shared)), "--out", str(folder)]

    def found():
        document = json.loads((folder / "diagnosis.json").read_text())
        return [document["headline"], [[f["name"], f["where"], f["says"]] for f in document["findings"]]]

    return arguments, found


def _rows(path):
    return json.loads(path.read_text())["readings"]


def alike(found, expected):
    """Whether results are equal, of readings with an error their measured values within it."""
    if found == expected:
        return True
    if not isinstance(found[0], dict) or len(found) != len(expected):
        return False
    return all(_within(one, other) for one, other in zip(found, expected, strict=True))


def first_difference(found, expected):
    """In words, where two results part."""
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    one, other = next(pair for pair in zip(found, expected, strict=True) if not alike([pair[0]], [pair[1]]))
    if not isinstance(one, dict):
        return f"{one} is not {other}"
    return {key: (one.get(key), other.get(key)) for key in {**one, **other} if one.get(key) != other.get(key)}


def _within(one, other):
    inexact = ("measured", "stderr", "meaning", "surprise")
    same = {key: value for key, value in one.items() if key not in inexact}
    if same != {key: value for key, value in other.items() if key not in inexact}:
        return False
    return one == other or ((one["stderr"] or 0) > 0 and abs(one["measured"] - other["measured"]) <= one["stderr"])


def started(arguments):
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **THREADS},
    )


def whole(make, shared, folder):
    """The result of a run that is left alone, and its length."""
    folder.mkdir()
    arguments, found = make(shared, folder)
    began = time.perf_counter()
    code = started(arguments).wait()
    assert code in (0, 1), f"a whole run ended with {code}"
    return found(), time.perf_counter() - began


def killed_runs(name, make, kills, shared):
    expected, length = whole(make, shared, shared / f"{name}-whole")
    equal = cut = 0
    for number in range(kills):
        folder = shared / f"{name}-{number}"
        folder.mkdir()
        arguments, found = make(shared, folder)
        run = started(arguments)
        time.sleep(length * (number + 0.5) / kills)
        cut += run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.wait()
        started(arguments).wait()
        result = found()
        equal += alike(result, expected)
        if not alike(result, expected):
            print(f"  {name} {number}: {first_difference(result, expected)}", flush=True)
    print(
        f"{name}: {equal} of {kills} equal; {cut} were running when killed; a whole run takes {length:.1f} s",
        flush=True,
    )
    return equal == kills


def descendants(pid):
    """Every process below this one; any thread of a parent may have started it, so that parents are asked for, not children."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:  # gone meanwhile
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found and child not in found}:
        found |= more
    return sorted(found - {pid})


def worker_of(pid, backend):
    """A process that does the work: Ray names it after the task; of Dask it is the busiest one that was spawned."""
    found = []
    for child in descendants(pid):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
            seconds = sum(
                int(ticks) for ticks in Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]
            )
        except OSError:
            continue
        at_work = words.startswith(b"ray::") and b"IDLE" not in words if backend == "ray" else b"spawn_main" in words
        if at_work:
            found.append((seconds, child))
    return max(found)[1] if found else None


def killed_workers(backend, kills, shared):
    """Some tensors are noted, then a worker dies: each time a little later."""
    expected, _ = whole(long_survey, shared, shared / f"{backend}-whole")
    equal = cut = 0
    for number in range(kills):
        folder = shared / f"{backend}-{number}"
        folder.mkdir()
        arguments, found = long_survey(shared, folder, "--jobs", "2", "--backend", backend)
        run, notes, worker = started(arguments), folder / "records.jsonl", None
        while run.poll() is None and not notes.exists():
            time.sleep(0.02)
        time.sleep(0.1 * number)
        while worker is None and run.poll() is None:
            worker = worker_of(run.pid, backend)
            time.sleep(0.02)
        if worker is not None:
            os.kill(worker, signal.SIGKILL)
            cut += 1
        run.wait()
        same = run.returncode == 0 and found() == expected
        if not same:
            print(f"  {backend} {number}: ended with {run.returncode}, worker {worker}", flush=True)
        equal += same
    print(f"{backend}: {equal} of {kills} equal; {cut} had a worker killed", flush=True)
    return equal == kills == cut


VERBS = {"survey": survey, "check": check, "watch": watch, "diagnose": diagnose}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("verbs", nargs="*", metavar="VERB", help=f"among {', '.join(VERBS)}, ray, dask; none: all")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in options.verbs or [*VERBS, "ray", "dask"]:
            if name in VERBS:
                good &= killed_runs(name, VERBS[name], options.kills, Path(folder))
            else:
                good &= killed_workers(name, min(options.kills, 10), Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
