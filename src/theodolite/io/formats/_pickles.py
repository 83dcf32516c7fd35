"""Pickles read without running them: tensors, arrays and plain containers are built, every other object is an inert husk.

A pickle is a program that calls what it names. Here each name stands for one of a few functions of this file that only take
notes; a name that is not among them stands for `Husk`, which keeps what it is given and does nothing. Nothing is imported.
"""

import io
import math
import pickle
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from theodolite.core.lazy_torch import kind_of, torch
from theodolite.io.files import printable
from theodolite.io.formats._format import checked_shape, span
from theodolite.io.formats._stubs import ArrayStub, DtypeStub, Husk, Kind, StoredObject, Stub, members

LARGEST = 64_000_000
"""Bytes of a pickle without its storages: some 500,000 tensors."""

KINDS = {
    name: Kind(name, size)
    for size, names in {
        1: "bool int8 uint8 float8_e4m3fn float8_e5m2",
        2: "float16 bfloat16 int16",
        4: "float32 int32",
        8: "float64 int64 complex64",
        16: "complex128",
    }.items()
    for name in names.split()
}
BY_STORAGE = {
    "DoubleStorage": KINDS["float64"],
    "FloatStorage": KINDS["float32"],
    "HalfStorage": KINDS["float16"],
    "BFloat16Storage": KINDS["bfloat16"],
    "LongStorage": KINDS["int64"],
    "IntStorage": KINDS["int32"],
    "ShortStorage": KINDS["int16"],
    "CharStorage": KINDS["int8"],
    "ByteStorage": KINDS["uint8"],
    "BoolStorage": KINDS["bool"],
    "ComplexFloatStorage": KINDS["complex64"],
    "ComplexDoubleStorage": KINDS["complex128"],
    "UntypedStorage": KINDS["uint8"],
    "QInt8Storage": KINDS["int8"],
    "QUInt8Storage": KINDS["uint8"],
    "QInt32Storage": KINDS["int32"],
}
VIEWED_ENTRIES = 1 << 24
"""Entries up to which a view that repeats its storage is spread out."""


class Bytes(Protocol):
    """What a pickle can be read from."""

    def read(self, count: int, /) -> bytes:
        """So many bytes."""
        ...

    def readline(self) -> bytes:
        """A line."""
        ...


def plain(file: Bytes, storage: Callable[[Any], Any], foreign: set[str] | None = None) -> Any:
    """The object of one pickle, of stubs, husks and plain containers; ``storage`` answers to persistent names.

    The names of what would have been called are put into ``foreign``.
    """
    reader = _Reader(file, encoding="utf-8", errors="replace")
    reader.storage, reader.foreign = storage, set() if foreign is None else foreign
    return reader.load()


class _Reader(pickle._Unpickler):
    """The interpreter of pickles of the standard library, in Python, with every door closed."""

    storage: Callable[[Any], Any]
    foreign: set[str]
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def find_class(self, module: str, name: str) -> Any:
        """A function of this file, or `Husk`."""
        found = _KNOWN.get((module, name)) or _storage_type(module, name) or _dtype(module, name)
        if found is None:
            self.foreign.add(printable(f"{module}.{name}", 80))
        return found or Husk

    def persistent_load(self, pid: Any) -> Any:
        """A storage."""
        return self.storage(pid)

    def load_build(self) -> None:
        """Give an object its state."""
        state = self.stack.pop()
        found = self.stack[-1]
        if isinstance(found, ArrayStub | DtypeStub):
            found.take(state)
        elif isinstance(found, Husk):
            found.parts += members(state) if isinstance(state, dict) else [("state", state)]

    def load_newobj(self) -> None:
        """Make an object of a class."""
        given = self.stack.pop()
        self.stack[-1] = self.stack[-1](*given)

    def load_newobj_ex(self) -> None:
        """Make an object of a class, with keywords, which are passed over."""
        self.stack.pop()
        self.load_newobj()

    def load_setitem(self) -> None:
        """Put one item."""
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][_key(key)] = value

    def load_setitems(self) -> None:
        """Put several items."""
        items = self.pop_mark()
        for place in range(0, len(items), 2):
            self.stack[-1][_key(items[place])] = items[place + 1]

    def load_dict(self) -> None:
        """A dictionary of what lies above the mark."""
        items = self.pop_mark()
        self.append({_key(key): value for key, value in zip(items[::2], items[1::2], strict=True)})

    def load_frozenset(self) -> None:
        """A set is kept as a list: what could be its members need not be hashable here."""
        self.append(list(self.pop_mark()))

    def load_empty_set(self) -> None:
        """An empty set."""
        self.append(Husk())

    def load_additems(self) -> None:
        """Members of a set."""
        items = self.pop_mark()
        if isinstance(self.stack[-1], Husk):
            self.stack[-1].extend(items)

    def load_bytearray8(self) -> None:
        """Bytes, of which as many are taken as there are."""
        self.append(self.read(int.from_bytes(self.read(8), "little")))


for _code, _name in {
    b"b": "load_build",
    b"\x81": "load_newobj",
    b"\x92": "load_newobj_ex",
    b"s": "load_setitem",
    b"u": "load_setitems",
    b"d": "load_dict",
    b"\x91": "load_frozenset",
    b"\x8f": "load_empty_set",
    b"\x90": "load_additems",
    b"\x96": "load_bytearray8",
}.items():
    _Reader.dispatch[_code[0]] = getattr(_Reader, _name)


def _key(key: Any) -> Any:
    """A key of a dictionary; of anything but words, numbers and husks its kind and place, for its hash could run deep."""
    return key if isinstance(key, str | int | float | bytes | Husk | None) else f"{type(key).__name__} {id(key)}"


def _rebuilt(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Stub:
    if not isinstance(storage, StoredObject):
        raise ValueError("a tensor without a storage")
    shape = checked_shape(size)
    if not isinstance(stride, tuple | list) or len(stride) != len(shape) or type(offset) is not int or offset < 0:
        raise ValueError("a tensor whose strides do not fit its shape")
    steps = checked_shape([abs(step) if type(step) is int else step for step in stride])
    if any(step < 0 for step in stride) or offset + span(shape, steps) > storage.count:
        raise ValueError(f"a tensor of shape {list(shape)} beyond its storage of {storage.count:,}")
    entries = math.prod(shape)
    if entries > max(storage.count, VIEWED_ENTRIES):
        return Stub(storage, storage.kind, fault=f"a view of {entries:,} entries over {storage.count:,}")
    return Stub(storage, storage.kind, offset, shape, steps)


def _rebuilt_v3(storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *_: Any) -> Stub:
    """Types without a storage class of their own: the storage is counted in bytes."""
    if not isinstance(storage, StoredObject) or not isinstance(dtype, Kind):
        raise ValueError("a tensor without a type")
    count = storage.count * storage.kind.itemsize // dtype.itemsize
    return _rebuilt(StoredObject(storage.key, dtype, count), offset, size, stride)


def _unsupported(*_: Any) -> Stub:
    return Stub(None, KINDS["float32"], fault="a quantized, sparse, nested or meta tensor")


def _of_type(function: Any, kind: Any, given: Any, state: Any) -> Any:
    return function(*given) if callable(function) and isinstance(given, tuple) else Husk()


def _first(found: Any = None, *_: Any) -> Any:
    return found


def _mapping(*given: Any) -> dict[Any, Any]:
    pairs = given[-1] if given and isinstance(given[-1], list | tuple) else ()
    return {_key(pair[0]): pair[1] for pair in pairs if isinstance(pair, list | tuple) and len(pair) == 2}


def _numpy_dtype(code: Any = "f8", *_: Any) -> DtypeStub | Husk:
    simple = isinstance(code, str) and len(code) <= 4 and code.lstrip("<>|=")[:1] in ("f", "i", "u", "b")
    return DtypeStub(code) if simple else Husk()


def _array(*_: Any) -> ArrayStub:
    return ArrayStub()


def _encoded(text: Any = "", *_: Any) -> bytes:
    """Bytes, which the second protocol writes as letters."""
    return text.encode("latin-1") if isinstance(text, str) else b""


def _size(given: Any = (), *_: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else ()


_UNSUPPORTED = (
    "_rebuild_qtensor",
    "_rebuild_sparse_tensor",
    "_rebuild_nested_tensor",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_wrapper_subclass",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_device_tensor_from_cpu_tensor",
)
_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor"): _rebuilt,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuilt,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuilt_v3,
    ("torch._utils", "_rebuild_parameter"): _first,
    ("torch._utils", "_rebuild_parameter_with_state"): _first,
    ("torch._tensor", "_rebuild_from_type_v2"): _of_type,
    ("torch", "Size"): _size,
    ("collections", "OrderedDict"): _mapping,
    ("collections", "defaultdict"): _mapping,
    ("numpy", "dtype"): _numpy_dtype,
    ("_codecs", "encode"): _encoded,
    **{("torch._utils", name): _unsupported for name in _UNSUPPORTED},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _array for core in ("core", "_core")},
}


def _storage_type(module: str, name: str) -> Kind | None:
    return BY_STORAGE.get(name) if module in ("torch", "torch.storage", "torch.cuda") else None


def _dtype(module: str, name: str) -> Kind | None:
    if module != "torch" or name in KINDS:
        return KINDS.get(name) if module == "torch" else None
    found = getattr(torch, name, None)
    return Kind(kind_of(found), found.itemsize) if isinstance(found, torch.dtype) else None


def limited(raw: bytes) -> io.BytesIO:
    """A pickle in memory, if it is not larger than any that has a meaning."""
    if len(raw) > LARGEST:
        raise ValueError(f"a pickle of {len(raw):,} bytes besides its storages, of {LARGEST:,} at most")
    return io.BytesIO(raw)
