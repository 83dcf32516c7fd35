"""Work shared out among copies of this process, which begin at once with all that it has loaded.

Threads share more than memory: one at a time runs Python, and numpy's solvers of eigenvalues wait for each other.
"""

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from itertools import zip_longest
from typing import Any, TypeVar

from theodolite.io.folder_lock import let_go

Task = TypeVar("Task")
Found = TypeVar("Found")

_given: list[Any] = []
"""In a copy: the work and its tasks, with which it was born."""


def may_fork() -> bool:
    """Whether a copy of this process can go on working: on Linux, before torch or JAX, with no thread but that of a bar."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    bars = all(type(thread).__module__.startswith("rich.") for thread in others)
    return sys.platform == "linux" and bars and not {"torch", "jax"} & sys.modules.keys()


def forked(work: Callable[[Task], Found], tasks: Sequence[Task], *, processes: int) -> Iterator[Found]:
    """What ``work`` finds of each task, in their order; each of so many copies takes the next one when it has done the last.

    What it finds must be of kinds that pickle knows. Tasks of a copy that is lost, and those that raise there, are done here.
    """
    if processes < 2 or len(tasks) < 2:
        yield from map(work, tasks)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    copies = ProcessPoolExecutor(min(processes, len(tasks)), get_context("fork"), _begin, (work, tasks))
    asked: list[Future[Found]] = []
    try:
        with suppress(BrokenExecutor), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that are there: see `may_fork`
            asked.extend(copies.submit(_done, place) for place in range(len(tasks)))
        for task, found in zip_longest(tasks, asked):
            yield work(task) if found is None or found.exception() is not None else found.result()
    finally:
        copies.shutdown(cancel_futures=True)


def _begin(work: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    let_go()
    _given[:] = work, tasks


def _done(place: int) -> Any:
    work, tasks = _given
    return work(tasks[place])
