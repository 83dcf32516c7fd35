"""How work is shared among cores, for a while, with everything restored after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


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
