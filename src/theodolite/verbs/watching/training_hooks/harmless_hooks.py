"""Hooks of a watch that never end a user's training: one that raises is not called again, and one line says so."""

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

Hook = TypeVar("Hook", bound=Callable[..., Any])

isolated = True
"""Whether what a hook raises is a line of the log; tests set it False, so that it raises."""


def harmless(hook: Hook) -> Hook:
    """A method that torch calls within the user's own step, and that must not end it.

    A method and not a function around one: copies of an optimizer copy the object that its hooks belong to.
    """

    @functools.wraps(hook)
    def called(self: Any, *args: Any, **keywords: Any) -> Any:
        if self.__dict__.get("_has_raised"):
            return None
        try:
            return hook(self, *args, **keywords)
        except Exception as error:
            if not isolated:
                raise
            self._has_raised = True
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            logging.getLogger("theodolite").warning("part of the watch stopped (%s): %s", type(self).__name__, said)
            return None

    return called  # type: ignore[return-value]
