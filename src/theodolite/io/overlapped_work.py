"""Work on many tensors at once: while one is read, another is multiplied, a third decomposed, a fourth fitted."""

import contextlib
import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from theodolite.core.lazy_torch import torch

Task = TypeVar("Task")
Found = TypeVar("Found")

THREADS = 6
"""Tensors that are worked on at once on a device: its solvers leave most of it idle, and so does a reader that waits."""


KEPT = 1 << 24
"""Bytes: glibc learns no more than 32 MB, and keeps at most twice what it learned unused."""

MOST_CORES, AHEAD = 4, 64
"""Cores of a processor that small matrices are shared out to, each with a tensor in memory, and how many may be found before
the one that is asked for."""


def overlapped(
    work: Callable[[Task], Found], tasks: Iterable[Task], *, device: str = "cpu", threads: int | None = None
) -> Iterator[Found]:
    """What ``work`` finds of each task, in their order; on a device several at once, each thread on a stream of its own.

    A task is begun only while few are ahead of the one asked for, so that as few tensors are in memory; on a processor many,
    since only what was found of them is still there. Its libraries use all cores by themselves, and so there it is one task
    after the other unless ``threads`` are asked for (`one_core_each`).
    """
    count = threads or (1 if device == "cpu" else THREADS)
    most = AHEAD if device == "cpu" else count + 1
    if count < 2:
        yield from map(work, tasks)
        return
    own = threading.local()

    def on_stream(task: Task) -> Found:
        if device == "cpu" or torch.device(device).type != "cuda":
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
            if len(ahead) > most:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def memory_given_back() -> None:
    """Freed memory goes back to the system, where the C library can be told so: glibc keeps what threads have freed in pieces.

    A survey of 225 packed matrices held 800 MB of it at the end.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library; on Windows this one has no name
        ctypes.CDLL(None).malloc_trim(0)


def memory_kept() -> None:
    """Buffers of up to `KEPT` bytes that are freed from now on stay with the process, for the next ones of their size.

    glibc learns such sizes from a block that is given back; this one is never written to. Else the buffers of every product
    with a Hessian return to the system, which hands them out anew page by page: up to a tenth of the product's time.
    """
    torch.empty(KEPT, dtype=torch.uint8)


def spare_cores() -> int:
    """How many cores this process may use: those of its affinity, or fewer where the libraries are told so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]
    return min([cores, *(int(words) for words in told if words.isdecimal() and int(words) > 0)])


@contextlib.contextmanager
def one_core_each() -> Iterator[None]:
    """The libraries of linear algebra work on one core each, for threads that each have a matrix of their own."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1, user_api="blas"):
        yield
