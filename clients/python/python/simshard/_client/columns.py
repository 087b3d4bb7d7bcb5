"""Batches of documents or queries, out of the columns that callers give.

A column is known as a whole (a list, an array, Arrow data), or it is read from an iterable as batches need it. The
number of known elements, and known fingerprints, are checked before anything is sent; the rest with each batch.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeAlias

import numpy as np

from simshard._client.settings import Settings
from simshard._inputs import Fingerprints, check_iterable, check_order, to_fingerprints, to_strings

Keys: TypeAlias = "list[str] | Fingerprints"
"""Texts, or fingerprints: the one of the two columns that a request has."""

STRING_BYTES = 6
"""The tag and the length of a string in a message."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents or queries that travel in one message."""

    first: int
    """The position of its first element in the input."""
    keys: Keys
    ids: list[str]
    """One id for each key, or none at all."""

    def __len__(self) -> int:
        return len(self.keys)

    def halves(self) -> tuple[Batch, Batch]:
        """Return two batches with the elements of this one."""
        middle = len(self) // 2
        return (
            Batch(self.first, self.keys[:middle], self.ids[:middle]),
            Batch(self.first + middle, self.keys[middle:], self.ids[middle:]),
        )

    def nbytes(self) -> int:
        """Return about how many bytes it takes; check that its strings can be sent."""
        keys = string_bytes(self.keys, "text", self.first) if isinstance(self.keys, list) else self.keys.nbytes
        return keys + string_bytes(self.ids, "id", self.first)


def string_bytes(strings: list[str], what: str, first: int) -> int:
    """Return how many bytes strings take in a message; name the position of one that cannot be sent."""
    try:
        joined = "".join(strings)
        count = len(joined) if joined.isascii() else len(joined.encode())
    except (TypeError, UnicodeEncodeError):
        raise _unfit(strings, what, first) from None
    return count + STRING_BYTES * len(strings)


def _unfit(strings: list[Any], what: str, first: int) -> Exception:
    for place, value in enumerate(strings, first):
        if not isinstance(value, str):
            return TypeError(f"{what} {place} is no string, but of {type(value).__name__}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return ValueError(f"{what} {place} is no string that UTF-8 can hold: {error.reason}")
    return ValueError(f"a {what} cannot be sent")


def cut(keys: Keys, ids: list[str], first: int, settings: Settings) -> Iterator[Batch]:
    """Cut columns into batches that keep the limits."""
    for start in range(0, len(keys), settings.batch_size):
        stop = start + settings.batch_size
        yield from _fitting(Batch(first + start, keys[start:stop], ids[start:stop]), settings.batch_bytes)


def _fitting(batch: Batch, most_bytes: int) -> Iterator[Batch]:
    if batch.nbytes() <= most_bytes or len(batch) == 1:
        yield batch
        return
    for half in batch.halves():
        yield from _fitting(half, most_bytes)


class Source(Protocol):
    """Where batches come from."""

    def batches(self, settings: Settings) -> Iterator[Batch]:
        """Yield the batches."""

    def batches_async(self, settings: Settings) -> AsyncIterator[Batch]:
        """Yield the batches, and let other tasks run while the input is awaited."""


class Columns:
    """The columns of a request: texts or fingerprints, and ids."""

    def __init__(self, texts: Any, fingerprints: Any, ids: Any = None) -> None:
        if (texts is None) == (fingerprints is None):
            raise TypeError("give texts or fingerprints, one of the two")
        self._what = "fingerprint" if texts is None else "text"
        self._keys = _fingerprints(fingerprints) if texts is None else _strings(texts, "text", counts_bytes=True)
        # There are as many ids as keys, whatever their bytes.
        self._ids = None if ids is None else _strings(ids, "id", counts_bytes=False)
        keys, of_ids = self._keys, self._ids
        if isinstance(keys, _Known) and isinstance(of_ids, _Known) and len(keys.values) != len(of_ids.values):
            raise ValueError(f"there are {len(keys.values)} {self._what}s and {len(of_ids.values)} ids")

    def batches(self, settings: Settings) -> Iterator[Batch]:
        """Yield the batches. The columns must not be asynchronous."""
        if isinstance(self._keys, _Awaited) or isinstance(self._ids, _Awaited):
            raise TypeError("this client does not await its input: use simshard.aio for asynchronous iterables")
        first = 0
        while True:
            keys: Any = self._keys.take(settings.batch_size, settings.batch_bytes)
            ids: Any = [] if self._ids is None else self._ids.take(max(len(keys), 1), settings.batch_bytes)
            yield from self._joined(keys, ids, first, settings)
            if not len(keys):
                return
            first += len(keys)

    async def batches_async(self, settings: Settings) -> AsyncIterator[Batch]:
        """Yield the batches of columns of which any may be asynchronous."""
        first = 0
        while True:
            keys = await _awaited(self._keys.take(settings.batch_size, settings.batch_bytes))
            wanted = max(len(keys), 1)
            ids = [] if self._ids is None else await _awaited(self._ids.take(wanted, settings.batch_bytes))
            for batch in self._joined(keys, ids, first, settings):
                yield batch
            if not len(keys):
                return
            first += len(keys)

    def _joined(self, keys: Any, ids: list[str], first: int, settings: Settings) -> Iterator[Batch]:
        if self._ids is not None and len(ids) != len(keys):
            fewer, more = ("ids", f"{self._what}s") if len(ids) < len(keys) else (f"{self._what}s", "ids")
            end = first + min(len(ids), len(keys))
            raise ValueError(f"there are {end} {fewer}, and more {more}")
        if self._what == "fingerprint":
            keys = to_fingerprints(keys, first)
        return cut(keys, ids, first, settings)


class _Known:
    """A column that is in memory."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self._taken = 0

    def take(self, most: int, _most_bytes: int) -> Any:
        part = self.values[self._taken : self._taken + most]
        self._taken += len(part)
        return part


class _Iterated:
    """A column that is read as it is needed."""

    def __init__(self, values: Iterable[Any], counts_bytes: bool) -> None:
        self._iterator = iter(values)
        self._counts_bytes = counts_bytes

    def take(self, most: int, most_bytes: int) -> list[Any]:
        if not self._counts_bytes:
            return list(islice(self._iterator, most))
        part = _Part(most, most_bytes)
        for value in self._iterator:
            if part.is_full_with(value):
                break
        return part.values


class _Awaited:
    """A column that is awaited as it is needed."""

    def __init__(self, values: AsyncIterable[Any], counts_bytes: bool) -> None:
        self._iterator = aiter(values)
        self._counts_bytes = counts_bytes

    async def take(self, most: int, most_bytes: int) -> list[Any]:
        part = _Part(most, most_bytes)
        while True:
            try:
                value = await anext(self._iterator)
            except StopAsyncIteration:
                return part.values
            if part.is_full_with(value):
                return part.values


class _Part:
    """What is taken of a column for the next batches."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self.values: list[Any] = []
        self._most = most
        self._bytes_left = most_bytes

    def is_full_with(self, value: Any) -> bool:
        self.values.append(value)
        if isinstance(value, str):
            self._bytes_left -= len(value)
        return len(self.values) >= self._most or self._bytes_left <= 0


async def _awaited(part: Any) -> Any:
    return await part if isinstance(part, Awaitable) else part


_Column: TypeAlias = "_Known | _Iterated | _Awaited"


def _strings(values: Any, what: str, counts_bytes: bool) -> _Column:
    check_order(values, f"{what}s")
    if isinstance(values, AsyncIterable):
        return _Awaited(values, counts_bytes)
    is_known = isinstance(values, str | bytes | list | tuple)
    if is_known or any(hasattr(values, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")):
        return _Known(to_strings(values, what))
    check_iterable(values, f"{what}s", "strings")
    return _Iterated(values, counts_bytes)


def _fingerprints(values: Any) -> _Column:
    if isinstance(values, AsyncIterable):
        return _Awaited(values, counts_bytes=False)
    check_order(values, "fingerprints")
    is_known = isinstance(values, list | tuple | np.ndarray)
    if is_known or any(hasattr(values, name) for name in ("__array__", "__arrow_c_stream__", "__arrow_c_array__")):
        return _Known(to_fingerprints(values))
    check_iterable(values, "fingerprints", "numbers")
    return _Iterated(values, counts_bytes=False)
