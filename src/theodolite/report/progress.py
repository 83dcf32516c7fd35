"""A bar for work that lasts, on standard error, gone when the work is done; elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import os
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
    if not _on_terminal():
        yield from _spoken(items, total, label, left)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    if not console.is_terminal:  # a notebook
        yield from _spoken(items, total, label, left)
        return
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=total)
        present = progress.add_task("", total=None, visible=False)

        def step(words: str, done: int, of: int) -> None:
            progress.update(present, description=f"  {words}", completed=done, total=of, visible=done < of)

        if inner is not None:
            inner.listener = step
        try:
            for item in items:
                yield item
                progress.advance(task)
                progress.update(task, description=label + _rest(left))
        finally:
            if inner is not None:
                inner.listener = None


def _on_terminal() -> bool:
    """Whether rich would draw a bar, told without loading it."""
    told = bool(os.environ.get("FORCE_COLOR")) or os.environ.get("TTY_COMPATIBLE") == "1"
    with contextlib.suppress(AttributeError, ValueError):  # standard error is gone, or closed
        return told or sys.stderr.isatty()
    return False


def _spoken(items: Iterable[Item], total: int, label: str, left: Callable[[], float] | None) -> Iterator[Item]:
    """The same items, with a line now and then."""
    spoken = time.monotonic()
    for done, item in enumerate(items, 1):
        yield item
        if time.monotonic() - spoken > SELDOM:
            spoken = time.monotonic()
            print(f"theodolite: {label}, {done} of {total}{_rest(left)}", file=sys.stderr)


def _rest(left: Callable[[], float] | None) -> str:
    budget = left() if left is not None else float("inf")
    return f", {budget:.0f} s left" if budget < float("inf") else ""
