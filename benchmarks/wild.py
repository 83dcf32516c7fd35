"""Training scripts of others, bare and under `theodolite run`: seconds, output, what was recognized, what was found.

`python -m benchmarks.wild FOLDER [NAME ...] [--hot] [--out FILE]`, FOLDER laid out by `../shared/wild/prepare.py`. Each script
runs as it is; with `--hot` also with its step 100 times too large, and some with their targets shuffled. Seconds are of the
processor, one thread, children counted in. Output is compared with the times that scripts print left out.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

SHUFFLED = "        target = target[torch.randperm(len(target))]\n        optimizer.zero_grad()"
MIXED = "    y = f(x)[torch.randperm(batch_size)]\n"
NANO = (
    "config/train_shakespeare_char.py --device=cpu --compile=False --block_size=64 --batch_size=12 --n_layer=4 --n_head=4 "
    "--n_embd=128 --max_iters=400 --lr_decay_iters=400 --dropout=0.0 --eval_interval=200 --eval_iters=5"
)
CODED = "loss = loss_function(recon_batch, data, mu, logvar)"
NODES = "    idx = torch.randperm(len(labels)).to(device)\n"
NEXT = (
    "        loss = criterion(output, targets)",
    "        loss = criterion(output, targets[torch.randperm(len(targets))])",
)
WORDS = "--epochs 2 --emsize 100 --nhid 100"
TORCH = "import torch\n"
SEEDED = (TORCH, TORCH + "torch.manual_seed(0)\n")
ENDING = ("for batch_idx in count(1):", "for batch_idx in range(1, 400):")
"""A step that is too large never reaches the stop of this script."""

SCRIPTS = {  # folder, file, arguments, changes of the file; the same with a larger step, and with shuffled targets
    "mnist": ("mnist", "main.py", "--epochs 2", ()),
    "mnist_rnn": ("mnist_rnn", "main.py", "--epochs 2", ()),
    "vae": ("vae", "main.py", "--epochs 2", ()),
    "gcn": ("gcn", "main.py", "", ()),
    "regression": ("regression", "main.py", "", (SEEDED,)),
    "lstm": ("word_language_model", "main.py", WORDS, ()),
    "transformer": ("word_language_model", "main.py", f"{WORDS} --model Transformer --lr 5", ()),
    "nanoGPT": ("nanoGPT", "train.py", NANO, ()),
}
HOT = {
    "mnist hot": ("mnist", "main.py", "--epochs 2 --lr 100", ()),
    "mnist_rnn hot": ("mnist_rnn", "main.py", "--epochs 2 --lr 10", ()),
    "vae hot": ("vae", "main.py", "--epochs 2", (("lr=1e-3", "lr=1e-1"),)),
    "gcn hot": ("gcn", "main.py", "--lr 1", ()),
    "regression hot": ("regression", "main.py", "", (SEEDED, ("-0.1", "-10"), ENDING)),
    "lstm hot": ("word_language_model", "main.py", f"{WORDS} --lr 2000", ()),
    "transformer hot": ("word_language_model", "main.py", f"{WORDS} --model Transformer --lr 500", ()),
    "nanoGPT hot": ("nanoGPT", "train.py", f"{NANO} --learning_rate=1e-1 --min_lr=1e-2", ()),
    "mnist shuffled": ("mnist", "main.py", "--epochs 2", (("        optimizer.zero_grad()", SHUFFLED),)),
    "mnist_rnn shuffled": ("mnist_rnn", "main.py", "--epochs 2", (("        optimizer.zero_grad()", SHUFFLED),)),
    "vae shuffled": (
        "vae",
        "main.py",
        "--epochs 2",
        ((CODED, CODED.replace("data,", "data[torch.randperm(len(data))],")),),
    ),
    "gcn shuffled": ("gcn", "main.py", "", ((NODES, f"{NODES}    labels = labels[torch.randperm(len(labels))]\n"),)),
    "lstm shuffled": ("word_language_model", "main.py", WORDS, (NEXT,)),
    "transformer shuffled": ("word_language_model", "main.py", f"{WORDS} --model Transformer --lr 5", (NEXT,)),
    "nanoGPT shuffled": (
        "nanoGPT",
        "train.py",
        NANO,
        (("    return x, y", "    return x, y[torch.randperm(len(y))]"),),
    ),
    "regression shuffled": ("regression", "main.py", "", (SEEDED, ENDING, ("    y = f(x)\n", MIXED))),
}
CLOCK = re.compile(r"ms/batch +[\d.]+|time:? +[\d.]+ ?(ms|s)|\(\d+\.\d+s\)|mfu -?[\d.]+%")


def seconds_of(command, folder):
    """The processor's seconds, the status, the output and what was said."""
    path = os.pathsep.join(["../site", os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    environment.setdefault("THEODOLITE_WILD_ROWS", "6000")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def one(place, name):
    """A row of the table."""
    folder, file, arguments, changes = {**SCRIPTS, **HOT}[name]
    text = (place / folder / file).read_text()
    for old, new in changes:
        assert old in text, (name, old)
        text = text.replace(old, new, 1)
    own = place / folder / f"_{name.replace(' ', '_')}.py"
    own.write_text(text)
    out = place / "runs" / name.replace(" ", "_")
    bare, alone = seconds_of([own.name, *arguments.split()], place / folder)
    seconds, seen = seconds_of(
        ["-m", "theodolite", "run", "--out", str(out), own.name, *arguments.split()], place / folder
    )
    said = [line.removeprefix("theodolite: ") for line in seen.stderr.splitlines() if line.startswith("theodolite: ")]
    told = json.loads((out / "run.json").read_text()) if (out / "run.json").exists() else {}
    return {
        "name": name,
        "bare s": round(bare, 1),
        "watched s": round(seconds, 1),
        "same output": CLOCK.sub("", alone.stdout) == CLOCK.sub("", seen.stdout)
        and alone.returncode == seen.returncode,
        "page": (out / "run.html").exists(),
        "recognized": next((line for line in said if line.startswith("watching ")), "; ".join(said[:1])),
        "findings": [f"{f['name']} ({f['severity']})" for f in told.get("diagnosis", {}).get("findings", ())],
        "said": said,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="of these alone; mnist, 'mnist hot', ...")
    parser.add_argument("--hot", action="store_true", help="also with steps 100 times too large and shuffled targets")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    names = asked.names or [*SCRIPTS, *(HOT if asked.hot else ())]
    rows = []
    for name in names:
        rows.append(one(asked.folder.resolve(), name))
        shown = {key: value for key, value in rows[-1].items() if key != "said"}
        print(json.dumps(shown), flush=True)
        if asked.out:
            asked.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
