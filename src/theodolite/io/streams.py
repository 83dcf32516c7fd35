"""Work on many tensors of a device at once: while one is read, another is multiplied, a third decomposed, a fourth fitted."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from theodolite.core.late import torch

Task = TypeVar("Task")
Found = TypeVar("Found")

THREADS = 6
"""Tensors that are worked on at once on a device: its solvers leave most of it idle, and so does a reader that waits."""


def overlapped(
    work: Callable[[Task], Found], tasks: Iterable[Task], *, device: str = "cpu", threads: int | None = None
) -> Iterator[Found]:
    """What ``work`` finds of each task, in their order; on a device several at once, each thread on a stream of its own.

    A task is begun only while few are ahead of the one asked for, so that as few tensors are in memory. On a processor,
    whose libraries use all cores by themselves, one after the other.
    """
    count = THREADS if threads is None else threads
    if device == "cpu" or count < 2:
        yield from map(work, tasks)
        return
    own = threading.local()

    def on_stream(task: Task) -> Found:
        if torch.device(device).type != "cuda":
            return work(task)
        if not hasattr(own, "stream"):
            own.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(own.stream):
            found = work(task)
            own.stream.synchronize()  # before its tensors are given back to the memory that others take from
        return found

    ahead: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="tensor")
    try:
        for task in tasks:
            ahead.append(pool.submit(on_stream, task))
            if len(ahead) > count + 1:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
