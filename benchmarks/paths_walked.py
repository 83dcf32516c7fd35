"""How much code four commands walk through: modules of the package that are loaded, those in which a function runs, calls deep.

Each command runs in a process of its own under `sys.setprofile`; "deep" is the most frames of the package that stand on each
other at one moment. One look of a watch is the second: the first one sets up what later ones use.
"""

import json
import subprocess
import sys

from rich.console import Console
from rich.table import Table

SETTING = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy
import theodolite as th
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
x = torch.randn(512, 20)
data = x, x[:, :5].argmax(1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
COMMANDS = {
    "theodolite survey x.safetensors": (
        "from safetensors.torch import save_file\nimport os, tempfile\nos.chdir(tempfile.mkdtemp())\n"
        'save_file({f"{i}.weight": torch.randn(64, 64) for i in range(3)}, "x.safetensors")\n'
        "from theodolite.cli import main\n",
        'main(["survey", "x.safetensors"])',
    ),
    "th.diagnose": ("", "th.diagnose(model, data=data, loss=cross_entropy, optimizer=optimizer)"),
    "one look of a watch": (
        "watch = th.Watch(model, optimizer=optimizer, probe=data, loss=cross_entropy, every=1)\nwatch.look(0)\n",
        "watch.look(1)",
    ),
    "theodolite check marchenko-pastur": (
        "from theodolite.cli import main\n",
        'main(["check", "marchenko-pastur", "--jobs", "1"])',
    ),
}
PROFILED = """
import sys, json, os, contextlib
walked, depth, deepest = set(), 0, 0
def profiler(frame, event, arg):
    global depth, deepest
    name = frame.f_globals.get("__name__", "")
    if not name.startswith("theodolite") or frame.f_code.co_name == "<module>":
        return
    if event == "call":
        walked.add(name)
        depth += 1
        deepest = max(deepest, depth)
    elif event == "return":
        depth -= 1
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
    sys.setprofile(profiler)
    try:
        {command}
    except SystemExit:
        pass
    sys.setprofile(None)
loaded = [name for name in sys.modules if name.startswith("theodolite")]
print(json.dumps([len(loaded), len(walked), deepest]))
"""


def walked(before, command):
    """Modules loaded, modules walked through, and frames deep."""
    code = SETTING + before + PROFILED.format(command=command)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    table = Table("command", "modules loaded", "walked through", "frames deep", title="code walked through")
    for name, (before, command) in COMMANDS.items():
        table.add_row(name, *map(str, walked(before, command)))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
