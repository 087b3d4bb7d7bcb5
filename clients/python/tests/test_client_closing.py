"""A client that is closed, forked or taken to another event loop says so, to all that use it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import simshard.aio
from servers import Server
from simshard.client import Client
from simshard.errors import SimshardError

CLOSED = "the client is closed"


@pytest.fixture
def paused_server(own_server: Server) -> Iterator[Server]:
    """Return a server that takes connections, and answers nothing."""
    own_server.pause()
    yield own_server
    own_server.go_on()


def test_requests_of_tasks_end_when_the_client_is_closed(paused_server: Server) -> None:
    async def ask(work: Any) -> str:
        try:
            return repr(await work)
        except SimshardError as error:
            return str(error)

    async def read(stream: Any) -> int:
        return len([match async for match in stream])

    async def close_amid() -> list[str]:
        client = simshard.aio.Client(paused_server.address)
        corpus = client.corpus("any")
        work = [
            client.create_corpus("other"),
            client.delete_corpus("other"),
            client.list_corpora(),
            corpus.insert(fingerprints=[1]),
            read(corpus.find(fingerprints=[1])),
        ]
        tasks = [asyncio.create_task(ask(one)) for one in work]
        await asyncio.wait(tasks, timeout=0.2)
        await client.close()
        async with asyncio.timeout(20) if sys.version_info >= (3, 11) else client:
            answers = await asyncio.gather(*tasks)
        return [*answers, await ask(client.list_corpora()), await ask(corpus.insert(fingerprints=[1]))]

    answers = asyncio.run(close_amid())
    assert [answer for answer in answers if CLOSED not in answer] == []


def test_a_task_that_is_cancelled_stays_so(paused_server: Server) -> None:
    async def cancel() -> None:
        async with simshard.aio.Client(paused_server.address) as client:
            for work in (client.list_corpora(), client.corpus("any").insert(fingerprints=[1])):
                task = asyncio.create_task(work)
                await asyncio.wait([task], timeout=0.1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    asyncio.run(cancel())


def test_requests_of_threads_end_when_the_client_is_closed(paused_server: Server) -> None:
    client, answers = Client(paused_server.address), []

    def ask(work: Any) -> None:
        try:
            answers.append(repr(work()))
        except SimshardError as error:
            answers.append(str(error))

    corpus = client.corpus("any")
    works: list[Any] = [
        lambda: client.create_corpus("other"),
        lambda: client.delete_corpus("other"),
        client.list_corpora,
        lambda: corpus.insert(fingerprints=[1]),
        lambda: list(corpus.find(fingerprints=[1])),
    ]
    threads = [threading.Thread(target=ask, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    threads[0].join(0.2)
    client.close()
    for thread in threads:
        thread.join(20)
    assert len(answers) == len(works)
    assert [answer for answer in answers if CLOSED not in answer] == []


def test_a_client_of_another_loop_says_so(shared_server: Server) -> None:
    client = simshard.aio.Client(shared_server.address)
    assert isinstance(asyncio.run(client.list_corpora()), list)
    with pytest.raises(SimshardError, match="of the event loop that used it first"):
        asyncio.run(client.list_corpora())
    asyncio.run(client.close())


FORKED = """
import os, sys, numpy as np, simshard
client = simshard.Client(sys.argv[1], timeout=60)
unused = simshard.Client(sys.argv[1])
client.list_corpora()
numbers = np.random.default_rng(1).integers(0, 2**64, 300_000, dtype=np.uint64)
pairs = simshard.iter_pairs(numbers, 20, batch_size=1)
next(pairs)
child = os.fork()
if child:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for work in (client.list_corpora, lambda: client.corpus("a").insert(fingerprints=[1]), lambda: next(pairs)):
    try:
        print("no error", work())
    except (simshard.SimshardError, RuntimeError) as error:
        print(error)
sys.stdout.flush()
os._exit(0)
"""


def test_a_child_of_a_fork_is_told(shared_server: Server) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, shared_server.address]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    client, stream, pairs = ran.stdout.splitlines()
    assert "the client was connected before this process was forked" in client
    assert stream == client
    assert "the search was begun before this process was forked" in pairs


HALVED = """
import asyncio, gc, sys, simshard.aio
async def main():
    async with simshard.aio.Client(sys.argv[1], batch_size=64) as client:
        await client.create_corpus("halved")
        async with client.corpus("halved") as corpus:
            queries = list(range(0, 20000, 5000))
            for query in queries:
                ids = [f"{number:0>1000}" for number in range(query, query + 5000)]
                await corpus.insert(fingerprints=[query] * 5000, ids=ids)
            found = [match async for match in corpus.find(fingerprints=queries * 20)]
            assert len([match for match in found if match.distance == 0]) == 80, found
            async for match in corpus.find(fingerprints=queries * 20):
                break
        gc.collect()
asyncio.run(main(), debug=False)
"""


def test_answers_that_are_halved_make_no_noise(own_server: Server) -> None:
    command = [sys.executable, "-X", "dev", "-c", HALVED, own_server.address]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
