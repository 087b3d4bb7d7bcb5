"""Does the steps of a client for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from simshard._client.columns import Source
from simshard._client.messages import Method, Result
from simshard._client.resend import Answered, Ended, Event, Give, Open, Pause, Resending, Send, Wait
from simshard._client.retry import Call, T, UnarySteps
from simshard._client.settings import Access, Settings, target_of
from simshard._client.wire import OPTIONS, Origin, closed, credentials_of, early_end, error_of, method_of
from simshard.errors import SimshardError

END = grpc.aio.EOF  # type: ignore[attr-defined]
"""What a stream brings after its last answer."""


class Connection:
    """A channel, which is made in the event loop that uses it first."""

    def __init__(self, address: str, access: Access) -> None:
        self._target = target_of(address)
        self._credentials = credentials_of(access)
        self._channel: Any = None
        self._origin = Origin()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._is_closed

    @property
    def channel(self) -> Any:
        """The channel."""
        if self._is_closed:
            raise closed()
        loop = asyncio.get_running_loop()
        if self._channel is not None:
            self._origin.check()
            if loop is not self._loop:
                raise SimshardError("the client is of the event loop that used it first: make one in each")
        else:
            self._origin, self._loop = Origin(), loop
            if self._credentials is None:
                self._channel = grpc.aio.insecure_channel(self._target, options=OPTIONS)
            else:
                self._channel = grpc.aio.secure_channel(self._target, self._credentials, options=OPTIONS)
        return self._channel

    async def close(self) -> None:
        """Close the channel, if this event loop has used it."""
        self._is_closed = True
        if self._channel is not None and self._loop is asyncio.get_running_loop():
            await self._channel.close()

    async def ask(self, call: Call, address: str) -> Any:
        """Make a request; return its answer."""
        try:
            return await method_of(self.channel, call.method)(call.request, timeout=call.timeout)
        except grpc.RpcError as failure:
            raise closed() if self._is_closed else error_of(failure, address) from None
        except (grpc.aio.UsageError, asyncio.CancelledError):
            # To close a channel cancels what waits for it, as if its task was cancelled.
            if self._is_closed and not _is_cancelled():
                raise closed() from None
            raise


def _is_cancelled() -> bool:
    """Return whether the task is to end. Python knows since 3.11."""
    task: Any = asyncio.current_task()
    return hasattr(task, "cancelling") and task.cancelling() > 0


async def run(connection: Connection, address: str, steps: UnarySteps[T]) -> T:
    """Do the steps of a request; return what it brings."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Call):
                try:
                    answer = await connection.ask(step, address)
                except SimshardError as failure:
                    step = steps.throw(failure)
                else:
                    step = steps.send(answer)
            else:
                await asyncio.sleep(step.seconds)
                step = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


async def stream(
    connection: Connection, settings: Settings, method: Method[Result], source: Source
) -> AsyncGenerator[Result, None]:
    """Send batches, and yield the result of each."""
    steps = Resending(method, settings, time.monotonic).steps()
    event: Event = None
    async with aclosing(_Sending(connection, settings, method, source)) as sending:
        while True:
            try:
                step = steps.send(event)
            except StopIteration:
                return
            event = None
            if isinstance(step, Open):
                await sending.open()
            elif isinstance(step, Send):
                sending.send(step)
            elif isinstance(step, Wait):
                event = await sending.wait(step)
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Give):
                yield step.result


class _Sending:
    """The source of batches, and the stream that is open, if one is."""

    def __init__(self, connection: Connection, settings: Settings, method: Method[Any], source: Source) -> None:
        self._connection = connection
        self._settings = settings
        self._method = method
        self._source = source.batches_async(settings)
        self._reading: asyncio.Task[Event] | None = None
        self._answering: asyncio.Task[Event] | None = None
        self._call: Any = None
        self._batches: asyncio.Queue[Send | None] = asyncio.Queue()

    async def open(self) -> None:
        await self._leave()
        self._batches = asyncio.Queue()
        self._call = method_of(self._connection.channel, self._method.name)(self._messages(self._batches))

    def send(self, send: Send) -> None:
        self._batches.put_nowait(send)

    async def wait(self, wait: Wait) -> Event:
        if self._call is not None and self._answering is None:
            self._answering = asyncio.ensure_future(self._answer(self._call))
        if wait.reads and self._reading is None:
            self._reading = asyncio.ensure_future(self._batch())
        reading = self._reading if wait.reads else None
        tasks = [task for task in (self._answering, reading) if task is not None]
        await asyncio.wait(tasks, timeout=wait.seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._answering is not None and self._answering.done():
            answering, self._answering = self._answering, None
            event = answering.result()
            if not isinstance(event, Answered):
                await self._leave()
            return event
        if reading is not None and reading.done():
            self._reading = None
            return reading.result()
        return None

    async def aclose(self) -> None:
        await self._leave()
        await _ended(self._reading)
        await self._source.aclose()  # type: ignore[attr-defined]

    async def _leave(self) -> None:
        """Leave the stream."""
        # One that has ended by itself still waits for batches.
        self._batches.put_nowait(None)
        if self._call is not None:
            self._call.cancel()
            self._call = None
        answering, self._answering = self._answering, None
        await _ended(answering)

    async def _messages(self, batches: asyncio.Queue[Send | None]) -> AsyncIterator[Any]:
        while (send := await batches.get()) is not None:
            yield self._method.message(send.batch, send.sequence)

    async def _answer(self, call: Any) -> Event:
        try:
            answer = await call.read()
        except grpc.RpcError as failure:
            return closed() if self._connection.is_closed else error_of(failure, self._settings.address)
        except (grpc.aio.UsageError, asyncio.CancelledError):
            if self._call is not call:
                raise
            return closed()
        return early_end(self._settings.address) if answer is END else Answered(answer)

    async def _batch(self) -> Event:
        return await anext(self._source, Ended())


async def _ended(task: asyncio.Task[Event] | None) -> None:
    """Cancel a task, and wait until it has ended."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
