"""Streams of the client outlive servers that are killed, and read no further than their window."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import simshard
from conftest import SEED
from servers import Server
from simshard.client import Acknowledged, Client

DOCUMENTS = 20_000
KILLS = 10


def wait_until(what: Callable[[], bool], says: str) -> None:
    """Look every few milliseconds, for two minutes."""
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end, says
        time.sleep(0.005)


class Killer:
    """Kills a server each time a part of the load has been acknowledged, and starts it again."""

    def __init__(self, server: Server) -> None:
        self.durable = self.kills = 0
        self._server = server
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def acknowledged(self, batch: Acknowledged) -> None:
        self.durable += batch.documents

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        for kill in range(1, KILLS + 1):
            wait_until(lambda kill=kill: self.durable >= kill * DOCUMENTS // (KILLS + 1), f"no progress to kill {kill}")
            self._server.kill()
            self.kills += 1
            self._server.start()


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(own_server: Server, kind: str) -> None:
    fingerprints = np.random.default_rng(SEED).integers(0, 2**64, DOCUMENTS, np.uint64)
    ids = [f"document-{number}" for number in range(DOCUMENTS)]
    settings = {"batch_size": 100, "window": 4, "patience": 120.0}
    killer = Killer(own_server)

    async def insert() -> Acknowledged:
        async with simshard.aio.Client(own_server.address, **settings) as client:
            corpus = client.corpus("default")
            return await corpus.insert(ids=ids, fingerprints=fingerprints, acknowledged=killer.acknowledged)

    with Client(own_server.address, **settings) as client:
        corpus = client.corpus("default")
        if kind == "asyncio":
            inserted = asyncio.run(insert())
        else:
            inserted = corpus.insert(ids=ids, fingerprints=fingerprints, acknowledged=killer.acknowledged)
        killer.join()
        assert (killer.kills, killer.durable, inserted.documents) == (KILLS, DOCUMENTS, DOCUMENTS)
        found = {match.ids[0]: match.query for match in corpus.find(fingerprints=fingerprints, max_distance=0)}
        assert [found.get(id) for id in ids] == list(range(DOCUMENTS))
        assert corpus.describe().documents == DOCUMENTS


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_slow_server_holds_up_the_input(own_server: Server, kind: str) -> None:
    batch_size, window, count = 10, 3, 2_000
    read = durable = most_ahead = 0

    def numbers() -> Iterator[int]:
        nonlocal read, most_ahead
        for number in range(count):
            read += 1
            most_ahead = max(most_ahead, read - durable)
            yield number

    def acknowledged(batch: Acknowledged) -> None:
        nonlocal durable
        durable += batch.documents
        if durable == 5 * batch_size:
            own_server.pause()

    def insert() -> None:
        with Client(own_server.address, batch_size=batch_size, window=window) as client:
            client.corpus("default").insert(fingerprints=numbers(), acknowledged=acknowledged)

    async def insert_async() -> None:
        async with simshard.aio.Client(own_server.address, batch_size=batch_size, window=window) as client:
            await client.corpus("default").insert(fingerprints=numbers(), acknowledged=acknowledged)

    load = threading.Thread(target=insert if kind == "threads" else lambda: asyncio.run(insert_async()))
    load.start()
    # The server stands still: the input is read until the window is full, and no further.
    wait_until(lambda: durable >= 5 * batch_size, "nothing was acknowledged")
    wait_until(lambda: read >= durable + (window - 1) * batch_size, "the window was not filled")
    own_server.go_on()
    load.join()
    assert durable == read == count
    # Beside the window there is the batch that is being read, or whose answer was not counted yet.
    assert most_ahead <= (window + 2) * batch_size


def test_matches_are_found_across_a_restart(own_server: Server) -> None:
    fingerprints = np.random.default_rng(SEED).integers(0, 2**64, 2_000, np.uint64)
    with Client(own_server.address, batch_size=50, window=4) as client, client.corpus("default") as corpus:
        corpus.insert(fingerprints=fingerprints)
        found = []
        for match in corpus.find(fingerprints=iter(fingerprints), max_distance=0):
            found.append(match.query)
            if len(found) == 500:
                own_server.kill()
                own_server.start()
        assert found == list(range(2_000))
