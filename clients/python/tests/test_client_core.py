"""The decisions of the client, without a network and on a clock of its own."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import SEED
from simshard import errors
from simshard._client.columns import Batch, Columns
from simshard._client.messages import Method, matches
from simshard._client.resend import Answered, Ended, Event, Give, Open, Pause, Resending, Send, Wait
from simshard._client.retry import RETRIES, Call, repeated
from simshard._client.settings import Settings
from simshard.v1 import corpus_service_pb2 as pb
from simshard.v1 import matches_pb2

WINDOW = 3
POSITIONS: Method[list[int]] = Method(
    "FindAllStream", None, dict, lambda _, batch: list(range(batch.first, batch.first + len(batch)))
)


def batches(count: int, size: int = 4) -> list[Batch]:
    return [Batch(first * size, ["text"] * size, []) for first in range(count)]


class Rig:
    """A network that does what chance says."""

    def __init__(self, count: int, settings: Settings, chance: random.Random) -> None:
        self.now = 0.0
        self.given: list[int] = []
        self.opened = self.pauses = 0
        self._waiting = deque(batches(count))
        self._read: deque[Batch] = deque()
        self._sent: deque[Send] = deque()
        self._chance = chance
        self._resending = Resending(POSITIONS, settings, lambda: self.now)

    def run(self) -> None:
        steps, event = self._resending.steps(), None
        while True:
            try:
                step = steps.send(event)
            except StopIteration:
                return
            event = None
            if isinstance(step, Open):
                self._sent.clear()
                self.opened += 1
            elif isinstance(step, Send):
                self._sent.append(step)
                assert step.sequence == self._sent[0].sequence + len(self._sent) - 1
            elif isinstance(step, Wait):
                event = self._wait(step)
            elif isinstance(step, Pause):
                self.now += step.seconds
                self.pauses += 1
            elif isinstance(step, Give):
                self.given.extend(step.result)

    def _wait(self, wait: Wait) -> Event:
        # RS1 and RS3: all that is read and not answered is on the stream, and there is no more than a window of it.
        on_stream = [position for send in self._sent for position in range(send.batch.first, _end(send.batch))]
        kept = [position for batch in self._read for position in range(batch.first, _end(batch))]
        if on_stream:
            assert on_stream == kept[-len(on_stream) :] and len(kept) == len(on_stream)
        assert not wait.reads or len(self._sent) < WINDOW
        chance = self._chance.random()
        if wait.reads and (chance < 0.4 or wait.seconds is None):
            if not self._waiting:
                return Ended()
            self._read.append(self._waiting[0])
            return self._waiting.popleft()
        assert wait.seconds is not None
        if chance < 0.8 and self._sent:
            return self._answer(self._sent[0])
        if chance < 0.9:
            return errors.NoRouter("gone")
        self.now += wait.seconds
        return None

    def _answer(self, send: Send) -> Event:
        if len(send.batch) > 1 and self._chance.random() < 0.3:
            return errors.AnswerTooLarge("too large")
        self._sent.popleft()
        answered = len(send.batch)
        while answered:
            batch = self._read.popleft()
            if len(batch) > answered:
                self._read.appendleft(Batch(batch.first + answered, batch.keys[answered:], []))
            answered -= min(answered, len(batch))
        return Answered(SimpleNamespace(sequence=send.sequence, result=None))


def _end(batch: Batch) -> int:
    return batch.first + len(batch)


@pytest.mark.parametrize("seed", range(100))
def test_batches_are_answered_in_order_whatever_breaks(seed: int) -> None:
    """RS1, RS2, RS3."""
    rig = Rig(30, Settings("address", window=WINDOW, patience=1e9), random.Random(f"{SEED} {seed}"))
    rig.run()
    assert rig.given == list(range(30 * 4))
    assert rig.opened > 1


def test_an_answer_out_of_turn_is_an_error() -> None:
    """RS2."""
    steps = Resending(POSITIONS, Settings("address"), lambda: 0.0).steps()
    assert isinstance(steps.send(None), Wait)
    assert isinstance(steps.send(batches(1)[0]), Open)
    assert steps.send(None) == Send(batches(1)[0], 0)
    assert isinstance(steps.send(None), Wait)
    with pytest.raises(errors.MalformedAnswer, match="batch 1, whose turn it was not"):
        steps.send(Answered(SimpleNamespace(sequence=1, result=None)))


@pytest.mark.parametrize(("patience", "took"), [(0, 4), (3, 4), (5, 5), (10, 10)])
def test_retries_end_with_the_patience_and_the_first_attempt_counts(patience: float, took: float) -> None:
    """RS4."""
    now, attempt_ends = 0.0, 0.0
    events: deque[Event] = deque([batches(1)[0], Ended()])
    steps = Resending(POSITIONS, Settings("address", patience=patience), lambda: now).steps()
    event: Event = None
    with pytest.raises(errors.NoRouter):
        while True:
            step, event = steps.send(event), None
            if isinstance(step, Open):
                attempt_ends = now + 4
            elif isinstance(step, Pause):
                now += step.seconds
            elif isinstance(step, Wait) and events:
                event = events.popleft()
            elif isinstance(step, Wait):
                assert step.seconds is not None
                now, event = min(
                    (now + step.seconds, None), (attempt_ends, errors.NoRouter("gone")), key=lambda e: e[0]
                )
    assert now == pytest.approx(took)


def test_what_cannot_pass_is_raised_at_once_with_its_position() -> None:
    steps = Resending(POSITIONS, Settings("address"), lambda: 0.0).steps()
    steps.send(None)
    steps.send(Batch(100, ["a", "b"], []))
    steps.send(None)
    steps.send(None)
    with pytest.raises(errors.InvalidRequest, match=r"texts\[101\] has no words"):
        steps.send(errors.InvalidRequest("texts[1] has no words"))


def attempts(failures: Iterable[errors.SimshardError], timeout: float = 30.0) -> tuple[Any, list[float]]:
    """Make a request that fails like this, then succeeds; return its answer, or its error, and the pauses."""
    now, pauses, left = 0.0, [], deque(failures)
    steps = repeated(Settings("address", timeout=timeout), lambda: now, "ListCorpora", None)
    step = next(steps)
    try:
        while True:
            if isinstance(step, Call):
                assert step.timeout == pytest.approx(timeout - now)
                step = steps.throw(left.popleft()) if left else steps.send("answer")
            else:
                pauses.append(step.seconds)
                now += step.seconds
                step = next(steps)
    except StopIteration as end:
        return end.value, pauses
    except errors.SimshardError as error:
        return error, pauses


def test_requests_are_made_again_when_the_server_says_that_they_may_pass() -> None:
    passing = errors.Overloaded("busy", retry_after=1.5)
    answer, pauses = attempts([passing] * RETRIES)
    assert answer == "answer" and [pause >= 1.5 for pause in pauses] == [True] * RETRIES
    assert attempts([passing] * (RETRIES + 1))[0] is passing
    final = errors.StorageFailed("broken")
    assert attempts([final]) == (final, [])
    assert attempts([passing], timeout=1.0) == (passing, [])
    answer, pauses = attempts([errors.NoRouter("gone")] * 2)
    assert answer == "answer" and 0.1 <= pauses[0] <= 0.2 <= pauses[1] <= 0.4


async def later(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value


@pytest.mark.parametrize("form", [list, iter, later])
@pytest.mark.parametrize("with_ids", [False, True])
def test_batches_keep_their_limits_and_the_order(form: Any, with_ids: bool) -> None:
    chance = random.Random(SEED)
    texts = [chance.choice("aä字") * chance.choice([1, 10, 1000, 20_000]) for _ in range(500)]
    ids = [f"id-{number}" for number in range(len(texts))] if with_ids else None
    settings = Settings("address", batch_size=50, batch_bytes=30_000)

    async def collect() -> list[Batch]:
        columns = Columns(form(texts), None, form(ids) if ids else None)
        if form is not later:
            return list(columns.batches(settings))
        return [batch async for batch in columns.batches_async(settings)]

    made = asyncio.run(collect())
    assert [text for batch in made for text in batch.keys] == texts
    assert [id for batch in made for id in batch.ids] == (ids or [])
    assert [batch.first for batch in made] == np.cumsum([0, *map(len, made)])[:-1].tolist()
    assert all(len(batch) <= 50 and (batch.nbytes() <= 30_000 or len(batch) == 1) for batch in made)


def test_an_input_is_read_no_further_than_a_batch_needs() -> None:
    read = 0

    def texts() -> Iterable[str]:
        nonlocal read
        while True:
            read += 1
            yield "x" * 1000

    made = Columns(texts(), None).batches(Settings("address", batch_size=10_000, batch_bytes=5_000))
    next(made)
    assert read <= 5


def test_answers_whose_columns_disagree_are_refused() -> None:
    batch = batches(1, size=1)[0]
    good = matches_pb2.Matches(match_counts=[1], fingerprints=[5], distances=[1], id_counts=[1], ids=["a"])
    assert list(matches(pb.FindAllResponse(matches=good), batch)) == [(0, 5, 1, ["a"])]
    for field in ("match_counts", "fingerprints", "distances", "id_counts", "ids"):
        bad = matches_pb2.Matches()
        bad.CopyFrom(good)
        bad.ClearField(field)
        with pytest.raises(errors.MalformedAnswer):
            matches(pb.FindAllResponse(matches=bad), batch)
