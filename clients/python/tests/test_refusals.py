"""What is refused says what is wrong, where, and what to give instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import simshard
from servers import Server
from simshard.client import Client
from simshard.compat import simhash, simhash_py

sim: Any = simshard


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: sim.find_pairs(5), "fingerprints are a list or a column of numbers, not a value of type int"),
        (lambda: sim.find_pairs({5: 6}), "fingerprints are a list or a column, not a value of type dict"),
        (lambda: sim.find_pairs(np.array([5, None])), "element 1: a fingerprint is a whole number, not .*NoneType"),
        (lambda: sim.find_pairs([5, True, "x"]), "element 2: a fingerprint is a whole number, not .*str"),
        (lambda: sim.fingerprint({"text": ["a"]}), "texts are a list or a column, not a value of type dict"),
        (lambda: sim.fingerprint({"a", "b"}), "texts are a list or a column, not a value of type set"),
        (lambda: sim.fingerprint(5), "texts are a list or a column of strings, not a value of type int"),
        (lambda: sim.fingerprint(["a"], missing="x"), "a fingerprint is a whole number, not a value of type str"),
        (lambda: sim.fingerprint(["a"], 5), "recipe must be a str, not int"),
        (lambda: sim.dedup({"text": ["a"]}), "texts are a list or a column, not a value of type dict"),
        (lambda: sim.dedup(["a"], "text"), "a table has columns, and a value of type list does not"),
        (lambda: sim.dedup(pa.table({"a": ["b"]}), 5), "the name of a column must be a str, not int"),
        (lambda: sim.dedup(pa.table({"a": ["b"]}), "zz"), "the table has no column 'zz', but a"),
        (lambda: sim.dedup(pl.DataFrame({"a": ["b"]}), "zz"), "the table has no column 'zz', but a"),
        (lambda: sim.distance("5", 4), "list or a column of numbers, not a value of type str"),
        (lambda: simhash_py.compute([1] * 70_000 + [-1]), "element 70000: a fingerprint is a number from 0"),
        (lambda: simhash_py.find_clusters([1, 1, -1], 5, 3), "element 2: a fingerprint is a number from 0"),
        (lambda: simhash.Simhash({"a": -1}), "the weight of 'a' is -1: it must not be below 0"),
        (lambda: simhash.Simhash(["a"], f=256), "f is 256, and the hash function gives 128 bits"),
        (lambda: simhash.Simhash("a", f=0), "f must be 8 or another multiple of 8, not 0"),
        (lambda: simhash.Simhash("a").distance(5), "give a Simhash, not a value of type int"),  # type: ignore[arg-type]
        (lambda: simhash.SimhashIndex([("a", 5)]), "give a Simhash, not a value of type int"),  # type: ignore[list-item]
        (lambda: simhash.SimhashIndex([], k="2"), "k must be a whole number, not str"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(wrong: Callable[[], Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        wrong()


def test_a_table_that_is_not_computed_is_no_list_of_its_names() -> None:
    lazy = pl.DataFrame({"a": ["b"]}).lazy()
    if not hasattr(lazy, "__arrow_c_stream__"):
        with pytest.raises(TypeError, match=r"not computed yet: give what its collect\(\) returns"):
            sim.fingerprint(lazy)


def test_a_column_of_a_dictionary_is_named() -> None:
    assert sim.dedup({"text": ["one two", "one two", "three"]}, text="text").kept.tolist() == [0, 2]
    assert sim.find_pairs(np.array([5, 2**64 - 1, 4], dtype=object)).tolist() == [[4, 5]]
    assert sim.find_pairs({5, 4}).tolist() == [[4, 5]]


@pytest.fixture
def client(shared_server: Server) -> Iterator[Any]:
    """Return a client of a server that has an empty corpus for what is refused."""
    with Client(shared_server.address, batch_size=2) as connected:
        if "refusals" not in [corpus.name for corpus in connected.list_corpora()]:
            connected.create_corpus("refusals")
        yield connected


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda client: client.corpus(5), "the name of a corpus must be a str, not int"),
        (lambda client: client.corpus("\ud800"), "the name of a corpus is .*, which UTF-8 cannot hold"),
        (lambda client: client.create_corpus(b"x"), "the name of a corpus must be a str, not bytes"),
        (lambda client: client.create_corpus("new", recipe=None), "recipe must be a str, not NoneType"),
        (lambda client: client.create_corpus("new", recipe=5), "recipe must be a str, not int"),
        (lambda client: client.delete_corpus(None), "the name of a corpus must be a str, not NoneType"),
        (lambda client: client.describe_corpus(5), "the name of a corpus must be a str, not int"),
        (lambda _: Client("127.0.0.1:7460", recipe=5), "recipe must be a str, not int"),  # type: ignore[arg-type]
        (lambda _: Client(":7460"), "is no address such as"),
        (lambda _: Client(" 127.0.0.1:7460"), "is no address such as"),
        (lambda _: Client("127.0.0.1:0"), "is no address such as"),
    ],
)
def test_a_name_that_is_none_is_refused(client: Any, wrong: Callable[[Any], Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        wrong(client)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"texts": {"a": "b"}}, "texts are a list or a column, not a value of type dict"),
        ({"fingerprints": {1, 2}}, "fingerprints are a list or a column, not a value of type set"),
        ({"texts": ["a"], "ids": {"a"}}, "ids are a list or a column, not a value of type set"),
        ({"texts": 5}, "texts are a list or a column of strings, not a value of type int"),
        ({"fingerprints": 5}, "fingerprints are a list or a column of numbers, not a value of type int"),
        ({"fingerprints": [1], "ids": pa.array([1])}, "ids are strings, not int64"),
        ({"fingerprints": [1, 2, 3], "ids": ["a", "b", None]}, "id 2 is no string, but of NoneType"),
    ],
)
def test_columns_have_an_order(client: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        client.corpus("refusals").insert(**given)


NUMBERS = pa.array([1, 2, 3, 4, None], pa.uint64())
IDS = pa.array(["a", "b", "c", None, None])


@pytest.mark.parametrize(
    ("columns", "names", "says"),
    [
        ({"n": NUMBERS}, {"fingerprint": "n"}, "element 4 is null: drop"),
        ({"t": IDS}, {"text": "t"}, "text 3 is null: drop"),
        ({"n": NUMBERS[:4], "i": IDS[:4]}, {"fingerprint": "n", "id": "i"}, "id 3 is null: drop"),
        ({"n": NUMBERS[:4], "i": NUMBERS[:4]}, {"fingerprint": "n", "id": "i"}, "ids are strings, not uint64"),
        ({"n": NUMBERS}, {"text": "n"}, "texts are strings, not uint64"),
    ],
)
def test_a_table_is_checked_before_anything_is_sent(
    client: Any, columns: dict[str, pa.Array], names: dict[str, str], says: str
) -> None:
    corpus, table = client.corpus("refusals"), pa.table(columns)
    with pytest.raises(ValueError, match=says):
        corpus.insert_arrow(pa.concat_tables([table]), **names)
    assert corpus.describe().documents == 0
    if "id" not in names:
        with pytest.raises(ValueError, match=says):
            corpus.find_arrow(table.to_reader(max_chunksize=2), **names).read_all()


def test_asynchronous_columns_are_for_the_other_client(client: Any) -> None:
    async def texts() -> Any:
        yield "a"

    for given in ({"texts": texts()}, {"texts": ["a"], "ids": texts()}):
        with pytest.raises(TypeError, match=r"does not await its input: use simshard\.aio"):
            client.corpus("refusals").insert(**given)


def test_an_answer_that_is_too_large_names_its_query(client: Any) -> None:
    client.create_corpus("large")
    corpus = client.corpus("large")
    corpus.insert(fingerprints=[7] * 20_000, ids=[f"{number:0>1000}" for number in range(20_000)])
    with pytest.raises(simshard.errors.AnswerTooLarge, match=r"^query 3: .*max_ids"):
        list(corpus.find(fingerprints=[1 << 40, 1 << 41, 1 << 42, 7, 1 << 43]))
