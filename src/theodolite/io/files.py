"""Files written whole or not at all, values as plain JSON, and words that are safe to print."""

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write ``content`` so that a reader, or a crash, sees the old file or the new one, never a part of it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, 0o644 & ~_umask())
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def json_ready(value: Any) -> Any:
    """The value in JSON's own types: tuples as lists, numbers that are not finite as null.

    >>> json_ready({"a": (1, float("inf"))})
    {'a': [1, None]}
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_ready(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(member) for member in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool | int | str):
        return value
    return json_ready(value.item()) if hasattr(value, "item") else str(value)


_AS_THEY_ARE = (str, int, bool, type(None))


def json_text(value: Any) -> str:
    """Values of JSON's own types, indented by two."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def is_plain_file(path: Path) -> bool:
    """Whether there is a file that can be read to its end; of a name that the system cannot have there is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """Whether there is a file or folder of that name; of a name that the system cannot have there is none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def printable(text: str, most: int = 10**9) -> str:
    """Text in which nothing moves the cursor, turns the direction of writing or cannot be encoded: escaped instead.

    >>> printable("a\\x1b[31m b\\r\\u202e")
    'a\\\\x1b[31m b\\\\r\\\\u202e'
    """
    if len(text) > most:
        text = text[: most // 2] + " … " + text[len(text) - most // 2 + 3 :]
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


def said(error: BaseException, most: int = 400) -> str:
    """What an exception says, in one line of at most so many letters that are safe to print."""
    return printable(" ".join(str(error).split()) or type(error).__name__, most)
