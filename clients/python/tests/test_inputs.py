"""What is taken as fingerprints and as texts, and what is refused."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import simshard

NUMBERS = [5, 0xFFFF << 48, 4, 2**64 - 1]
PAIRS = [[4, 5]]


@pytest.mark.parametrize(
    "values",
    [
        NUMBERS,
        tuple(NUMBERS),
        iter(NUMBERS),
        np.array(NUMBERS, np.uint64),
        np.array(NUMBERS, ">u8"),
        np.repeat(np.array(NUMBERS, np.uint64), 2)[::2],
        np.array(NUMBERS, np.uint64)[::-1],
        np.frombuffer(b"*" + np.array(NUMBERS, "<u8").tobytes(), "<u8", offset=1),
        pa.array(NUMBERS, pa.uint64()),
        pa.chunked_array([NUMBERS[:1], NUMBERS[1:]], pa.uint64()),
        pa.array([9, *NUMBERS, 8], pa.uint64())[1:-1],
        pa.record_batch({"numbers": pa.array(NUMBERS, pa.uint64())}),
        pa.table({"numbers": pa.array([9, *NUMBERS], pa.uint64())})[1:],
        pl.Series(NUMBERS, dtype=pl.UInt64),
        pl.DataFrame({"numbers": pl.Series(NUMBERS, dtype=pl.UInt64)}),
        duckdb.sql(f"select unnest({NUMBERS}::ubigint[]) as numbers"),
    ],
    ids=lambda values: type(values).__module__ + "." + type(values).__name__,
)
def test_fingerprints_come_in_many_forms(values: Any) -> None:
    assert simshard.find_pairs(values).tolist() == PAIRS


@pytest.mark.parametrize("recipe", simshard.recipes())
def test_a_distance_suggests_a_similarity_where_the_recipe_has_minima(recipe: str) -> None:
    expected = [1.0, 0.90625, 0.0, 0.0] if recipe in ("words-v3", "words-v2") else [None] * 4
    assert [simshard.similarity(distance, recipe) for distance in (0, 3, 32, 64)] == expected


def test_a_similarity_follows_from_the_exact_name_of_a_recipe() -> None:
    assert simshard.similarity(np.uint8(2), "words-v2-3") == 0.9375
    assert [simshard.similarity(2, name) for name in ("words-v2-2", "features", "Words-v3", "")] == [None] * 4


def test_an_array_that_cannot_be_written_is_read() -> None:
    array = np.array(NUMBERS, np.uint64)
    array.flags.writeable = False
    assert simshard.find_pairs(array).tolist() == PAIRS
    assert array.tolist() == NUMBERS


@pytest.mark.parametrize("empty", [[], (), np.array([]), np.empty(0, np.uint64), pa.array([], pa.uint64())])
def test_nothing_gives_nothing(empty: Any) -> None:
    assert simshard.find_pairs(empty).shape == (0, 2)
    assert simshard.find_clusters(empty).shape == (0,)
    corpus = simshard.Corpus()
    assert corpus.insert_bulk(empty) == 0
    assert corpus.find_all_bulk(empty).query.shape == (0,)
    assert simshard.fingerprint([]).shape == (0,)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, -2], "element 1: a fingerprint is a number from 0"),
        ([1, 2, 2**64], "element 2: a fingerprint is a number from 0"),
        ([1.5], "element 0: a fingerprint is a whole number, not a value of type float"),
        (["1"], "element 0: a fingerprint is a whole number, not a value of type str"),
        (np.array([1, 2]), "not int64: take .view"),
        (np.array([1.0]), "not float64"),
        (np.array([1], np.uint32), "not uint32"),
        (np.array([[1]], np.uint64), "one dimension, not of 2"),
        (pa.array([1, None], pa.uint64()), "element 1 is null: drop"),
        (pa.array([1], pa.int64()), "not int64"),
        (pl.Series([1.0]), "not float64"),
        (pl.Series(["a"]), "not Arrow data of the format 'vu'"),
        (pa.table({"a": [1], "b": [2]}), "the table has a, b"),
        (pa.chunked_array([[1, None, None], [None]], pa.uint64())[2:], "element 0 is null, and 1 others: drop"),
    ],
)
def test_other_numbers_are_refused(values: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        simshard.find_pairs(values)


def test_distances_are_of_numbers_and_of_arrays() -> None:
    array = np.array(NUMBERS, np.uint64)
    assert simshard.distance(5, 4) == 1
    assert simshard.distance(array[0], array[2]) == 1
    assert simshard.distance(array, 5).tolist() == [0, 18, 1, 62]
    assert simshard.distance(array, array[::-1]).tolist() == [62, 17, 17, 62]
    with pytest.raises(ValueError, match="a fingerprint is a number"):
        simshard.distance(-1, 4)


TEXTS = ["Ein Text", "Noch einer", "\N{SNOWMAN} texts", "A text that is longer than twelve bytes", "Ein Text", ""]

COLUMNS = [
    iter(TEXTS),
    pa.array(TEXTS),
    pa.array(TEXTS, pa.large_string()),
    pa.array(TEXTS, pa.string_view()),
    pa.array(["before", *TEXTS, "a text after these"])[1:-1],
    pa.array(["before", *TEXTS, "a text after these"], pa.string_view())[1:-1],
    pa.array(["before", *TEXTS]).dictionary_encode()[1:],
    pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]),
    pa.chunked_array([TEXTS[:4], TEXTS[4:]], pa.string_view()),
    pl.Series(TEXTS),
    pl.Series(TEXTS, dtype=pl.Categorical),
    pl.concat([pl.Series(TEXTS[:3]), pl.Series(TEXTS[3:])], rechunk=False),
    pa.record_batch({"body": TEXTS}),
    duckdb.sql(f"select unnest({TEXTS}) as body"),
]


@pytest.mark.parametrize("texts", COLUMNS, ids=lambda texts: f"{type(texts).__module__}.{type(texts).__name__}")
def test_texts_come_in_lists_and_columns(texts: Any) -> None:
    assert simshard.fingerprint(texts, missing=0).tolist() == simshard.fingerprint(TEXTS, missing=0).tolist()


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"id": range(6), "body": TEXTS}),
        pa.table({"id": range(6), "body": TEXTS}).to_reader(),
        pa.record_batch({"id": range(6), "body": TEXTS}),
        pa.table({"id": range(7), "body": ["before", *TEXTS]})[1:].to_batches()[0],
        pl.DataFrame({"id": range(6), "body": TEXTS}),
        duckdb.sql(f"select unnest(range(6)) as id, unnest({TEXTS}) as body"),
    ],
    ids=lambda table: f"{type(table).__module__}.{type(table).__name__}",
)
def test_tables_of_all_libraries_lose_their_duplicates(table: Any) -> None:
    assert simshard.dedup(table, text="body", keep="longest").kept.tolist() == [0, 1, 2, 3, 5]


def test_lengths_are_of_characters() -> None:
    snowmen = "\N{SNOWMAN}" * 4
    for texts in (["one two.", f"one two{snowmen[:3]}", "one two....", f"one two{snowmen}"],):
        kept = simshard.dedup(texts, keep="longest").kept.tolist()
        assert kept == simshard.dedup(pa.array(texts), keep="longest").kept.tolist() == [2]


def test_tables_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(ValueError, match="no column 'text', but body"):
        simshard.dedup(pa.table({"body": TEXTS}).to_reader(), text="text")
    with pytest.raises(ValueError, match="give one column, or its name where a table is taken: the table has id, body"):
        simshard.dedup(pa.table({"id": TEXTS, "body": TEXTS}))
    with pytest.raises(ValueError, match="strings, not int64"):
        simshard.fingerprint(pa.array([1]))
    with pytest.raises(ValueError, match="text 1 is no text of UTF-8"):
        broken = pa.array([b"a", b"\xff"], pa.binary())
        simshard.fingerprint(pa.Array.from_buffers(pa.string(), 2, broken.buffers()))

    def fail() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"body": TEXTS})
        raise OSError("the disk is gone")

    with pytest.raises(ValueError, match=r"cannot be read: .*the disk is gone"):
        simshard.fingerprint(pa.RecordBatchReader.from_batches(pa.schema({"body": pa.string()}), fail()))


@pytest.mark.parametrize("recipe", ["words-v3", "leonsim-4"])
@pytest.mark.parametrize("make", [list, pa.array, pl.Series, lambda texts: pa.chunked_array([texts[:2], texts[2:]])])
def test_null_has_no_fingerprint_by_any_recipe(make: Any, recipe: str) -> None:
    texts = ["one two", None, "one two", None]
    with pytest.raises(ValueError, match=r"text 1 has no fingerprint by recipe .*, nor have 1 others"):
        simshard.fingerprint(make(texts), recipe)
    found = simshard.fingerprint(make(texts), recipe, missing=7).tolist()
    assert found == [found[0], 7, found[0], 7] and found[0] != 7
    for keep in ("first", "longest"):
        kept = simshard.dedup(make(texts), recipe=recipe, keep=keep)  # type: ignore[arg-type]
        assert (kept.kept.tolist(), kept.dropped.tolist()) == ([0, 1, 3], [2])


def test_few_texts_have_the_fingerprints_of_many() -> None:
    texts = [f"{number} {TEXTS[number % len(TEXTS)]}" for number in range(2000)]
    for recipe in simshard.recipes():
        many = simshard.fingerprint(texts, recipe, missing=7).tolist()
        assert many == [int(simshard.fingerprint([text], recipe, missing=7)[0]) for text in texts]


def test_what_hides_numbers_is_refused() -> None:
    indices = pa.array([0, 1], pa.uint64())
    for values, says in (
        (pa.DictionaryArray.from_arrays(indices, pa.array([5, 7], pa.uint64())), "of a dictionary: decode"),
        (np.ma.array(np.array(NUMBERS, np.uint64), mask=[0, 1, 0, 1]), "element 1 is masked, and 1 others: drop"),
        (hidden(pa.array([1, 3], pa.uint64())), "element 1 is null: drop"),
    ):
        with pytest.raises(ValueError, match=says):
            simshard.find_pairs(values)
    assert simshard.find_pairs(np.ma.array(np.array(NUMBERS, np.uint64), mask=False)).tolist() == PAIRS
    for octets in (b"ab", bytearray(b"ab"), "ab"):
        with pytest.raises(TypeError, match="fingerprints are a list or a column of numbers, not"):
            simshard.find_pairs(octets)
    with pytest.raises(ValueError, match="text 1 has no fingerprint"):
        simshard.fingerprint(hidden(pa.array(["a", "b"])))


def hidden(column: pa.Array) -> pa.Array:
    """Return a table of one column, whose second row is null."""
    return pa.StructArray.from_arrays([column], ["x"], mask=pa.array([False, True]))


def test_memory_of_other_libraries_is_given_back() -> None:
    before = pa.total_allocated_bytes()
    for make in (pa.array, pa.chunked_array):
        column = make([TEXTS * 1000] if make is pa.chunked_array else TEXTS * 1000)
        simshard.fingerprint(column, missing=0)
        del column
    gc.collect()
    assert pa.total_allocated_bytes() == before


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import duckdb, polars as pl, simshard
texts = ["one two three", "one two three!", "four five"]
frame = pl.DataFrame({"body": texts})
assert simshard.dedup(frame, text="body").kept.tolist() == [0, 2]
assert simshard.dedup(duckdb.sql(f"select unnest({texts}) as body"), text="body").kept.tolist() == [0, 2]
numbers = pl.Series(simshard.fingerprint(frame["body"]))
assert simshard.find_clusters(numbers).tolist() == [0, 0, 2]
assert simshard.find_pairs(pl.DataFrame({"number": numbers})).tolist() == []
class Frame:
    columns = ["body"]
    def __iter__(self): return iter(self.columns)
    def __arrow_c_stream__(self, schema=None): import pyarrow
    def __getitem__(self, name): return texts if name == "body" else Frame()
assert simshard.dedup(Frame(), text="body").kept.tolist() == [0, 2]
for wrong in (simshard.fingerprint, simshard.dedup):
    try:
        wrong(Frame())
        raise SystemExit("a frame was read as the names of its columns")
    except ValueError as error:
        assert "needs pyarrow" in str(error), error
"""


def test_pyarrow_is_not_needed() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], check=True)


def test_texts_that_cannot_be_hashed_are_named_by_their_position() -> None:
    with pytest.raises(ValueError, match="text 1 has no fingerprint by recipe words-v3, nor have 1 others"):
        simshard.fingerprint(["a", "", "..."])
    assert simshard.fingerprint(["a", ""], missing=0).tolist()[1] == 0
    with pytest.raises(ValueError, match="text 1 is no string"):
        simshard.fingerprint(["a", 7])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="text 0 is no string"):
        simshard.fingerprint(["\ud800"])
    with pytest.raises(TypeError, match="put it into a list"):
        simshard.fingerprint("a")
    with pytest.raises(ValueError, match="unknown recipe"):
        simshard.fingerprint(["a"], recipe="words")
    with pytest.raises(ValueError, match="takes no texts"):
        simshard.fingerprint(["a"], recipe="features")
