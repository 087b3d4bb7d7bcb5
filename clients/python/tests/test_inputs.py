"""What is taken as fingerprints and as texts, and what is refused."""

from __future__ import annotations

from typing import Any

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
        pa.array(NUMBERS, pa.uint64()),
        pa.chunked_array([NUMBERS[:1], NUMBERS[1:]], pa.uint64()),
        pl.Series(NUMBERS, dtype=pl.UInt64),
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
        ([1.5], "element 0: 'float'"),
        (["1"], "element 0: 'str'"),
        (np.array([1, 2]), "not int64: take .view"),
        (np.array([1.0]), "not float64"),
        (np.array([1], np.uint32), "not uint32"),
        (np.array([[1]], np.uint64), "one dimension, not of 2"),
        (pa.array([1, None], pa.uint64()), "1 fingerprints are null"),
        (pa.array([1], pa.int64()), "not int64"),
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


def test_texts_come_in_lists_and_columns() -> None:
    texts = ["Ein Text", "Noch einer", "\N{SNOWMAN} texts"]
    expected = simshard.fingerprint(texts).tolist()
    assert simshard.fingerprint(iter(texts)).tolist() == expected
    assert simshard.fingerprint(pa.array(texts)).tolist() == expected
    assert simshard.fingerprint(pl.Series(texts)).tolist() == expected


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
