"""What callers give, as the engine takes it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
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
    number = operator.index(value)
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
            values = _arrow.numbers(values)
    if isinstance(values, str | bytes | bytearray):
        raise TypeError(f"fingerprints are numbers, not {type(values).__name__}")
    masked = int(np.ma.getmaskarray(values).sum()) if isinstance(values, np.ma.MaskedArray) else 0
    if masked:
        raise ValueError(f"{masked} fingerprints are masked: drop them first")
    if not hasattr(values, "__array__"):
        return _from_numbers(values, first)
    array = np.asarray(values)
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


def to_texts(values: Any, name: str | None = None) -> list[Any] | Texts:
    """Return texts, or those of a column; what is in a list is checked where it is used."""
    if isinstance(values, str | bytes):
        raise TypeError("texts are a list of strings, not one string: put it into a list")
    if name is not None and hasattr(values, "__getitem__"):
        values, name = values[name], None
    if is_arrow(values):
        with suppress(ImportError):
            return _arrow.texts(values, name)
    if hasattr(values, "columns"):
        # As a list, it would be that of its names.
        raise ValueError("a table of pandas needs pyarrow, unless one column of it is given: pip install pyarrow")
    if name is not None:
        raise TypeError(f"a table has columns, and {type(values).__name__} does not")
    return values if isinstance(values, list) else list(values)


def to_strings(values: Any, what: str) -> list[Any]:
    """Return the list of strings that a column is of; null is ``None``."""
    if isinstance(values, str | bytes):
        raise TypeError(f"{what}s are a list of strings, not one string: put it into a list")
    texts = to_texts(values)
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
