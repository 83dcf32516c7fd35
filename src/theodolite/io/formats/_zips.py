"""Members of zip files, with their sizes held against the file before anything is unpacked."""

import lzma
import struct
import zipfile
import zlib
from pathlib import Path

MOST_MEMBERS = 200_000
LARGEST_UNPACKED = 1 << 28
WORST_RATIO = 100
ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    struct.error,
    IndexError,
    zlib.error,
    lzma.LZMAError,
)
"""All that a damaged, encrypted or strange zip makes the standard library say."""


def members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """The members by name, each once, none of them a bomb."""
    with zipfile.ZipFile(path) as file:
        found = file.infolist()
    if len(found) > MOST_MEMBERS:
        raise ValueError(f"{len(found):,} members, of {MOST_MEMBERS:,} at most")
    by_name = {info.filename: info for info in found}
    if len(by_name) != len(found):
        raise ValueError("a member twice")
    size = path.stat().st_size
    for info in found:
        stored = info.compress_type == zipfile.ZIP_STORED
        if info.flag_bits & 1:
            raise ValueError(f"{info.filename} encrypted")
        if info.compress_size > size or (stored and info.file_size != info.compress_size):
            raise ValueError(f"{info.filename} of more bytes than the file has")
        if info.file_size > max(LARGEST_UNPACKED, WORST_RATIO * info.compress_size):
            raise ValueError(f"{info.filename}, {info.compress_size:,} bytes that unpack to {info.file_size:,}")
    return by_name


def start_of(path: Path, info: zipfile.ZipInfo) -> int:
    """Where the bytes of a member that is stored as it is begin."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        head = file.read(30)
    if len(head) < 30 or head[:4] != b"PK\3\4":
        raise ValueError(f"no header before {info.filename}")
    name, extra = struct.unpack("<HH", head[26:30])
    start = info.header_offset + 30 + name + extra
    if start + info.compress_size > path.stat().st_size:
        raise ValueError(f"{info.filename} beyond the end of the file")
    return int(start)


def content(path: Path, name: str, most: int) -> bytes:
    """All of a member of at most so many bytes; its checksum is checked."""
    with zipfile.ZipFile(path) as file:
        if file.getinfo(name).file_size > most:
            raise ValueError(f"{name} of {file.getinfo(name).file_size:,} bytes, of {most:,} at most")
        with file.open(name) as member:
            found = member.read(most + 1)
    if len(found) > most:
        raise ValueError(f"{name} of more than {most:,} bytes")
    return found
