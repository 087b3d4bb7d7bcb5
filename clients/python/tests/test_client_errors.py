"""What the client refuses, and what it says of what a server refuses."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest
import simshard
from servers import Server
from simshard import errors
from simshard.client import Client, Corpus

TEXTS = [f"text number {number}" for number in range(30)]


@pytest.fixture
def corpus(shared_server: Server) -> Iterator[Corpus]:
    with Client(shared_server.address, batch_size=4, timeout=20) as client, client.corpus("default") as corpus:
        yield corpus


def test_every_reason_has_a_class() -> None:
    page = (Path(__file__).parents[3] / "docs" / "grpc.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| [^|]*\| (.*)", page, re.MULTILINE)
    # This client is none of operators.
    assert set(errors.BY_REASON) == {reason for reason, told in rows if not told.startswith("to operators: ")}


def test_errors_are_told_apart_by_reason(shared_server: Server) -> None:
    with Client(shared_server.address) as client:
        with pytest.raises(errors.CorpusNotFound, match="no corpus nowhere") as caught:
            list(client.corpus("nowhere").find(texts=["a text"]))
        with pytest.raises(errors.CorpusNotFound):
            client.corpus("nowhere").find_arrow(pa.table({"text": ["a text"]}), text="text").read_all()
        assert (caught.value.reason, caught.value.code) == ("CORPUS_NOT_FOUND", "NOT_FOUND")
        assert not caught.value.may_pass and isinstance(caught.value, simshard.SimshardError)
        with pytest.raises(errors.CorpusExists):
            client.create_corpus("default")
        with pytest.raises(errors.CorpusNotFound):
            client.describe_corpus("nowhere")
        with pytest.raises(errors.InvalidRequest) as wrong:
            list(client.corpus("default").find(fingerprints=[1], max_distance=9))
        assert wrong.value.violations[0].field == "max_distance"
        assert isinstance(wrong.value, ValueError)
    with Client(shared_server.address, recipe="words-v1") as client, pytest.raises(errors.RecipeMismatch):
        client.corpus("default").insert(texts=["a text"])


def test_a_text_without_a_fingerprint_has_its_position_in_the_input(corpus: Corpus) -> None:
    for place in (0, 3, 4, 17, 29):
        texts = [*TEXTS[:place], "...", *TEXTS[place + 1 :]]
        for act in (lambda texts=texts: list(corpus.find(texts=texts)), lambda texts=texts: corpus.insert(texts=texts)):
            with pytest.raises(errors.InvalidRequest, match=re.escape(f"texts[{place}]")) as caught:
                act()
            assert [violation.field for violation in caught.value.violations] == [f"texts[{place}]"]


@pytest.mark.parametrize(
    ("columns", "error", "says"),
    [
        ({}, TypeError, "one of the two"),
        ({"texts": ["a"], "fingerprints": [1]}, TypeError, "one of the two"),
        ({"texts": "a"}, TypeError, "put it into a list"),
        ({"texts": [*TEXTS, 7]}, TypeError, "text 30 is no string, but of int"),
        ({"texts": iter([*TEXTS, None])}, TypeError, "text 30 is no string, but of NoneType"),
        ({"texts": [*TEXTS, "\ud800"]}, ValueError, "text 30 is no string that UTF-8 can hold"),
        ({"texts": TEXTS, "ids": [b"a"] * 30}, TypeError, "id 0 is no string, but of bytes"),
        ({"texts": TEXTS, "ids": ["a"]}, ValueError, "there are 30 texts and 1 ids"),
        ({"texts": iter(TEXTS), "ids": ["a"] * 29}, ValueError, "there are 29 ids, and more texts"),
        ({"texts": TEXTS, "ids": iter(["a"] * 31)}, ValueError, "there are 30 texts, and more ids"),
        ({"fingerprints": [*range(30), -1]}, ValueError, "element 30: a fingerprint is a number from 0"),
        ({"fingerprints": iter([*range(30), 2**64])}, ValueError, "element 30: a fingerprint is a number"),
        (
            {"fingerprints": iter([*range(30), 1.0])},
            ValueError,
            "element 30: a fingerprint is a whole number, not a value of type float",
        ),
        ({"fingerprints": ["1"]}, ValueError, "element 0: a fingerprint is a whole number, not a value of type str"),
        ({"fingerprints": np.array([1, 2])}, ValueError, "uint64, not int64"),
        ({"fingerprints": np.array([1.0])}, ValueError, "uint64, not float64"),
        ({"fingerprints": 7}, TypeError, "not a value of type int"),
    ],
)
def test_wrong_columns_are_refused(corpus: Corpus, columns: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        corpus.insert(**columns)


def test_an_input_that_raises_ends_the_stream(shared_server: Server, corpus: Corpus) -> None:
    def broken() -> Iterator[str]:
        yield from TEXTS
        raise OSError("the disk is gone")

    async def broken_later() -> AsyncIterator[str]:
        for text in broken():
            yield text

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        corpus.insert(texts=broken(), acknowledged=seen.append)
    found = corpus.find(texts=broken(), max_distance=0)
    with pytest.raises(OSError, match="the disk is gone"):
        list(found)
    # What was acknowledged is there.
    durable = sum(batch.documents for batch in seen)
    kept = {match.query for match in corpus.find(texts=TEXTS, max_distance=0)}
    assert kept >= set(range(durable))

    async def work() -> None:
        async with simshard.aio.Client(shared_server.address, batch_size=4) as client:
            with pytest.raises(OSError, match="the disk is gone"):
                await client.corpus("default").insert(texts=broken_later())

    asyncio.run(work())


def test_a_deadline_ends_requests_and_streams(own_server: Server) -> None:
    with Client(own_server.address, timeout=0.3, patience=0.5) as client:
        client.list_corpora()
        own_server.pause()
        started = time.monotonic()
        with pytest.raises(errors.DeadlineTooShort):
            client.describe_corpus("default")
        with pytest.raises((errors.NoAnswer, errors.NoRouter)):
            client.corpus("default").insert(texts=TEXTS)
        assert 0.6 < time.monotonic() - started < 10
        own_server.go_on()
        assert client.corpus("default", timeout=30).insert(texts=TEXTS).documents == 30


def test_what_is_no_router_is_told(shared_server: Server) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with Client(address, patience=0.3, timeout=2) as client:
            with pytest.raises(errors.NoRouter, match=f"no router answers at {address}"):
                client.list_corpora()
            with pytest.raises(errors.NoRouter):
                client.corpus("default").insert(texts=TEXTS)
    other = grpc.server(ThreadPoolExecutor())
    port = other.add_insecure_port("127.0.0.1:0")
    other.start()
    with Client(f"127.0.0.1:{port}") as client, pytest.raises(errors.NotARouter, match="is no router, or one of anoth"):
        client.list_corpora()
    other.stop(None)
    assert Client(f"http://{shared_server.address}/").list_corpora()
    for wrong in ("127.0.0.1", "ftp://127.0.0.1:7460", "https://127.0.0.1:7460/corpora", "http://router/corpora", ""):
        with pytest.raises(ValueError, match="is no address such as"):
            Client(wrong)
    for settings in ({"window": 0}, {"batch_size": 70_000}, {"timeout": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))} is"):
            Client("127.0.0.1:7460", **settings)  # type: ignore[arg-type]
