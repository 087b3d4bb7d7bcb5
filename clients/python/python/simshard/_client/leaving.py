"""Streams that say so, rather than end as if they were complete, once the block of their corpus was left."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from typing import Any, TypeVar

from simshard.errors import SimshardError

T = TypeVar("T")


def _left() -> SimshardError:
    return SimshardError("the stream ended with the `with` block of its corpus: read it inside of the block")


class Stream(Generator[T, None, None]):
    """A stream that callers read, and that the corpus ends."""

    def __init__(self, stream: Generator[T, None, None]) -> None:
        self._stream = stream
        self._is_over = self._is_left = False

    def send(self, value: None) -> T:
        """Return the next result."""
        if self._is_left and not self._is_over:
            raise _left()
        try:
            return self._stream.send(value)
        except StopIteration:
            self._is_over = True
            raise

    def throw(self, *error: Any) -> T:
        """Raise an error where the stream stands."""
        return self._stream.throw(*error)

    def close(self) -> None:
        """End the stream, which then has no more results."""
        self._is_over = True
        self._stream.close()

    def leave(self) -> None:
        """End the stream. Reading on is an error."""
        self._is_left = True
        # A thread that reads it right now is told with its next result.
        with suppress(ValueError):
            self._stream.close()


class AsyncStream(AsyncGenerator[T, None]):
    """The same for asyncio."""

    def __init__(self, stream: AsyncGenerator[T, None]) -> None:
        self._stream = stream
        self._is_over = self._is_left = False

    async def asend(self, value: None) -> T:
        """Return the next result."""
        if self._is_left and not self._is_over:
            raise _left()
        try:
            return await self._stream.asend(value)
        except StopAsyncIteration:
            self._is_over = True
            raise

    async def athrow(self, *error: Any) -> T:
        """Raise an error where the stream stands."""
        return await self._stream.athrow(*error)

    async def aclose(self) -> None:
        """End the stream, which then has no more results."""
        self._is_over = True
        await self._stream.aclose()

    async def leave(self) -> None:
        """End the stream. Reading on is an error."""
        self._is_left = True
        # A task that reads it right now is told with its next result.
        with suppress(RuntimeError):
            await self._stream.aclose()
