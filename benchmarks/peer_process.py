"""A tool measured in a process of its own, in this environment or in that of the peers; its last word is one JSON line."""

import json
import os
import subprocess

RESULT = "RESULT "


def print_result(found):
    """Print what the other process is to read."""
    print(RESULT + json.dumps(found))


def result_of(python, script, tool, arguments, *, threads):
    """What a script says of a tool; None, with its last line printed, where it could not run."""
    command = [str(python), str(script), "--tool", tool, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith(RESULT)), None)
    if line is None:
        print(f"{tool} did not run: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return None
    return json.loads(line.removeprefix(RESULT))
