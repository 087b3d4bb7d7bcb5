"""Streams that outlive the block of their corpus say so: they do not end as if they were complete."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import simshard.aio
from servers import Server
from simshard.client import Client
from simshard.errors import SimshardError

QUERIES = np.arange(600, dtype=np.uint64)
SAYS = "the stream ended with the `with` block of its corpus"


@pytest.fixture
def client(shared_server: Server) -> Iterator[Client]:
    """Return a client of a server that has a corpus with the queries."""
    with Client(shared_server.address, batch_size=50) as connected:
        if "blocks" not in [corpus.name for corpus in connected.list_corpora()]:
            connected.create_corpus("blocks")
        connected.corpus("blocks").insert(fingerprints=QUERIES)
        yield connected


def test_reading_on_is_an_error(client: Client) -> None:
    table = pa.table({"query": QUERIES})
    with client.corpus("blocks") as corpus:
        begun, untouched = corpus.find(fingerprints=QUERIES), corpus.find_first(fingerprints=QUERIES)
        rows = corpus.find_arrow(table, fingerprint="query")
        whole, given_up = corpus.find(fingerprints=QUERIES[:1]), corpus.find(fingerprints=QUERIES)
        next(begun)
        assert len(list(whole)) > 0
        given_up.close()
    for stream in (begun, untouched):
        with pytest.raises(SimshardError, match=SAYS):
            list(stream)
    with pytest.raises(SimshardError, match=SAYS):
        rows.read_all()
    assert list(whole) == list(given_up) == []


def test_a_block_is_left_while_another_thread_reads(client: Client) -> None:
    gate, failures = threading.Event(), []

    def queries() -> Iterator[int]:
        yield from range(100)
        reads.set()
        gate.wait(60)
        yield from range(100)

    def read(stream: Any) -> None:
        try:
            list(stream)
        except SimshardError as error:
            failures.append(str(error))

    reads = threading.Event()
    with pytest.raises(KeyError, match="own"), client.corpus("blocks") as corpus:
        reader = threading.Thread(target=read, args=(corpus.find(fingerprints=queries()),))
        reader.start()
        assert reads.wait(60)
        raise KeyError("own")
    gate.set()
    reader.join(60)
    assert len(failures) == 1 and SAYS in failures[0]


def test_reading_on_is_an_error_with_asyncio(client: Client, shared_server: Server) -> None:
    async def leave() -> None:
        gate, reads = asyncio.Event(), asyncio.Event()

        async def queries() -> AsyncIterator[int]:
            for query in range(100):
                yield query
            reads.set()
            await gate.wait()

        async def read(stream: Any) -> int:
            return len([match async for match in stream])

        async with simshard.aio.Client(shared_server.address, batch_size=50) as connected:
            async with connected.corpus("blocks") as corpus:
                untouched = corpus.find(fingerprints=QUERIES)
                reader = asyncio.create_task(read(corpus.find(fingerprints=queries())))
                await reads.wait()
            with pytest.raises(SimshardError, match=SAYS):
                await read(untouched)
            gate.set()
            with pytest.raises(SimshardError, match=SAYS):
                await reader

    asyncio.run(leave())


def test_bytes_are_no_fingerprints(client: Client) -> None:
    corpus: Any = client.corpus("blocks")
    for wrong in (b"abc", bytearray(b"abc"), "123"):
        with pytest.raises(TypeError, match="fingerprints are a list or a column of numbers, not "):
            corpus.insert(fingerprints=wrong)
