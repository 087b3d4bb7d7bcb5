"""What callers give, as the engine takes it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Fingerprints = npt.NDArray[np.uint64]
"""Fingerprints, each a number of 64 bits without a sign."""

MOST = 2**64 - 1
"""The largest fingerprint."""


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
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        values = _from_arrow(values)
    elif not hasattr(values, "__array__"):
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
    return np.ascontiguousarray(array, dtype=np.uint64)


def to_texts(texts: Iterable[str]) -> list[str]:
    """Return a list of texts; what is in it is checked by the engine."""
    if isinstance(texts, str | bytes):
        raise TypeError("texts are a list of strings, not one string: put it into a list")
    if hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__"):
        return _arrow_array(texts).to_pylist()  # type: ignore[no-any-return]
    if isinstance(texts, list):
        return texts
    return list(texts)


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


def _from_arrow(values: Any) -> Fingerprints:
    array = _arrow_array(values)
    if array.null_count:
        raise ValueError(f"{array.null_count} fingerprints are null: drop them first")
    numbers: Fingerprints = array.to_numpy(zero_copy_only=False)
    return numbers


def _arrow_array(values: Any) -> Any:
    """Return the column as an array of pyarrow, which takes part in the PyCapsule interface."""
    pa = import_pyarrow()
    if hasattr(values, "__arrow_c_stream__"):
        column = pa.chunked_array(values)
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return pa.array(values)
