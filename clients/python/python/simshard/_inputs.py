"""What callers give, as the engine takes it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AnySet
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from simshard import _arrow
from simshard._arrow import Texts, is_arrow

Fingerprints = npt.NDArray[np.uint64]
"""Fingerprints, each a number of 64 bits without a sign."""

MOST = 2**64 - 1
"""The largest fingerprint."""

MOST_COUNT = 2**32 - 1
"""The largest number of 32 bits, as the engine and requests have them."""


def to_fingerprint(value: Any) -> int:
    """Check that a value is a fingerprint."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"a fingerprint is a whole number, not {_kind(value)}") from None
    if not 0 <= number <= MOST:
        raise ValueError(f"a fingerprint is a number from 0 to 2**64-1, not {number}")
    return number


def to_fingerprints(values: Any, first: int = 0) -> Fingerprints:
    """Return an array that is contiguous and in this machine's byte order, without a copy where it is already.

    Errors count the elements from ``first``.
    """
    if is_arrow(values):
        # pandas has the interface, and needs pyarrow for it. It has arrays too.
        with suppress(ImportError):
            values = _arrow.numbers(values, first)
    if isinstance(values, Mapping):
        check_order(values, "fingerprints")
    if isinstance(values, np.ma.MaskedArray):
        _arrow.check_missing(np.ma.getmaskarray(values).reshape(-1), "masked", first)
    if not hasattr(values, "__array__"):
        check_iterable(values, "fingerprints", "numbers")
        return _from_numbers(values, first)
    array = np.asarray(values)
    if array.dtype.kind == "O" and array.ndim == 1:
        return _from_numbers(array.tolist(), first)
    if array.dtype.kind != "u" or array.dtype.itemsize != 8:
        if array.size == 0:
            return np.empty(0, np.uint64)
        raise ValueError(
            f"fingerprints are uint64, not {array.dtype}: "
            "take .view('uint64') of int64 in two's complement, .astype('uint64') of numbers"
        )
    if array.ndim != 1:
        raise ValueError(f"fingerprints are an array of one dimension, not of {array.ndim}")
    # A view of a file with a header may be contiguous, and yet not aligned.
    return np.require(array, np.uint64, ["C_CONTIGUOUS", "ALIGNED"])


def to_texts(values: Any, name: str | None = None, what: str = "text") -> list[Any] | Texts:
    """Return texts, or those of a column; what is in a list is checked where it is used."""
    if isinstance(values, str | bytes):
        raise TypeError(f"{what}s are a list of strings, not one string: put it into a list")
    if name is not None:
        values, name = _column_of(values, name)
    if is_arrow(values):
        with suppress(ImportError):
            return _arrow.texts(values, name, what)
    if hasattr(values, "collect"):
        raise TypeError(f"{_kind(values)} is not computed yet: give what its collect() returns")
    if hasattr(values, "columns"):
        # As a list, it would be that of its names.
        raise ValueError("a table of pandas needs pyarrow, unless one column of it is given: pip install pyarrow")
    check_order(values, f"{what}s")
    check_iterable(values, f"{what}s", "strings")
    return values if isinstance(values, list) else list(values)


def check_order(values: Any, what: str) -> None:
    """Check that values have an order, and are not the names of something else."""
    if isinstance(values, Mapping | AnySet):
        raise TypeError(f"{what} are a list or a column, not {_kind(values)}, whose elements have no positions")


def check_iterable(values: Any, what: str, of: str) -> None:
    """Check that values are more than one, and no characters."""
    if isinstance(values, str | bytes | bytearray) or (not isinstance(values, Iterable) and not is_arrow(values)):
        raise TypeError(f"{what} are a list or a column of {of}, not {_kind(values)}")


def _column_of(values: Any, name: Any) -> tuple[Any, str | None]:
    """Return a column of a table, or what has it and its name."""
    to_name(name, "the name of a column")
    if isinstance(values, Mapping):
        names: Any = values
    else:
        names = getattr(values, "column_names", None) or getattr(values, "columns", None)
    if names is None and is_arrow(values):
        return values, name
    if names is None or not hasattr(values, "__getitem__"):
        raise TypeError(f"a table has columns, and {_kind(values)} does not")
    if name not in names:
        raise ValueError(f"the table has no column {name!r}, but {', '.join(map(str, names))}")
    return values[name], None


def to_strings(values: Any, what: str) -> list[Any]:
    """Return the list of strings that a column is of; null is ``None``."""
    texts = to_texts(values, what=what)
    return _arrow.to_list(texts) if isinstance(texts, Texts) else texts


def to_count(value: Any, name: str, least: int = 0, most: int = MOST_COUNT) -> int:
    """Check that an argument is a whole number in its range."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}") from None
    if not least <= count <= most:
        raise ValueError(f"{name} is {count}: it must be from {least} to {most}")
    return count


def to_name(value: Any, what: str) -> str:
    """Check that an argument is a string, and one that a message can hold."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is {value!r}, which UTF-8 cannot hold") from None
    return value


def to_distance(value: Any) -> int:
    """Check that an argument is a distance that corpora can have."""
    return to_count(value, "distance", most=63)


def to_blocks(value: Any) -> int:
    """Check that an argument is a number of blocks that corpora can have."""
    return to_count(value, "blocks", least=1, most=64)


def import_pyarrow() -> Any:
    """Return the module pyarrow, which only some inputs need."""
    try:
        import pyarrow
    except ImportError:
        raise ValueError("Arrow data needs pyarrow: pip install pyarrow") from None
    return pyarrow


def _from_numbers(values: Iterable[Any], first: int) -> Fingerprints:
    numbers: Sequence[Any] = values if isinstance(values, list | tuple) else list(values)
    array = np.empty(len(numbers), np.uint64)
    for place, value in enumerate(numbers):
        try:
            array[place] = to_fingerprint(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"element {first + place}: {error}") from None
    return array


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
