"""Does the steps of a client that blocks. A thread reads the answers of each stream."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

import grpc

from simshard._client.columns import Source
from simshard._client.messages import Method, Result
from simshard._client.resend import Answered, Ended, Event, Give, Open, Pause, Resending, Send, Wait
from simshard._client.retry import Call, T, UnarySteps
from simshard._client.settings import Access, Settings, target_of
from simshard._client.wire import OPTIONS, Origin, closed, credentials_of, early_end, error_of, method_of
from simshard.errors import SimshardError


class Connection:
    """A channel, which is made when it is first used."""

    def __init__(self, address: str, access: Access) -> None:
        self._target, self._credentials = target_of(address), credentials_of(access)
        self._channel: Any = None
        self._origin = Origin()
        self._lock = Lock()
        self._is_closed = False

    def call(self, method: str, messages: Any, **options: Any) -> Any:
        """Call a method with a request or an iterator of them."""
        channel = self._opened()
        try:
            return method_of(channel, method)(messages, **options)
        except ValueError:
            # Another thread has closed the channel meanwhile.
            if self._is_closed:
                raise closed() from None
            raise

    def error_of(self, failure: Any, address: str) -> SimshardError:
        """Return why a call failed."""
        return closed() if self._is_closed else error_of(failure, address)

    def close(self) -> None:
        """Close the channel, if it was used."""
        with self._lock:
            self._is_closed = True
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _opened(self) -> Any:
        with self._lock:
            if self._is_closed:
                raise closed()
            if self._channel is not None:
                self._origin.check()
                return self._channel
            self._origin = Origin()
            if self._credentials is None:
                self._channel = grpc.insecure_channel(self._target, options=OPTIONS)
            else:
                self._channel = grpc.secure_channel(self._target, self._credentials, options=OPTIONS)
            return self._channel


def run(connection: Connection, address: str, steps: UnarySteps[T]) -> T:
    """Do the steps of a request; return what it brings."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Call):
                try:
                    answer = connection.call(step.method, step.request, timeout=step.timeout)
                except grpc.RpcError as failure:
                    step = steps.throw(connection.error_of(failure, address))
                else:
                    step = steps.send(answer)
            else:
                time.sleep(step.seconds)
                step = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


def stream(
    connection: Connection, settings: Settings, method: Method[Result], source: Source
) -> Generator[Result, None, None]:
    """Send batches, and yield the result of each. The batches are read by the caller's thread."""
    batches = source.batches(settings)
    steps = Resending(method, settings, time.monotonic).steps()
    sending: _Stream | None = None
    event: Event = None
    try:
        while True:
            try:
                step = steps.send(event)
            except StopIteration:
                return
            event = None
            if isinstance(step, Open):
                if sending is not None:
                    sending.cancel()
                sending = _Stream(connection, settings, method)
            elif isinstance(step, Send):
                assert sending is not None
                sending.send(step)
            elif isinstance(step, Wait):
                event = _wait(sending, batches, step)
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            elif isinstance(step, Give):
                yield step.result
    finally:
        if sending is not None:
            sending.cancel()


def _wait(sending: _Stream | None, batches: Iterator[Any], wait: Wait) -> Event:
    if sending is not None:
        # An answer that has arrived is not late, even if it is looked at only after the timeout.
        is_over = wait.seconds is not None and wait.seconds <= 0
        event = sending.next_event(0 if wait.reads or is_over else wait.seconds)
        if event is not None or is_over or not wait.reads:
            return event
    return next(batches, Ended())


class _Stream:
    """A stream that is open."""

    def __init__(self, connection: Connection, settings: Settings, method: Method[Any]) -> None:
        self._connection = connection
        self._address = settings.address
        self._batches: SimpleQueue[Send | None] = SimpleQueue()
        # Each batch has one answer, so this holds a window of them at most.
        self._events: SimpleQueue[Event] = SimpleQueue()
        messages = (method.message(send.batch, send.sequence) for send in iter(self._batches.get, None))
        self._answers = connection.call(method.name, messages)
        Thread(target=self._read, name="simshard answers", daemon=True).start()

    def send(self, send: Send) -> None:
        self._batches.put(send)

    def next_event(self, seconds: float | None) -> Event:
        try:
            return self._events.get(timeout=seconds) if seconds != 0 else self._events.get_nowait()
        except Empty:
            return None

    def cancel(self) -> None:
        self._batches.put(None)
        self._answers.cancel()

    def _read(self) -> None:
        failure: SimshardError = early_end(self._address)
        try:
            for answer in self._answers:
                self._events.put(Answered(answer))
        except grpc.RpcError as error:
            failure = self._connection.error_of(error, self._address)
        self._events.put(failure)
