"""A cursor over bytes, of a file or in memory, that never reads past their end nor more than it was allowed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO


class Cursor:
    """Reads forward from a place; a length that leads out of the file is an error before anything is read."""

    def __init__(self, source: str | bytes, place: int = 0, end: int | None = None) -> None:
        self.file: BinaryIO = io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")  # noqa: SIM115
        self.file.seek(0, 2)
        self.end = self.file.tell() if end is None else end
        self.move(place)

    def __enter__(self) -> Cursor:
        """The cursor itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def move(self, place: int) -> None:
        """Go on at another place."""
        if not 0 <= place <= self.end:
            raise ValueError(f"a place at byte {place:,} of {self.end:,}")
        self.place = place
        self.file.seek(place)

    def skip(self, count: int) -> int:
        """Pass over so many bytes; where they began."""
        start = self.place
        self.move(start + count)
        return start

    def take(self, count: int, most: int = 1 << 20) -> bytes:
        """The next bytes."""
        if not 0 <= count <= min(most, self.end - self.place):
            raise ValueError(f"{count:,} bytes asked for at byte {self.place:,} of {self.end:,}")
        found = self.file.read(count)
        if len(found) != count:
            raise ValueError("a file that became shorter")
        self.place += count
        return found

    def number(self, size: int, *, order: str = "little", signed: bool = False) -> int:
        """A whole number of so many bytes."""
        return int.from_bytes(self.take(size), "little" if order == "little" else "big", signed=signed)

    def varint(self) -> int:
        """A number in groups of seven bits, the last group first marked by its high bit, as protocol buffers have it."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than ten bytes")

    def fields(self, end: int) -> Iterator[tuple[int, int, int]]:
        """Number, start and length of each field of a protocol buffer up to ``end``; of a number -1 and its value."""
        while self.place < end:
            tag = self.varint()
            number, kind = tag >> 3, tag & 7
            if kind == 0:
                yield number, -1, self.varint()
                continue
            length = self.varint() if kind == 2 else {1: 8, 5: 4}.get(kind, -1)
            if length < 0 or self.place + length > end or not number:
                raise ValueError(f"a field of kind {kind} and {length:,} bytes at byte {self.place:,}")
            start, after = self.place, self.place + length
            yield number, start, length
            self.move(after)
