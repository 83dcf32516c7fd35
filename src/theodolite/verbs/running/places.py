"""Where a warning comes from in a script that is watched: the place that it has without the watch.

What a look computes again is warned of once, by the script itself.
"""

import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

OURS, HANDED = os.path.dirname(__file__), torch.overrides.__file__


def _outside(frame: FrameType | None) -> tuple[FrameType | None, int]:
    """The first frame from here on that is there without a watch, and how many were left out.

    Where torch hands a call over to a mode, the function that does so is called once more from within it.
    """
    left_out, twice = 0, False
    while frame is not None and (twice or os.path.dirname(frame.f_code.co_filename) == OURS or _hands_over(frame)):
        twice = _hands_over(frame)
        frame, left_out = frame.f_back, left_out + 1
    return frame, left_out


def _hands_over(frame: FrameType) -> bool:
    return frame.f_code.co_filename == HANDED


def warns(
    whole: Callable[..., Any], message: Any, category: Any = None, stacklevel: int = 1, *rest: Any, **more: Any
) -> Any:
    """`warnings.warn` for the frame that ``stacklevel`` names without a watch."""
    outer, left_out = _outside(sys._getframe(1))
    assert outer is not None
    frame, level = outer, 2 + left_out
    for _ in range(stacklevel - 1):
        outer, left_out = _outside(frame.f_back)
        if outer is None:
            break
        frame, level = outer, level + 1 + left_out
    return whole(message, category, level, *rest, **more)


def shows(whole: Callable[..., Any], told: Any) -> Any:
    """A warning of torch's own code, which takes the function that called it for its place."""
    if os.path.dirname(told.filename) == OURS:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != told.filename:
            frame = frame.f_back
        frame, _ = _outside(frame)
        if frame is not None:
            place = frame.f_code.co_filename, frame.f_lineno
            told = warnings.WarningMessage(told.message, told.category, *place, told.file, None, told.source)
    return whole(told)


WRAPPED: tuple[tuple[str, Callable[..., Any]], ...] = (("warn", warns), ("_showwarnmsg_impl", shows))
