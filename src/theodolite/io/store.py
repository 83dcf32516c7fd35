"""What was found so far, by key: with a folder it outlives the process, and work that was killed goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.core.checks import InputError
from theodolite.io.files import json_ready, write_atomically
from theodolite.io.folder_lock import claim

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.float64]]


LATEST, SMALL = 0.5, 512
"""Seconds that what may be written soon waits at most, and entries up to which an array stands in its record's line."""


@dataclass(frozen=True)
class Stored:
    """A value of JSON's own types, the arrays that belong to it, and the ``fingerprint`` of all that it depends on."""

    value: Any
    arrays: Arrays = field(default_factory=dict)
    fingerprint: str = ""


class Store:
    """One rule: what lies under a key with the same fingerprint is not computed again; anything else is, and replaces it.

    In a folder it is ``records.jsonl``, one line a record, on disk when `put` returns, so that a crash loses at most the record
    being written; large arrays lie beside it and are written before the line that names them. One process at a time writes into
    a folder: another is refused in words. Without a folder it forgets, and so it does from the moment on at which the folder
    cannot be written.

    >>> store = Store()
    >>> store.put("sum", 3, fingerprint="1 + 2")
    >>> store.get("sum", "1 + 2").value, store.get("sum", "2 + 2")
    (3, None)
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._found: dict[str, Stored] = {}
        self._lines: dict[str, str] = {}
        self._waiting: list[str] = []
        self._written = time.monotonic()
        self._claimed = False
        if folder is not None and (folder / "records.jsonl").exists():
            self._claim(folder)
            self._read(folder / "records.jsonl")

    def __getstate__(self) -> dict[str, Any]:
        """For a worker, which writes for the run that has the folder."""
        return {**self.__dict__, "_claimed": True, "_waiting": []}

    def get(self, key: str, fingerprint: str = "") -> Stored | None:
        """What lies under the key; nothing where it was found for something else, or an array is gone or damaged."""
        found = self._found.get(key)
        if found is None or found.fingerprint != fingerprint:
            return None
        if any(array is None for array in found.arrays.values()):
            arrays = {name: _loaded(self._array(key, fingerprint, name)) for name in found.arrays}
            if any(array is None for array in arrays.values()):
                return None
            found = self._found[key] = Stored(found.value, arrays, fingerprint)
        return found

    def put(
        self,
        key: str,
        value: Any,
        *,
        fingerprint: str = "",
        arrays: Arrays | None = None,
        durable: bool = True,
        soon: bool = False,
    ) -> None:
        """Keep a value and its arrays; only ``durable`` ones go to the folder.

        Those that may go there ``soon`` do so together, half a second later at most, or when `flush` is called: to wait for
        the disk takes longer than most of what is worked out of small tensors.
        """
        arrays = arrays or {}
        self._found[key] = Stored(json_ready(value), arrays, fingerprint)
        if self.folder is None or not durable:
            return
        self._claim(self.folder)
        try:
            for name, array in arrays.items():
                if not _is_small(array):
                    _save(self._array(key, fingerprint, name), array)
            self._lines[key] = _line(key, self._found[key])
            self._waiting.append(self._lines[key])
            if not soon or time.monotonic() - self._written > LATEST:
                self.flush()
        except OSError:  # a full disk, a folder that may not be written: from here on it forgets, and the work goes on
            self.folder = None

    def _claim(self, folder: Path) -> None:
        if not self._claimed:
            claim(folder, self)
            self._claimed = True

    def flush(self) -> None:
        """Everything that was put is on disk when this returns."""
        lines = "".join(self._waiting)
        self._waiting = []  # before they are written: an interrupt while the disk is waited for must not write them again
        if self.folder is not None and lines:
            try:
                self._append(lines)
            except OSError:
                self.folder = None
        self._written = time.monotonic()

    def _append(self, line: str) -> None:
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "records.jsonl").open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def drop(self, keys: set[str]) -> None:
        """Forget these, on disk too."""
        self._found = {key: found for key, found in self._found.items() if key not in keys}
        self._lines = {key: line for key, line in self._lines.items() if key not in keys}
        self._waiting = []
        if self.folder is not None:
            write_atomically(self.folder / "records.jsonl", "".join(self._lines.values()))

    def __iter__(self) -> Iterator[str]:
        """The keys, in the order in which they came."""
        return iter(tuple(self._found))

    def _read(self, path: Path) -> None:
        """Every whole record, the last of each key; a last line that a crash tore is gone from the file afterwards."""
        text = path.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.split("\n") if line.strip()]
        for place, line in enumerate(lines):
            try:
                record = json.loads(line)
                key = record["key"]
                arrays = {name: _inline(record, name) for name in record["arrays"]}
                stored = Stored(record["value"], arrays, record["fingerprint"])
            except (ValueError, KeyError, TypeError) as error:
                if place == len(lines) - 1:
                    break
                raise InputError(
                    f"expected records in {path}, got line {place + 1} damaged; remove that line, or the folder"
                ) from error
            self._found[key], self._lines[key] = stored, line + "\n"
        if "".join(self._lines.values()) != text:
            self.drop(set())

    def _array(self, key: str, fingerprint: str, name: str) -> Path:
        assert self.folder is not None
        # of file names that are not UTF-8
        words = "\0".join((key, fingerprint, name)).encode("utf-8", "backslashreplace")
        return self.folder / "arrays" / f"{hashlib.sha256(words).hexdigest()[:32]}.npy"


def _is_small(array: Any) -> bool:
    """Whether it stands in its record's line: a file of its own would take longer to write than to fill."""
    import numpy as np

    return array.ndim == 1 and array.size <= SMALL and bool(np.isfinite(array).all())


def _inline(record: Mapping[str, Any], name: str) -> Any:
    import numpy as np

    found = record.get("inline", {}).get(name)
    return None if found is None else np.array(found, dtype=np.float64)


def _line(key: str, found: Stored) -> str:
    record = {"key": key, "fingerprint": found.fingerprint, "value": found.value, "arrays": list(found.arrays)}
    small = {name: array.tolist() for name, array in found.arrays.items() if _is_small(array)}
    record |= {"inline": small} if small else {}
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def _loaded(path: Path) -> Any:
    import numpy as np

    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError):  # gone or damaged
        return None


def _save(path: Path, array: Any) -> None:
    from io import BytesIO

    import numpy as np

    buffer = BytesIO()
    np.save(buffer, np.asarray(array, dtype=np.float64))
    write_atomically(path, buffer.getvalue())
