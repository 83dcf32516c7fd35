"""A script run as Python would run it, watched; nothing goes to standard output, and its exit status is its own."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import types
import warnings
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Literal

from theodolite.core.checks import InputError
from theodolite.verbs.running import observing
from theodolite.verbs.running.observing import Observer, said
from theodolite.verbs.watching.look_context import Level


def run_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    *,
    out: Path,
    every: int | Literal["auto"] = "auto",
    level: Level = "standard",
) -> int:
    """Run a script as ``python script arguments`` would, watched; its exit status.

    The page ``run.html`` and the numbers ``run.json`` are in ``out`` at the end; findings are on standard error as they appear.
    """
    path = Path(script)
    if not path.is_file():
        raise InputError(f"expected a script that can be read, got {script}; pass its path")
    log = logging.getLogger("theodolite")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("theodolite: %(message)s"))
    log.addHandler(handler)
    log.propagate = False
    observer = Observer(out.resolve(), every, level)
    before = list(sys.argv), list(sys.path)
    sys.argv, sys.path[0] = [str(script), *arguments], str(path.resolve().parent)
    observer.install()
    warnings.filterwarnings("ignore", message="Using `torch.compile.module.` when there are global hooks")  # ours
    try:
        status = _status(path)
    finally:
        observer.remove()
        sys.argv, sys.path[:] = before
    try:
        sys.stdout.flush()
        observer.end()
    except (Exception, KeyboardInterrupt) as error:  # the script is over, and its status is its own
        said(f"the run could not be told: {type(error).__name__}: {' '.join(str(error).split())}")
    finally:
        log.removeHandler(handler)
        log.propagate = True
    return status


def _status(path: Path) -> int:
    """Run it, and the exit status that Python would give; a traceback begins in the script."""
    before = sys.modules["__main__"]
    try:
        _run_as_main(os.path.abspath(path))
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and Path(trace.tb_frame.f_code.co_filename).resolve() != path.resolve():
            trace = trace.tb_next
        told = traceback.TracebackException(type(error), error, trace or error.__traceback__)
        own = [frame for frame in told.stack if frame.filename != observing.__file__]  # without our wrappers
        told.stack = traceback.StackSummary.from_list(own)
        print("".join(told.format()), end="", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.modules["__main__"] = before
    return 0


def _run_as_main(path: str) -> None:
    """As Python does: ``__file__`` is the whole path while sys.argv[0] is as it was typed, which runpy makes one."""
    main = types.ModuleType("__main__")
    main.__file__, main.__loader__ = path, SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)
