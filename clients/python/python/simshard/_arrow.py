"""Columns of Arrow data, of each library that has the Arrow PyCapsule interface. No library of Arrow is needed.

The structures are those of Arrow's C data interface and C stream interface. What they point to belongs to the other
library: it is read, never written, and an array of it keeps it alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_FILL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _RELEASE),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _RELEASE),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", _FILL),
    ("get_next", _FILL),
    ("get_last_error", _ERROR),
    ("release", _RELEASE),
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_NUMBERS = {
    "c": np.int8,
    "C": np.uint8,
    "s": np.int16,
    "S": np.uint16,
    "i": np.int32,
    "I": np.uint32,
    "l": np.int64,
    "L": np.uint64,
    "f": np.float32,
    "g": np.float64,
}
_NOTHING = np.empty(0, np.uint8)
_INLINE = 12
"""A view itself holds a text of this many bytes or fewer."""


class _Field(NamedTuple):
    """A copy of a schema."""

    format: str
    name: str
    children: list[_Field]
    dictionary: _Field | None


class Texts:
    """Texts of UTF-8, each from a start to an end in a buffer. The engine reads them by these names."""

    __slots__ = ("buffers", "ends", "is_null", "starts", "which")

    def __init__(
        self,
        buffers: list[npt.NDArray[np.uint8]],
        which: npt.NDArray[np.int64],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        is_null: npt.NDArray[np.bool_],
    ) -> None:
        self.buffers, self.which, self.starts, self.ends, self.is_null = buffers, which, starts, ends, is_null

    def __len__(self) -> int:
        return len(self.starts)


def is_arrow(values: Any) -> bool:
    """Return whether values have the Arrow PyCapsule interface."""
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def check_missing(is_missing: npt.NDArray[np.bool_], how: str, first: int = 0) -> None:
    """Raise an error with the position of the first fingerprint that is missing, counted from ``first``."""
    places = np.flatnonzero(is_missing)
    if len(places):
        more = f", and {len(places) - 1} others" if len(places) > 1 else ""
        raise ValueError(f"element {first + int(places[0])} is {how}{more}: drop such fingerprints first")


def numbers(values: Any, first: int = 0) -> npt.NDArray[Any]:
    """Return a copy of a column of numbers, or of the only column of a table. Errors count them from ``first``."""
    field, chunks = _column(values, None)
    if field.format == "n" and not sum(chunk.length for chunk in chunks):
        return np.empty(0, np.uint64)
    if field.dictionary is not None:
        raise ValueError("fingerprints are uint64, not numbers of a dictionary: decode them first")
    if field.format not in _NUMBERS:
        raise ValueError(f"fingerprints are uint64, not {_described(field)}")
    check_missing(np.concatenate([np.empty(0, np.bool_), *(chunk.is_null() for chunk in chunks)]), "null", first)
    dtype = np.dtype(_NUMBERS[field.format])
    return np.concatenate([np.empty(0, dtype), *(chunk.buffer(1, dtype) for chunk in chunks)])


def texts(values: Any, name: str | None = None, what: str = "text") -> Texts:
    """Return a column of texts: that with the name, or the only one."""
    field, chunks = _column(values, name)
    if (field.dictionary or field).format not in ("u", "U", "vu", "n"):
        raise ValueError(f"{what}s are strings, not {_described(field.dictionary or field)}")
    return _joined([_texts_of(field, chunk) for chunk in chunks])


class _Chunk:
    """Some rows of a column."""

    def __init__(self, array: _Array, first: int, length: int, owner: Any, parent: _Chunk | None = None) -> None:
        self.array, self.first, self.length, self.owner, self.parent = array, first, length, owner, parent

    def child(self, number: int) -> _Chunk:
        array = self.array.children[number].contents
        return _Chunk(array, self.first + array.offset, self.length, self.owner, self)

    def dictionary(self) -> _Chunk:
        array = self.array.dictionary.contents
        return _Chunk(array, array.offset, array.length, self.owner)

    def buffer(self, number: int, dtype: npt.DTypeLike, more: int = 0) -> npt.NDArray[Any]:
        """Return the values of the rows, and some more, without a copy."""
        whole = self.whole(number, dtype, self.first + self.length + more)
        return whole[self.first :]

    def whole(self, number: int, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Return the first values of a buffer."""
        address = self.array.buffers[number]
        if not count or not address:
            return np.zeros(count, dtype)
        return np.asarray(_Memory(address, count, np.dtype(dtype), self.owner))

    def is_null(self) -> npt.NDArray[np.bool_]:
        """Return which rows are null. Those of a row that is null are."""
        return self._is_null() if self.parent is None else self._is_null() | self.parent.is_null()

    def _is_null(self) -> npt.NDArray[np.bool_]:
        if not self.array.null_count or not self.array.n_buffers or not self.array.buffers[0]:
            return np.zeros(self.length, np.bool_)
        octets = self.whole(0, np.uint8, -(-(self.first + self.length) // 8))
        bits = np.unpackbits(octets, bitorder="little")[self.first :][: self.length]
        is_null: npt.NDArray[np.bool_] = bits == 0
        return is_null


class _Memory:
    """Memory of another library, as NumPy takes it."""

    def __init__(self, address: int, count: int, dtype: np.dtype[Any], owner: Any) -> None:
        # True: it is only read.
        self.__array_interface__ = {"data": (address, True), "shape": (count,), "typestr": dtype.str, "version": 3}
        self._owner = owner


class _Owned:
    """A structure that another library has filled, and releases."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure

    def __del__(self) -> None:
        if self.structure.release:
            self.structure.release(ctypes.addressof(self.structure))


def _column(values: Any, name: str | None) -> tuple[_Field, list[_Chunk]]:
    """Return the column of that name, or the only one."""
    if hasattr(values, "__arrow_c_stream__"):
        capsule = values.__arrow_c_stream__()
        stream = _Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
        schema = _Owned(_Schema())
        _filled(stream, stream.get_schema, schema.structure)
        field = _field(schema.structure)
        chunks = list(_chunks(stream, capsule))
    else:
        schema_capsule, capsule = values.__arrow_c_array__()
        field = _field(_Schema.from_address(_pointer(schema_capsule, b"arrow_schema")))
        array = _Array.from_address(_pointer(capsule, b"arrow_array"))
        # A capsule that is given up releases what it holds.
        chunks = [_Chunk(array, array.offset, array.length, capsule)]
    if field.format != "+s":
        return field, chunks
    names = [child.name for child in field.children]
    if name is None and len(names) != 1:
        raise ValueError(
            f"give one column, or its name where a table is taken: the table has {', '.join(names) or 'none'}"
        )
    if name is not None and name not in names:
        raise ValueError(f"the table has no column {name!r}, but {', '.join(names)}")
    place = 0 if name is None else names.index(name)
    return field.children[place], [chunk.child(place) for chunk in chunks]


def _chunks(stream: _Stream, capsule: Any) -> Iterator[_Chunk]:
    while True:
        owned = _Owned(_Array())
        _filled(stream, stream.get_next, owned.structure)
        if not owned.structure.release:
            return
        # The stream is kept as long as what came from it.
        owned.stream = capsule  # type: ignore[attr-defined]
        yield _Chunk(owned.structure, owned.structure.offset, owned.structure.length, owned)


def _filled(stream: _Stream, fill: Any, structure: Any) -> None:
    if fill(ctypes.addressof(stream), ctypes.addressof(structure)):
        reason = stream.get_last_error(ctypes.addressof(stream))
        raise ValueError(f"the Arrow data cannot be read: {(reason or b'no reason given').decode(errors='replace')}")


def _field(schema: _Schema) -> _Field:
    children = [_field(schema.children[place].contents) for place in range(schema.n_children)]
    dictionary = _field(schema.dictionary.contents) if schema.dictionary else None
    return _Field(schema.format.decode(), (schema.name or b"").decode(errors="replace"), children, dictionary)


def _described(field: _Field) -> str:
    if field.format in _NUMBERS:
        return np.dtype(_NUMBERS[field.format]).name
    return f"Arrow data of the format {field.format!r}"


def _texts_of(field: _Field, chunk: _Chunk) -> Texts:
    if field.dictionary is not None:
        return _looked_up(field, field.dictionary, chunk)
    if field.format == "n":
        none = np.zeros(chunk.length, np.int64)
        return Texts([_NOTHING], none, none, none, np.ones(chunk.length, np.bool_))
    is_null = chunk.is_null()
    if field.format == "vu":
        return _in_views(chunk, is_null)
    bounds = chunk.buffer(1, np.int32 if field.format == "u" else np.int64, 1).astype(np.int64)
    octets = chunk.whole(2, np.uint8, int(bounds[-1]))
    starts, ends = bounds[:-1], bounds[1:]
    return Texts([octets], np.zeros(chunk.length, np.int64), starts, np.where(is_null, starts, ends), is_null)


def _in_views(chunk: _Chunk, is_null: npt.NDArray[np.bool_]) -> Texts:
    """Return texts by views of 16 bytes: a length, and a short text itself, or where a longer one is."""
    others = chunk.array.n_buffers - 3
    sizes = chunk.whole(chunk.array.n_buffers - 1, np.int64, others).tolist()
    octets = chunk.whole(1, np.uint8, 16 * (chunk.first + chunk.length))[16 * chunk.first :]
    views = octets.view(np.int32).reshape(-1, 4).astype(np.int64)
    views[is_null] = 0
    lengths = views[:, 0]
    is_inline = lengths <= _INLINE
    starts = np.where(is_inline, 16 * np.arange(len(views)) + 4, views[:, 3])
    which = np.where(is_inline, 0, views[:, 2] + 1)
    buffers = [octets, *(chunk.whole(2 + number, np.uint8, size) for number, size in enumerate(sizes))]
    return Texts(buffers, which, starts, starts + lengths, is_null)


def _joined(chunks: list[Texts]) -> Texts:
    """Return the texts of chunks, each with buffers of its own, as those of one."""
    nowhere = np.empty(0, np.int64)
    chunks = chunks or [Texts([], nowhere, nowhere, nowhere, np.empty(0, np.bool_))]
    firsts = np.cumsum([0, *(len(chunk.buffers) for chunk in chunks[:-1])])
    return Texts(
        [buffer for chunk in chunks for buffer in chunk.buffers],
        np.concatenate([chunk.which + first for chunk, first in zip(chunks, firsts, strict=True)]),
        np.concatenate([chunk.starts for chunk in chunks]),
        np.concatenate([chunk.ends for chunk in chunks]),
        np.concatenate([chunk.is_null for chunk in chunks]),
    )


def _looked_up(field: _Field, words: _Field, chunk: _Chunk) -> Texts:
    """Return texts by their numbers in a dictionary."""
    known, is_null = _texts_of(words, chunk.dictionary()), chunk.is_null()
    if is_null.all():
        return _texts_of(words._replace(format="n"), chunk)
    places = np.where(is_null, 0, chunk.buffer(1, _NUMBERS[field.format]).astype(np.int64))
    starts = known.starts[places]
    ends = np.where(is_null, starts, known.ends[places])
    return Texts(known.buffers, known.which[places], starts, ends, is_null | known.is_null[places])


def to_list(texts: Texts) -> list[str | None]:
    """Return texts as strings of Python, and null as ``None``."""
    columns = (texts.which, texts.starts, texts.ends, texts.is_null)
    places = zip(*(column.tolist() for column in columns), strict=True)
    return [
        None if is_null else str(texts.buffers[which][start:end].data, "utf-8") for which, start, end, is_null in places
    ]
