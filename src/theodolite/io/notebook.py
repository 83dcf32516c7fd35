"""What was found so far: shared by instruments, and with a folder kept on disk as it comes."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.io.files import plain, write_atomically

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Notebook:
    """Arrays by name, and lines of notes. Without a folder it forgets when it is dropped.

    >>> notes = Notebook()
    >>> import numpy as np
    >>> notes.array("squares", lambda: np.arange(3) ** 2).tolist()
    [0.0, 1.0, 4.0]
    >>> notes.array("squares", lambda: np.zeros(0)).tolist()  # known already
    [0.0, 1.0, 4.0]
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.progress: Callable[[str, int, int], None] = _silent
        self._arrays: dict[str, Any] = {}

    def array(
        self, key: str, compute: Callable[[], NDArray[np.float64]], *, durable: bool = False
    ) -> NDArray[np.float64]:
        """The array of this name, computed if it is not known. ``durable`` ones are kept in the folder, if there is one.

        The key must name everything the array depends on.
        """
        import numpy as np

        if key in self._arrays:
            return self._arrays[key]  # type: ignore[no-any-return]
        path = self._path(key) if durable and self.folder is not None else None
        found = _loaded(path) if path is not None else None
        if found is None:
            found = np.asarray(compute(), dtype=np.float64)
            if path is not None:
                _save(path, found)
        self._arrays[key] = found
        return found

    def record(self, key: str, compute: Callable[[], Any], *, durable: bool = False) -> Any:
        """A value of JSON's own types, kept as `array` keeps arrays."""
        path = self._path(key).with_suffix(".json") if durable and self.folder is not None else None
        if path is not None and path.exists():
            try:
                return json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                pass
        found = plain(compute())
        if path is not None:
            write_atomically(path, json.dumps(found))
        return found

    def knows(self, key: str) -> bool:
        """Whether a durable record of this name is on disk."""
        return self.folder is not None and self._path(key).with_suffix(".json").exists()

    def note(self, record: Mapping[str, Any]) -> None:
        """Append one line of JSON to notes.jsonl in the folder."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "notes.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain(record), ensure_ascii=False, allow_nan=False) + "\n")

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / "arrays" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"


def _silent(label: str, done: int, total: int) -> None:
    """Nobody is watching."""


def _loaded(path: Path) -> Any:
    import numpy as np

    if not path.exists():
        return None
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError):  # damaged: compute it again
        return None


def _save(path: Path, array: Any) -> None:
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        np.save(file, array)
    os.replace(scratch, path)
