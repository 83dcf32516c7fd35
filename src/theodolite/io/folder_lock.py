"""One process at a time writes into a folder: two would mix their results."""

import weakref
from pathlib import Path
from typing import IO, Any

from theodolite.core.checks import InputError

NAME = ".lock"
_claimed: dict[Path, tuple[IO[bytes], int]] = {}
"""The locks that this process holds, and for how many holders; the system gives them back when it ends, however it ends."""


def claim(folder: Path, holder: Any) -> None:
    """Keep other processes from writing into the folder for as long as the ``holder`` lives.

    Where the folder cannot be made, or the file system knows no locks, nothing is claimed.
    """
    try:
        import fcntl

        folder.mkdir(parents=True, exist_ok=True)
        key = folder.resolve()
        if key not in _claimed:
            file = (folder / NAME).open("ab")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise InputError(
                    f"expected an unused folder for this run, got {folder}, which another run is writing to; "
                    "pass another --out, or wait for that run"
                ) from error
            _claimed[key] = (file, 0)
    except (OSError, ImportError):
        return
    except ValueError as error:
        if str(error).startswith("expected"):
            raise
        raise InputError(
            f"expected a folder that can be made, got {str(folder)!r}: {error}; pass another --out"
        ) from error
    _claimed[key] = (_claimed[key][0], _claimed[key][1] + 1)
    weakref.finalize(holder, _released, key)


def let_go() -> None:
    """Close the locks that a copy of the process was born with: they stay with the one that has them."""
    for file, _ in _claimed.values():
        file.close()


def _released(key: Path) -> None:
    file, holders = _claimed.get(key, (None, 0))
    if file is None:
        return
    if holders > 1:
        _claimed[key] = (file, holders - 1)
        return
    del _claimed[key]
    file.close()
