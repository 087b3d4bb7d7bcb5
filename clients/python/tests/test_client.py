"""The client finds in a real server what a scan finds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import simshard
from servers import Server
from simshard import SimshardError, aio
from simshard._inputs import Fingerprints
from simshard.client import Acknowledged, Client, Corpus, Match

DISTANCES = [0, 1, 3]


@pytest.fixture
def client(shared_server: Server) -> Iterator[Client]:
    with simshard.Client(shared_server.address, batch_size=7, window=3) as client:
        yield client


@pytest.fixture
def corpus(client: Client, request: pytest.FixtureRequest) -> Iterator[Corpus]:
    name = f"c{abs(hash(request.node.name)):x}"
    client.create_corpus(name)
    with client.corpus(name) as corpus:
        yield corpus
    client.delete_corpus(name)


async def slowly(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield await asyncio.to_thread(lambda value=value: value)


def scan(fingerprints: Fingerprints, ids: list[str], distance: int) -> list[Match]:
    """Return the matches of each fingerprint among all, as the client gives them."""
    stored: dict[int, set[str]] = {}
    for number, id in zip(fingerprints.tolist(), ids, strict=True):
        stored.setdefault(number, set()).add(id)
    return [
        Match(place, other, (query ^ other).bit_count(), sorted(stored[other]))
        for place, query in enumerate(fingerprints.tolist())
        for other in sorted(stored, key=lambda other: ((query ^ other).bit_count(), other))
        if (query ^ other).bit_count() <= distance
    ]


def test_it_finds_what_a_scan_finds(corpus: Corpus, fingerprints: Fingerprints) -> None:
    ids = [f"id-{number % 50}" for number in range(len(fingerprints))]
    documents = len(set(zip(fingerprints.tolist(), ids, strict=True)))
    count = len(fingerprints)
    assert corpus.insert(ids=ids, fingerprints=fingerprints) == Acknowledged(count, documents)
    assert corpus.insert(ids=iter(ids), fingerprints=iter(fingerprints.tolist())) == Acknowledged(count, 0)
    for distance in DISTANCES:
        expected = scan(fingerprints, ids, distance)
        assert list(corpus.find(fingerprints=fingerprints, max_distance=distance)) == expected
        first = {match.query: match for match in reversed(expected)}
        found = corpus.find_first(fingerprints=fingerprints.tolist(), max_distance=distance)
        assert {match.query: match for match in found} == first
    limited = corpus.find(fingerprints=fingerprints, limit=1, max_ids=1)
    assert [len(match.ids) for match in limited] == [1] * len(fingerprints)
    gone = slice(0, None, 3)
    removed = len(set(zip(fingerprints[gone].tolist(), ids[gone], strict=True)))
    assert corpus.remove(ids=ids[gone], fingerprints=fingerprints[gone]).changed == removed
    assert corpus.describe().documents == documents - removed


def test_the_client_for_asyncio_finds_the_same(
    shared_server: Server, corpus: Corpus, fingerprints: Fingerprints
) -> None:
    ids = [f"id-{number}" for number in range(len(fingerprints))]

    client = simshard.aio.Client(shared_server.address, batch_size=7, window=3)

    async def work() -> None:
        async with client:
            async with client.corpus(corpus.name) as remote:
                seen: list[Acknowledged] = []
                inserted = await remote.insert(
                    ids=slowly(ids), fingerprints=slowly(fingerprints.tolist()), acknowledged=seen.append
                )
                assert inserted == Acknowledged(len(ids), len(ids))
                assert sum(batch.documents for batch in seen) == len(ids)
                expected = scan(fingerprints, ids, 3)
                assert [match async for match in remote.find(fingerprints=fingerprints)] == expected
                assert [match async for match in remote.find(fingerprints=slowly(fingerprints))] == expected
                first = {match.query: match for match in reversed(expected)}
                found = remote.find_first(fingerprints=fingerprints)
                assert {match.query: match async for match in found} == first
                table = pa.table({"number": pa.array(fingerprints)})
                rows = [rows async for rows in remote.find_arrow(table, fingerprint="number")]
                assert pa.Table.from_batches(rows).to_pylist() == [match._asdict() for match in expected]
                assert (await remote.remove(ids=ids, fingerprints=fingerprints)).changed == len(ids)
                assert (await remote.describe()).documents == 0
            assert corpus.name in [info.name for info in await client.list_corpora()]
            assert (await client.create_corpus("for-asyncio")).recipe == "words-v3"
            await client.delete_corpus("for-asyncio")

    asyncio.run(work())


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, lambda columns: pa.RecordBatch.from_pydict(columns)])
def test_tables_go_in_and_come_out(corpus: Corpus, make: Any) -> None:
    numbers = np.array([5, 2**64 - 1, 4, 1 << 40, 5], np.uint64)
    ids = ["a", "b", "c", "d", "e"]
    table = make({"key": ids, "number": pa.array(numbers)})
    assert corpus.insert_arrow(table, fingerprint="number", id="key") == Acknowledged(5, 5)
    found = pl.DataFrame(corpus.find_arrow(table, fingerprint="number", max_distance=1))
    expected = scan(numbers, ids, 1)
    assert found.to_dicts() == [match._asdict() for match in expected]
    assert [str(kind) for kind in found.dtypes] == ["UInt64", "UInt64", "UInt8", "List(String)"]
    empty = make({"number": pa.array([], pa.uint64())})
    assert pa.table(corpus.find_arrow(empty, fingerprint="number")).num_rows == 0
    with pytest.raises(ValueError, match="no column 'x', but key, number"):
        corpus.insert_arrow(table, text="x")
    with pytest.raises(TypeError, match="one of the two"):
        corpus.insert_arrow(table)
    with pytest.raises(TypeError, match="and list does not"):
        corpus.insert_arrow([1], text="x")


def test_texts_are_hashed_by_the_server(corpus: Corpus) -> None:
    texts = [f"document {number} has words of its own, as {number * 7}" for number in range(20)]
    assert corpus.insert(ids=(f"{number}" for number in range(20)), texts=iter(texts)).changed == 20
    found = {match.query: match for match in corpus.find(texts=texts, max_distance=0)}
    assert [found[place].ids[0] for place in range(20)] == [f"{number}" for number in range(20)]
    assert [found[place].fingerprint for place in range(20)] == simshard.fingerprint(texts).tolist()
    table = pl.DataFrame({"text": texts})
    assert corpus.insert_arrow(table, text="text") == Acknowledged(20, 20)
    first = next(iter(corpus.find(texts=texts[:1], max_distance=0)))
    assert first.ids == ["", "0"]
    assert corpus.insert(texts=[]) == Acknowledged(0, 0)
    assert list(corpus.find(fingerprints=[])) == []


def test_corpora_are_made_listed_described_and_deleted(client: Client) -> None:
    made = client.create_corpus("described", blocks=8, distance=6, recipe="words-v3")
    assert (made.name, made.blocks, made.distance, made.recipe, made.state) == ("described", 8, 6, "words-v3", "LIVE")
    client.corpus("described").insert(fingerprints=[1, 2, 2])
    description = client.describe_corpus("described")
    assert (description.info, description.documents, description.fingerprints) == (made, 2, 2)
    assert [node.state for node in description.nodes] == ["SERVING"]
    assert made in client.list_corpora()
    client.delete_corpus("described")
    assert made not in client.list_corpora()


def test_a_corpus_has_the_default_recipe_unless_another_is_named(client: Client) -> None:
    made = client.create_corpus("usual")
    assert (made.blocks, made.distance, made.recipe) == (5, 3, "words-v3")
    client.delete_corpus("usual")


@pytest.mark.parametrize("use", ["unary", "stream"])
def test_a_closed_client_says_so(client: Client, use: str) -> None:
    address = client._settings.address
    with Client(address) as closed:
        corpus = closed.corpus("default")
    tasks = aio.Client(address)
    asyncio.run(tasks.close())
    with pytest.raises(SimshardError, match="the client is closed"):
        corpus.describe() if use == "unary" else corpus.insert(fingerprints=[1])
    with pytest.raises(SimshardError, match="the client is closed"):
        asyncio.run(tasks.list_corpora() if use == "unary" else tasks.corpus("default").insert(fingerprints=[1]))


def test_arguments_that_cannot_be_are_named(client: Client, corpus: Corpus) -> None:
    for port in (0x10000, "99999999999", "²", ""):
        with pytest.raises(ValueError, match="is no address"):
            Client(f"127.0.0.1:{port}")
    for name in ("timeout", "patience"):
        with pytest.raises(TypeError, match=f"{name} must be a number of seconds, not NoneType"):
            Client("127.0.0.1:1", **{name: None})
        for seconds in (-1.0, float("inf"), float("nan"), 1e10):
            with pytest.raises(ValueError, match=f"{name} is {seconds}"):
                Client("127.0.0.1:1", **{name: seconds})
    with pytest.raises(ValueError, match="window is -1"):
        Client("127.0.0.1:1", window=-1)
    for name in ("max_distance", "limit", "max_ids"):
        with pytest.raises(ValueError, match=f"{name} is -1"):
            corpus.find(fingerprints=[1], **{name: -1})
    for name in ("blocks", "distance"):
        with pytest.raises(ValueError, match=f"{name} is -1"):
            client.create_corpus("other", **{name: -1})
    with pytest.raises(TypeError, match="ids are a list of strings, not one string"):
        corpus.insert(ids="ab", texts=["a", "b"])
    with pytest.raises(TypeError, match="id 1 is no string, but of NoneType"):
        corpus.insert(ids=pa.array(["a", None]), texts=["a", "b"])
    with pytest.raises(TypeError, match="text 1 is no string, but of NoneType"):
        corpus.insert(texts=pa.array(["a", None]))


def test_grpc_is_imported_only_when_the_client_is() -> None:
    says = "import simshard, sys; print([name for name in ('grpc', 'google.protobuf') if name in sys.modules])"
    for code, expected in [(says, "[]"), (f"import simshard; simshard.Client; {says}", "['grpc', 'google.protobuf']")]:
        output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert output.stdout.strip() == expected
    for use in ("simshard.Client", "simshard.aio"):
        missing = f"import sys; sys.modules['grpc'] = None; import simshard; {use}"
        output = subprocess.run([sys.executable, "-c", missing], capture_output=True, text=True)
        assert "pip install 'simshard[client]'" in output.stderr
    with pytest.raises(AttributeError, match="no attribute 'Clients'"):
        simshard.Clients  # noqa: B018
