"""Streams of the client outlive servers that are killed, and read no further than their window."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import simshard
from conftest import SEED
from servers import Cluster, Server
from simshard.client import Acknowledged, Client

DOCUMENTS = 1_000_000 if "SIMSHARD_LONG" in os.environ else 20_000
KILLS = 10


class Progress:
    """What tests wait for: it is looked at whenever something was read or acknowledged."""

    def __init__(self) -> None:
        self.read = self.durable = self.most_ahead = 0
        self._changed = threading.Condition()

    def count(self, read: int = 0, durable: int = 0) -> None:
        with self._changed:
            self.read += read
            self.durable += durable
            self.most_ahead = max(self.most_ahead, self.read - self.durable)
            self._changed.notify_all()

    def wait_for(self, reached: Callable[[], bool], says: str) -> None:
        with self._changed:
            assert self._changed.wait_for(reached, timeout=120), says


def kill_often(server: Server | Cluster, progress: Progress) -> None:
    """Kill a process each time a part of the load has been acknowledged, and start it again."""
    for kill in range(1, KILLS + 1):
        part = kill * DOCUMENTS // (KILLS + 1)
        progress.wait_for(lambda part=part: progress.durable >= part, f"kill {kill}: {part} are not durable")
        server.kill_and_start(kill)


def load_while_it_is_killed(server: Server | Cluster, is_async: bool = False) -> None:
    fingerprints = np.random.default_rng(SEED).integers(0, 2**64, DOCUMENTS, np.uint64)
    ids = [f"document-{number}" for number in range(DOCUMENTS)]
    settings = {"batch_size": DOCUMENTS // 200, "window": 4, "patience": 120.0}
    progress = Progress()

    def acknowledged(batch: Acknowledged) -> None:
        progress.count(durable=batch.documents)

    async def insert() -> Acknowledged:
        async with simshard.aio.Client(server.address, **settings) as client:
            corpus = client.corpus("killed")
            return await corpus.insert(ids=ids, fingerprints=fingerprints, acknowledged=acknowledged)

    with Client(server.address, **settings) as client:
        client.create_corpus("killed")
        corpus = client.corpus("killed")
        with ThreadPoolExecutor() as beside:
            killing = beside.submit(kill_often, server, progress)
            if is_async:
                inserted = asyncio.run(insert())
            else:
                inserted = corpus.insert(ids=ids, fingerprints=fingerprints, acknowledged=acknowledged)
            killing.result()
        assert (progress.durable, inserted.documents) == (DOCUMENTS, DOCUMENTS)
        found = {match.ids[0]: match.query for match in corpus.find(fingerprints=fingerprints, max_distance=0)}
        assert [found.get(id) for id in ids] == list(range(DOCUMENTS))
        assert corpus.describe().documents == DOCUMENTS


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(own_server: Server, kind: str) -> None:
    load_while_it_is_killed(own_server, is_async=kind == "asyncio")


def test_nothing_acknowledged_is_lost_when_routers_and_nodes_are_killed(program: Path, tmp_path: Path) -> None:
    with Cluster(program, tmp_path) as cluster:
        load_while_it_is_killed(cluster)


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_slow_server_holds_up_the_input(own_server: Server, kind: str) -> None:
    batch_size, window, count = 10, 3, 2_000
    progress = Progress()

    def numbers() -> Iterator[int]:
        for number in range(count):
            progress.count(read=1)
            yield number

    def acknowledged(batch: Acknowledged) -> None:
        if progress.durable == 5 * batch_size:
            own_server.pause()
        progress.count(durable=batch.documents)

    def insert() -> None:
        with Client(own_server.address, batch_size=batch_size, window=window) as client:
            client.corpus("default").insert(fingerprints=numbers(), acknowledged=acknowledged)

    async def insert_async() -> None:
        async with simshard.aio.Client(own_server.address, batch_size=batch_size, window=window) as client:
            await client.corpus("default").insert(fingerprints=numbers(), acknowledged=acknowledged)

    with ThreadPoolExecutor() as beside:
        load = beside.submit(insert if kind == "threads" else lambda: asyncio.run(insert_async()))
        # The server stands still: the input is read until the window is full, and no further.
        progress.wait_for(lambda: progress.durable > 5 * batch_size, "nothing was acknowledged")
        is_full = lambda: progress.read >= progress.durable + (window - 1) * batch_size  # noqa: E731
        progress.wait_for(is_full, "the window was not filled")
        own_server.go_on()
        load.result()
    assert progress.durable == progress.read == count
    # Beside the window there is the batch that is being read, or whose answer was not counted yet.
    assert progress.most_ahead <= (window + 2) * batch_size


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


def test_a_client_that_is_closed_ends_its_streams(own_server: Server) -> None:
    client = simshard.Client(own_server.address, batch_size=10)
    found = client.corpus("default").find(fingerprints=itertools.count())
    client.corpus("default").insert(fingerprints=[0])
    assert next(found).query == 0
    client.close()
    with pytest.raises(simshard.SimshardError, match="the client is closed"):
        list(found)


def test_tasks_that_are_cancelled_and_clients_that_are_closed_end_their_streams(own_server: Server) -> None:
    async def work() -> None:
        client = simshard.aio.Client(own_server.address, batch_size=10)
        corpus = client.corpus("default")
        is_durable = asyncio.Event()
        load = asyncio.create_task(
            corpus.insert(fingerprints=itertools.count(), acknowledged=lambda _: is_durable.set())
        )
        await is_durable.wait()
        load.cancel()
        with pytest.raises(asyncio.CancelledError):
            await load
        found = corpus.find(fingerprints=itertools.count())
        assert (await anext(found)).query == 0
        await client.close()
        with pytest.raises(simshard.SimshardError, match="the client is closed"):
            async for _ in found:
                pass
        names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]
        assert not [name for name in names if name.startswith("_Sending")]

    asyncio.run(work())
