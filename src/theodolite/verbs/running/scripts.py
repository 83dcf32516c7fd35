"""A script run as Python would run it, watched; nothing goes to standard output, and its exit status is its own."""

import importlib.util
import json
import logging
import math
import os
import runpy
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, Literal

import torch

from theodolite.core.checks import InputError
from theodolite.io.files import write_atomically
from theodolite.verbs.running.children import Children
from theodolite.verbs.running.ending import end
from theodolite.verbs.running.observing import Observer, said
from theodolite.verbs.watching.look_context import Level
from theodolite.verbs.watching.watch import Watch


def run_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    *,
    out: Path,
    every: int | Literal["auto"] = "auto",
    level: Level = "standard",
    diagnose: bool = True,
    budget: float = math.nan,
    module: bool = False,
) -> int:
    """Run a script as ``python script arguments`` would, watched; its exit status.

    The page ``run.html`` and the numbers ``run.json`` are in ``out`` at the end; findings are on standard error as they appear.
    """
    path = _module_file(str(script)) if module else Path(script)
    if not path.is_file():
        raise InputError(f"expected a script that can be read, got {script}; pass its path")
    command = {"script": str(script), "arguments": list(arguments), "module": module, "folder": os.getcwd()}
    write_atomically(out / "command.json", json.dumps({**command, "every": every, "level": level}, indent=2) + "\n")
    before = list(sys.argv), list(sys.path)
    sys.argv = [str(path if module else script), *arguments]
    sys.path[0] = os.getcwd() if module else str(path.resolve().parent)
    status = 0

    def body() -> None:
        nonlocal status
        status = _status(path, str(script) if module else None)

    def after() -> None:
        sys.argv, sys.path[:] = before

    watched(body, out=out, every=every, level=level, diagnose=diagnose, budget=budget, after=after)
    return status


def run_again(out: Path) -> int:
    """Run the script of a run once more, and finish its diagnosis: all trials that help, whatever they cost."""
    told = json.loads((out / "command.json").read_text(encoding="utf-8"))
    out = out.resolve()
    os.chdir(told["folder"])
    how = {name: told[name] for name in ("every", "level", "module")}
    return run_script(told["script"], told["arguments"], out=out, budget=math.inf, **how)


_namespaces: list[dict[str, Any]] = []
"""What scripts left behind: it lives as long as the process, as under Python itself. A group of processes whose last reference
goes while a thread of its own still gives back a tensor waits for that thread forever."""

_watching: list[Observer] = []
"""The observer of this process; a forked one begins with that of its parent, which has no business in it."""


def watched(
    body: Callable[[], Any],
    *,
    out: Path,
    every: int | Literal["auto"] = "auto",
    level: Level = "standard",
    diagnose: bool = True,
    budget: float = math.nan,
    quiet: bool = False,
    after: Callable[[], Any] | None = None,
    on_watch: Callable[[Watch], Any] | None = None,
) -> None:
    """Run ``body()`` with all that trains in it watched, in this process and in those that it starts.

    ``quiet``: that nothing was seen is not said, as of a process beside others. ``on_watch`` is called with the watch once it is
    known what is trained.
    """
    for inherited in _watching:
        inherited.remove()
    log = logging.getLogger("theodolite")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("theodolite: %(message)s"))
    log.handlers, log.propagate = [handler], False
    settings = {"every": every, "level": level, "diagnose": diagnose}
    observer, children = Observer(out.resolve(), every, level, on_watch), Children(out.resolve(), settings, Watching)
    _watching[:] = [observer]
    began = time.time()
    observer.install()
    children.install()
    warnings.filterwarnings("ignore", message="Using `torch.compile.module.` when there are global hooks")  # ours
    try:
        body()
    finally:
        observer.remove()
        children.remove()
        _watching.clear()
        if after is not None:
            after()
        try:
            sys.stdout.flush()
            elsewhere = children.count > 0 and _is_newer(out / "run.json", began)
            with warnings.catch_warnings(action="ignore"):  # what is computed again was warned of by the script
                end(observer, diagnose=diagnose, budget=budget, quiet=quiet or elsewhere)
        except (Exception, KeyboardInterrupt) as error:  # the script is over, and its status is its own
            said(f"the run could not be summarized: {type(error).__name__}: {' '.join(str(error).split())}")
        finally:
            log.removeHandler(handler)
            log.propagate = True


@dataclass
class Watching:
    """The target of a process, watched while it runs."""

    target: Callable[..., Any]
    out: Path
    settings: dict[str, Any]
    first: bool

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run it; only the first of several is watched."""
        if not self.first:
            return self.target(*args, **keywords)
        found: list[Any] = []
        watched(lambda: found.append(self.target(*args, **keywords)), out=self.out, quiet=True, **self.settings)
        return found[0] if found else None


def _is_newer(path: Path, began: float) -> bool:
    return path.exists() and path.stat().st_mtime >= began


def _module_file(name: str) -> Path:
    """The file of a module, that of a package's ``__main__``; imported from the present folder first, as python does."""
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        found = None
    finally:
        sys.path.pop(0)
    if found is None or found.origin is None:
        raise InputError(f"expected a module that can be run, got {name}; pass its name as to python -m")
    return Path(found.origin)


def _status(path: Path, module: str | None = None) -> int:
    """Run it, and the exit status that Python would give; a traceback begins in the script."""
    before = sys.modules["__main__"]
    try:
        if module is None:
            _run_as_main(os.path.abspath(path))
        else:
            _namespaces.append(runpy.run_module(module, run_name="__main__", alter_sys=True))
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and Path(trace.tb_frame.f_code.co_filename).resolve() != path.resolve():
            trace = trace.tb_next
        told = traceback.TracebackException(type(error), error, trace or error.__traceback__)
        told.stack = traceback.StackSummary.from_list(_without_ours(list(told.stack)))
        print("".join(told.format()), end="", file=sys.stderr)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    finally:
        sys.modules["__main__"] = before
    return 0


def _without_ours(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """A stack as it would be without the watch: no frames of ours, and none by which torch hands a call over to a mode."""
    ours, handed = os.path.dirname(__file__), torch.overrides.__file__
    kept: list[traceback.FrameSummary] = []
    for frame in frames:
        if frame.filename == handed and kept and "torch" in kept[-1].filename:
            kept.pop()
        elif frame.filename != handed and os.path.dirname(frame.filename) != ours:
            kept.append(frame)
    return kept


def _run_as_main(path: str) -> None:
    """As Python does: ``__file__`` is the whole path while sys.argv[0] is as it was typed, which runpy makes one."""
    main = types.ModuleType("__main__")
    main.__file__, main.__loader__ = path, SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    _namespaces.append(main.__dict__)
    code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)
