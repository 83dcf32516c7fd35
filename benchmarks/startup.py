"""How long `theodolite --help` and `import theodolite` take, beside a bare Python (the floor) and `import torch`.

Each is the best of ten processes, in wall seconds; the goals are 0.2 and 0.3.
"""

import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

COMMANDS = {
    "python, nothing imported (the floor)": ("-c", "pass"),
    "import theodolite": ("-c", "import theodolite"),
    "theodolite --help": (
        "-c",
        "import sys; from theodolite.cli import main; sys.argv = ['theodolite', '--help']; main()",
    ),
    "import torch": ("-c", "import torch"),
}


def seconds(arguments, repeats):
    """The best of several processes."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    table = Table("command", "s", title="starting")
    for name, arguments in COMMANDS.items():
        table.add_row(name, f"{seconds(arguments, 3 if 'torch' in name else 10):.3f}")
    Console(width=80).print(table)


if __name__ == "__main__":
    main()
