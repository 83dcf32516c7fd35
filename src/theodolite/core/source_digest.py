"""A digest of the sources that a law may depend on: a stored verdict is not reused once any of them has changed."""

import functools
import hashlib
from pathlib import Path

ROOMS = ("bayes", "construct", "core", "io", "measure", "nn.py", "optim.py", "theory")
"""What a law may import, by the contract of the layers."""


def source_digest(root: Path, law: Path) -> str:
    """Changes with the law's own file and with any file of the rooms below it in the package in folder ``root``."""
    return hashlib.sha256(_rooms_digest(root) + _entry(root, law)).hexdigest()


@functools.cache
def _rooms_digest(root: Path) -> bytes:
    """As the files were when first read in this process."""
    below = [path for room in ROOMS for path in (root / room, *(root / room).rglob("*"))]
    files = sorted(path for path in below if path.is_file() and path.suffix != ".pyc")
    return hashlib.sha256(b"".join(_entry(root, path) for path in files)).digest()


def _entry(root: Path, path: Path) -> bytes:
    return path.relative_to(root).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest()
