"""Work shared out among copies of this process, which begin at once with all that it has loaded.

Threads share more than memory: one at a time runs Python, and numpy's solvers of eigenvalues wait for each other.
"""

import contextlib
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

from theodolite.io.folder_lock import let_go

Task = TypeVar("Task")
Found = TypeVar("Found")

TICKET, MOST_TASKS = 4, 1 << 14
"""Bytes that name a task, and how many of them a pipe holds."""


def may_fork() -> bool:
    """Whether a copy of this process can go on working: on Linux, before torch or JAX, with no thread but that of a bar."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    bars = all(type(thread).__module__.startswith("rich.") for thread in others)
    return sys.platform == "linux" and bars and not {"torch", "jax"} & sys.modules.keys()


def forked(work: Callable[[Task], Found], tasks: Sequence[Task], *, processes: int) -> Iterator[Found]:
    """What ``work`` finds of each task, in their order; each process takes the next one when it has done the last.

    What it finds must be of kinds that pickle knows. Tasks of a copy that is lost, and those that raise there, are done here.
    """
    if processes < 2 or not 1 < len(tasks) <= MOST_TASKS:
        yield from map(work, tasks)
        return
    tickets, writing = os.pipe()
    os.write(writing, b"".join(place.to_bytes(TICKET, "little") for place in range(len(tasks))))
    os.close(writing)
    arrived: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
    copies = [_copied(work, tasks, tickets, arrived) for _ in range(processes - 1)]
    try:
        yield from _in_order(work, tasks, tickets, arrived, len(copies))
    finally:
        os.close(tickets)
        for copy in copies:
            with contextlib.suppress(ProcessLookupError):
                os.kill(copy, signal.SIGKILL)  # where nobody asks for the rest
            os.waitpid(copy, 0)


def _in_order(
    work: Callable[[Task], Found], tasks: Sequence[Task], tickets: int, arrived: SimpleQueue[Any], copies: int
) -> Iterator[Found]:
    found: dict[int, Found] = {}
    following, own = 0, _taken(tickets)
    while following < len(tasks):
        place = next(own, None)
        if place is not None:
            found[place] = work(tasks[place])
        while copies and (place is None or not arrived.empty()):  # without work of its own it waits
            came = arrived.get()
            if came is None:
                copies -= 1
            else:
                found[came[0]] = came[1]
                if came[0] == following:
                    break
        if place is None and not copies and following not in found:
            found[following] = work(tasks[following])
        while following in found:
            yield found.pop(following)
            following += 1


def _taken(tickets: int) -> Iterator[int]:
    """The tasks that this process has drawn: a pipe gives each number to one reader."""
    while ticket := os.read(tickets, TICKET):
        yield int.from_bytes(ticket, "little")


def _copied(work: Callable[[Task], Found], tasks: Sequence[Task], tickets: int, arrived: SimpleQueue[Any]) -> int:
    """A copy of this process at work, what it finds on its way into the queue; its number."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that are there: see `may_fork`
        copy = os.fork()
    if not copy:
        _work_until_the_end(work, tasks, tickets, writing)
    os.close(writing)
    threading.Thread(target=_received, args=(reading, arrived), daemon=True).start()
    return copy


def _work_until_the_end(work: Callable[[Task], Found], tasks: Sequence[Task], tickets: int, writing: int) -> None:
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        let_go()
        with os.fdopen(writing, "wb") as pipe:
            for place in _taken(tickets):
                pickle.dump((place, work(tasks[place])), pipe, protocol=pickle.HIGHEST_PROTOCOL)
                pipe.flush()
    finally:
        os._exit(0)  # nothing that the first process will do at its end


def _received(reading: int, arrived: SimpleQueue[Any]) -> None:
    with contextlib.suppress(EOFError, pickle.UnpicklingError), os.fdopen(reading, "rb") as pipe:
        while True:
            arrived.put(pickle.load(pipe))
    arrived.put(None)
