"""The end of a watched script: findings, page and status."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(command, folder):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=280, check=False
    )


def test_findings_are_printed_while_a_hot_script_trains(tmp_path, warm):
    path = str(EXAMPLES / "plain_loop.py")
    alone = warm.ran([path, "1", "100"], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", "--every", "4", "--level", "cheap", path, "1", "100"], tmp_path)
    assert (watched.stdout, watched.returncode) == (alone.stdout, 3)
    assert re.search(r"theodolite: step \d+: step too large: ", watched.stderr) and "lr at most" in watched.stderr
    assert (tmp_path / "run" / "run.html").exists()
