"""A bar for work that lasts, on standard error, gone when the work is done; elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from theodolite.core.subject import Progress as Told

Item = TypeVar("Item")


SELDOM = 10.0
"""Seconds between lines where there is no terminal; work that ends sooner says nothing."""


def tracked(
    items: Iterable[Item], *, total: int, label: str, inner: Told | None = None, left: Callable[[], float] | None = None
) -> Iterator[Item]:
    """The same items, with a progress bar and the time left while they come; a plain line now and then off terminals.

    With ``inner`` a second bar shows how far the work on the present item is; ``left()`` are the seconds of a budget.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        spoken = time.monotonic()
        present = progress.add_task("", total=None, visible=False)

        def step(words: str, done: int, of: int) -> None:
            progress.update(present, description=f"  {words}", completed=done, total=of, visible=done < of)

        if inner is not None:
            inner.listener = step
        try:
            for done, item in enumerate(items, 1):
                yield item
                progress.advance(task)
                budget = left() if left is not None else float("inf")
                rest = f", {budget:.0f} s left" if budget < float("inf") else ""
                progress.update(task, description=label + rest)
                if not console.is_terminal and time.monotonic() - spoken > SELDOM:
                    spoken = time.monotonic()
                    print(f"theodolite: {label}, {done} of {total}{rest}", file=sys.stderr)
        finally:
            if inner is not None:
                inner.listener = None
