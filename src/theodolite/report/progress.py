"""A bar for work that lasts, on standard error, gone when the work is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from theodolite.core.subject import Progress as Told

Item = TypeVar("Item")


def tracked(items: Iterable[Item], *, total: int, label: str, inner: Told | None = None) -> Iterator[Item]:
    """The same items, with a progress bar and the time left while they come; silent where nobody watches.

    With ``inner`` a second bar shows how far the work on the present item is.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
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
        finally:
            if inner is not None:
                inner.listener = None
