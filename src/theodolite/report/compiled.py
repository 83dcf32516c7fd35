"""Templates are kept compiled beside them, as Python keeps its modules: to compile them takes longer than to fill them."""

import contextlib
import sys
from importlib.util import cache_from_source

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from theodolite.io.files import write_atomically


class Compiled(BytecodeCache):
    """Where Python would put the compiled file, and only if it may; a template that has changed is compiled anew."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file itself."""
        return filename or name

    def load_bytecode(self, bucket: Bucket) -> None:
        """What lies there, if it was made of this very text by this version."""
        with contextlib.suppress(OSError, NotImplementedError), open(cache_from_source(bucket.key), "rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Put it there; a folder that may not be written stays as it is."""
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError, NotImplementedError):
                write_atomically(cache_from_source(bucket.key), bucket.bytecode_to_string())
