"""Spark gives the pairs and clusters of the engine. It runs where pyspark is installed and SIMSHARD_LONG is set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import simshard
from engines import TEXTS, clusters_of, near, run_example
from simshard._inputs import Fingerprints

pytestmark = pytest.mark.skipif("SIMSHARD_LONG" not in os.environ, reason="Spark takes long to start")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    # Workers are to have what this process has.
    os.environ["PYSPARK_PYTHON"] = sys.executable

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    yield session
    session.stop()


def frame(spark: Any, fingerprints: Fingerprints) -> Any:
    rows = [(place, int(value)) for place, value in enumerate(fingerprints.view(np.int64))]
    return spark.createDataFrame([*rows, (-1, None)], "row long, fingerprint long")


@pytest.mark.parametrize("prefix_bits", [0, 20])
@pytest.mark.parametrize(("heavy_rows", "links_a_task"), [(50, 200), (1500, 10**6), (10**6, 10**6)])
def test_pairs_and_clusters_are_those_of_the_engine(
    spark: Any, monkeypatch: pytest.MonkeyPatch, prefix_bits: int, heavy_rows: int, links_a_task: int
) -> None:
    from simshard import _arrow_parts
    from simshard import spark as on_spark

    monkeypatch.setattr(_arrow_parts, "HEAVY_ROWS", heavy_rows)
    monkeypatch.setattr(_arrow_parts, "LINKS_A_TASK", links_a_task)
    fingerprints = near(prefix_bits)
    df = frame(spark, fingerprints)
    found = [(row.a % 2**64, row.b % 2**64) for row in on_spark.find_pairs(df).collect()]
    expected = [tuple(pair) for pair in simshard.find_pairs(fingerprints).tolist()]
    assert sorted(found) == sorted(expected)
    smallest = clusters_of(fingerprints)
    rows = on_spark.find_clusters(df).collect()
    assert len(rows) == len(fingerprints) + 1
    for row in rows:
        if row.row < 0:
            assert row.cluster is None
        else:
            assert row.cluster % 2**64 == smallest[int(fingerprints[row.row])]


def test_texts_have_the_fingerprints_of_the_engine(spark: Any) -> None:
    from simshard import spark as on_spark

    texts = ["one two three", None, "", "Ein Text über Füchse", "!"]
    df = spark.createDataFrame([(text,) for text in texts], "body string")
    for _ in range(2):
        rows = on_spark.fingerprint(df, "body").collect()
    with pytest.raises(ValueError, match="already"):
        on_spark.fingerprint(df, "body", into="body")
    with pytest.raises(ValueError, match="nonsense"):
        on_spark.fingerprint(df, "body", recipe="nonsense")
    assert [row.body for row in rows] == texts
    assert [row.fingerprint is None for row in rows] == [False, True, True, False, True]
    expected = simshard.fingerprint([texts[0], texts[3]])
    assert [rows[0].fingerprint % 2**64, rows[3].fingerprint % 2**64] == expected.tolist()


def test_the_example_runs(spark: Any) -> None:
    pages = spark.createDataFrame([(text,) for text in TEXTS], "body string")
    names = run_example("On Spark", pages=pages)
    kept = {row.body or "" for row in names["kept"].collect()}
    assert len(kept) == 3 and TEXTS[2] in kept and kept & {TEXTS[0], TEXTS[3]}
    assert names["pairs"].count() == 0
