"""Commands of Python in processes that have torch loaded already: forks of one that loads it once."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

LOADED = "import torch, torch._dynamo, numpy, theodolite as th; th.Watch, th.survey"


class Warm:
    """``ran(["script.py", ...])`` or ``ran(["-m", "module", ...])``: what `python` would do, with its output and its status."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ran(self, command, folder):
        out, err = self.folder / "stdout", self.folder / "stderr"
        order = {"command": command, "folder": str(folder), "stdout": str(out), "stderr": str(err)}
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        status = int(self.server.stdout.readline())
        return subprocess.CompletedProcess(command, status, out.read_text(), err.read_text())

    def end(self):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()


def serve():
    exec(LOADED, {})
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            return run(**order)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run(command, folder, stdout, stderr):
    """In the fork: as `python command` does it. The process ends as any does, with all that is done at its exit."""
    os.chdir(folder)
    for number, path in ((1, stdout), (2, stderr)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if command[0] == "-m":
        sys.argv, sys.path[0] = command[1:], folder
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = command, str(Path(command[0]).resolve().parent)
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    serve()
