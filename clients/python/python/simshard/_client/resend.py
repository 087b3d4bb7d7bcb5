"""Batches that are sent again until they are answered.

    batches --> window, kept until answered --> one stream --> answers, in order
                     ^                              |
                     +--- pause, a new stream <-----+ broke, failed, or says nothing

The steps are a generator. It yields what to do, and is sent what happened; it knows no network. The invariants are
those of the Rust client:

- RS1: a batch is kept until it is answered, and every new stream begins with all that are kept, in their order.
- RS2: batches are answered in their order, each once; any other answer is an error.
- RS3: at most a window of batches is kept; no other batch is read while the window is full.
- RS4: what may pass is an error only once nothing has been answered for the whole patience, and then at once. The first
  attempt may end after that. An answer that was late has taken no patience.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

from simshard._client.columns import Batch
from simshard._client.messages import Method, Result
from simshard._client.patience import Patience
from simshard._client.settings import Settings
from simshard.errors import AnswerTooLarge, DeadlineTooShort, MalformedAnswer, NoAnswer, SimshardError


@dataclass(frozen=True)
class Open:
    """Leave the stream, if there is one, and open another. No step follows an error without it."""


@dataclass(frozen=True)
class Send:
    """Send a batch on the stream."""

    batch: Batch
    sequence: int


@dataclass(frozen=True)
class Wait:
    """Wait for an answer or for a batch, whichever comes first."""

    reads: bool
    """Whether a batch may be read."""
    seconds: float | None
    """How long to wait; without it for as long as it takes."""


@dataclass(frozen=True)
class Pause:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True)
class Give(Generic[Result]):
    """Give a result to the caller."""

    result: Result


@dataclass(frozen=True)
class Ended:
    """There are no more batches."""


@dataclass(frozen=True)
class Answered:
    """The stream brought an answer."""

    answer: Any


Step: TypeAlias = "Open | Send | Wait | Pause | Give[Any]"
Event: TypeAlias = "Batch | Ended | Answered | SimshardError | None"
"""What came of a wait: ``None`` if its time is over. Other steps bring nothing."""

Steps: TypeAlias = Generator[Step, Event, None]


class Resending(Generic[Result]):
    """The batches of one stream of requests."""

    def __init__(self, method: Method[Result], settings: Settings, clock: Callable[[], float]) -> None:
        self._method = method
        self._settings = settings
        self._clock = clock
        self._patience = Patience(settings.patience)
        self._window: deque[Batch] = deque()
        """The batches without an answer, the oldest first."""
        self._oldest = 0
        """The number of the oldest one on the stream."""
        self._waiting_since = clock()
        """When the oldest became the one that is to be answered."""
        self._is_open = False
        self._has_ended = False
        self._failure: SimshardError | None = None
        """Why the last attempt failed, until something is answered."""

    def steps(self) -> Steps:
        """Yield what to do."""
        while self._window or not self._has_ended:
            if self._window and not self._is_open:
                yield from self._begin()
            event = yield self._wait()
            if isinstance(event, Batch):
                yield from self._send(event)
            elif isinstance(event, Ended):
                self._has_ended = True
            elif isinstance(event, Answered):
                yield Give(self._take(event.answer))
            elif isinstance(event, SimshardError):
                yield from self._recover(event)
            else:
                yield from self._time_over()

    def _begin(self) -> Steps:
        """Open a stream, with all batches of the window on it (RS1)."""
        yield Open()
        self._is_open = True
        self._oldest = 0
        self._waiting_since = self._clock()
        for sequence, batch in enumerate(self._window):
            yield Send(batch, sequence)

    def _send(self, batch: Batch) -> Steps:
        if not self._window:
            self._waiting_since = self._clock()
        self._window.append(batch)
        assert len(self._window) <= self._settings.window, "RS3"
        if self._is_open:
            yield Send(batch, self._oldest + len(self._window) - 1)

    def _wait(self) -> Wait:
        if not self._window:
            return Wait(reads=True, seconds=None)
        end = self._waiting_since + self._settings.timeout
        if self._failure is not None and self._patience.end is not None:
            end = min(end, self._patience.end)
        has_room = len(self._window) < self._settings.window and not self._has_ended
        return Wait(has_room, max(end - self._clock(), 0.0))

    def _take(self, answer: Any) -> Result:
        """Take the answer to the oldest batch (RS2)."""
        if not self._window or answer.sequence != self._oldest:
            raise MalformedAnswer(f"the router answered batch {answer.sequence}, whose turn it was not")
        result = self._method.read(answer.result, self._window[0])
        self._window.popleft()
        self._made_progress(self._oldest + 1)
        return result

    def _made_progress(self, oldest: int) -> None:
        self._oldest = oldest
        self._waiting_since = self._clock()
        self._patience.after_progress()
        self._failure = None

    def _time_over(self) -> Steps:
        now, end = self._clock(), self._patience.end
        if self._failure is not None and end is not None and now >= end:
            raise self._failure
        if now >= self._waiting_since + self._settings.timeout:
            problem = f"nothing came for {self._settings.timeout:g} s"
            address = self._settings.address
            yield from self._recover(
                NoAnswer(f"the router at {address} stopped answering: {problem}, see what it logs")
            )

    def _recover(self, error: SimshardError) -> Steps:
        """Leave a stream that failed, until it is time for the next; raise the error if that is of no use (RS4)."""
        self._is_open = False
        if not self._window:
            return
        if isinstance(error, AnswerTooLarge) and len(self._window[0]) > 1:
            self._window.extendleft(reversed(self._window.popleft().halves()))
            return
        # A router that did not have the time says it a moment before this client would.
        now = self._clock()
        is_late = isinstance(error, DeadlineTooShort) or now - self._waiting_since >= self._settings.timeout
        pause = None
        if error.may_pass or is_late:
            began = now if is_late else self._waiting_since
            pause = self._patience.after_failure(began, now, error.retry_after)
        if pause is None:
            error.count_from(self._window[0].first)
            if isinstance(error, AnswerTooLarge):
                error.is_of_query(self._window[0].first)
            raise error
        self._failure = error
        yield Pause(pause)
