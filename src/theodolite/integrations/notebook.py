"""``%load_ext theodolite``, then ``%%theodolite`` at the top of a cell: what trains in it is watched, as `theodolite run` does.

``%%theodolite --every 100 --level cheap --out runs/first --no-diagnosis`` takes the options of that command, and
``%theodolite train()`` watches one statement. The model may have been made in an earlier cell. The run is shown below the cell
while it trains, with its diagnosis at the end, and its page is linked there.
"""

import shlex
from pathlib import Path
from typing import Any

from theodolite.arguments import parser
from theodolite.verbs.running.scripts import watched


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext theodolite``: the magic in a shell of IPython."""

    def theodolite(line: str, cell: str | None = None) -> None:
        """Run the cell, or the statement behind it, watched; see `theodolite run --help` for the options of a cell."""
        asked = shlex.split(line) if cell is not None else []
        try:
            options = parser({"run": lambda _: 0}).parse_args(["run", *asked, "cell"])
        except SystemExit:  # what was wrong has been said
            return
        every = options.every if options.every == "auto" else int(options.every)
        out = Path(options.out)
        code = line if cell is None else cell
        watched(
            lambda: shell.run_cell(code),
            out=out,
            every=every,
            level=options.level,
            diagnose=not options.no_diagnosis,
            on_watch=lambda watch: watch.show(),
        )
        if (out / "run.html").exists():
            from IPython.display import FileLink, display  # type: ignore[import-not-found, unused-ignore]

            display(FileLink(str(out / "run.html")))

    shell.register_magic_function(theodolite, "line_cell", "theodolite")
