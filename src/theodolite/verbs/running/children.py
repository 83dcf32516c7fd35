"""Processes that a script starts, watched like the script itself: by `multiprocessing`, and ranks that a launcher starts.

The target of a process is wrapped where it is made, so that forked and spawned ones are alike; of several the first one watches.
Workers of data loaders are left alone. A launcher (torchrun, accelerate) starts Python with a RANK in its environment: each such
process is started as ``python -m theodolite run`` of the same script, and the first of them speaks.
"""

import functools
import multiprocessing.process
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEFT_ALONE = ("torch.utils.data", "multiprocessing", "torch._inductor", "torch.multiprocessing.pool", "joblib", "loky")
"""Modules whose processes do not train."""


@dataclass
class Children:
    """``settings`` are those of the run, ``watching`` wraps a target; ``count`` is how many processes were wrapped so far."""

    out: Path
    settings: dict[str, Any]
    watching: Callable[..., Callable[..., Any]]
    count: int = 0
    _undo: list[Callable[[], Any]] = field(default_factory=list)

    def install(self) -> None:
        """Wrap what starts processes."""
        starts: Any = multiprocessing.process.BaseProcess.start

        @functools.wraps(starts)
        def start(process: Any) -> Any:
            target = getattr(process, "_target", None)
            if target is not None and not _module_of(target).startswith(LEFT_ALONE) and not process.daemon:
                process._target = self.watching(target, self.out, self.settings, first=self.count == 0)
                self.count += 1
            return starts(process)

        opens: Any = subprocess.Popen.__init__

        @functools.wraps(opens)
        def init(process: Any, args: Any, *rest: Any, **keywords: Any) -> None:
            if isinstance(args, list | tuple) and "RANK" in (keywords.get("env") or {}):
                args = self._launched(list(args))
            opens(process, args, *rest, **keywords)

        for owner, name, new in (
            (multiprocessing.process.BaseProcess, "start", start),
            (subprocess.Popen, "__init__", init),
        ):
            self._undo.append(functools.partial(setattr, owner, name, getattr(owner, name)))
            setattr(owner, name, new)

    def remove(self) -> None:
        """Leave them as they were."""
        for undo in self._undo:
            undo()
        self._undo = []

    def _launched(self, args: list[Any]) -> list[Any]:
        """The command of one rank with the watch in front of its script."""
        if not args or str(args[0]) != sys.executable:
            return args
        place = 1
        while place < len(args) and str(args[place]).startswith("-") and str(args[place]) != "-m":
            place += 1
        if place >= len(args):
            return args
        self.count += 1
        own = ["-m", "theodolite", "run", "--out", str(self.out)]
        for name, value in self.settings.items():
            own += [f"--{name}", str(value)] if name in ("every", "level") else []
        own += [] if self.settings.get("diagnose", True) else ["--no-diagnosis"]
        return [*args[:place], *own, *args[place:]]


def _module_of(target: Any) -> str:
    inner = target
    while isinstance(inner, functools.partial):
        inner = inner.func
    return str(getattr(inner, "__module__", "") or "")
