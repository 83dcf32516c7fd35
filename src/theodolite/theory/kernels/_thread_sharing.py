"""How work is shared among cores, for a while, with everything restored after."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


@contextmanager
def one_core() -> Iterator[int]:
    """Within, this thread computes on one core; the number of threads that torch had is given, and restored after."""
    before = torch.get_num_threads()
    if before > 1:
        torch.set_num_threads(1)
    try:
        yield before
    finally:
        if before > 1:
            torch.set_num_threads(before)


def run_in_threads(work: Callable[[], None], threads: int) -> None:
    """Run the same work in several threads, each of which computes on one core."""
    if threads <= 1:
        work()
        return

    def alone() -> None:
        torch.set_num_threads(1)
        with torch.no_grad():
            work()

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(alone) for _ in range(threads)]:
            done.result()


def in_order(work: Callable[[Job], Result], jobs: Iterable[Job], threads: int) -> Iterator[Result]:
    """What becomes of each job, in their order, from several threads of one core each; few are done ahead."""
    if threads <= 1:
        yield from map(work, jobs)
        return

    def alone(job: Job) -> Result:
        with torch.no_grad():
            return work(job)

    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        ahead: deque[Future[Result]] = deque()
        for job in jobs:
            ahead.append(pool.submit(alone, job))
            if len(ahead) > 2 * threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
