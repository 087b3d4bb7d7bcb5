"""Near-duplicates of a Spark data frame, on the cluster that Spark runs on.

Fingerprints are of Spark's type ``long``, which has a sign: those above 2**63 are negative (two's complement). The
workers need this package, pandas and pyarrow.

No worker holds the set: it is cut into parts that find their own pairs. Each fingerprint goes to ``distance`` + 1 of
them, and to more where very many agree in a block. For clusters, one worker holds one link of 16 bytes for each
fingerprint that is near another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from simshard import _simshard
from simshard._inputs import Fingerprints
from simshard._parts import Leads, forest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEAVY_ROWS = 1_000_000
"""A part with more fingerprints is cut further."""

_ROWS_A_TASK = 2_000_000
_LINKS_A_TASK = 4_000_000

Batches = Iterable[pa.RecordBatch]


def fingerprint(df: DataFrame, text: str, *, recipe: str = "words-v3", into: str = "fingerprint") -> DataFrame:
    """Add the fingerprints of a column of texts; null where a text is null, or has none, as one without words."""
    from pyspark.sql.types import LongType, StructField, StructType

    _check_new(df, into)
    # Who gives a wrong recipe learns it now, and not from a worker.
    _simshard.fingerprint([], recipe)

    def add(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [*batch.columns, _fingerprints_of(batch.column(text), recipe)]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, into])

    # A schema is changed by what is added to it.
    return df.mapInArrow(add, StructType([*df.schema.fields, StructField(into, LongType())]))


def find_pairs(df: DataFrame, fingerprint: str = "fingerprint", *, distance: int = 3) -> DataFrame:
    """Return each pair of different fingerprints within the distance, once, as columns ``a`` and ``b``.

    ``a`` is the smaller one as a number without a sign. Rows without a fingerprint count for nothing.
    """
    leads = Leads(distance)

    def find(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number, some in _by_lead(batches):
            yield _batch(a=(pairs := leads.pairs(some, number))[:, 0], b=pairs[:, 1])

    return _parts(df, fingerprint, leads).mapInArrow(find, "a long, b long")


def find_clusters(
    df: DataFrame, fingerprint: str = "fingerprint", *, distance: int = 3, into: str = "cluster"
) -> DataFrame:
    """Add to each row the smallest fingerprint of its cluster, as a number without a sign.

    Two fingerprints are in one cluster if they are within the distance, directly or through others. One that is alone
    is its own cluster. Rows without a fingerprint have none.
    """
    from pyspark.sql import functions as F

    _check_new(df, into)
    leads = Leads(distance)

    def link(batches: Batches) -> Iterator[pa.RecordBatch]:
        links = forest(leads.links(some) for _, some in _by_lead(batches))
        yield _batch(a=links[:, 0], b=links[:, 1])

    def merge(batches: Batches) -> Iterator[pa.RecordBatch]:
        links = forest(np.stack([_numbers(batch, "a"), _numbers(batch, "b")], axis=1) for batch in batches)
        yield _batch(a=links[:, 0], b=links[:, 1])

    links = _parts(df, fingerprint, leads).mapInArrow(link, "a long, b long").persist()
    tasks = -(-links.count() // _LINKS_A_TASK)
    while tasks > 1:
        before, links = links, links.repartition(tasks).mapInArrow(merge, "a long, b long").persist()
        fewer = -(-links.count() // _LINKS_A_TASK)
        before.unpersist()
        if fewer == tasks:
            break
        tasks = fewer
    found = links.repartition(1).mapInArrow(merge, "a long, b long").select(F.col("a").alias(into), "b")
    fingerprints = df[_quoted(fingerprint)].cast("long")
    rows = df.join(found, fingerprints == found["b"], "left")
    return rows.select(df["*"], F.coalesce(found[_quoted(into)], fingerprints).alias(into))


def _parts(df: DataFrame, fingerprint: str, leads: Leads) -> DataFrame:
    """Return the fingerprints with their parts: those of one part are in one task."""
    from pyspark.sql import functions as F

    column = df[_quoted(fingerprint)].cast("long").alias("fingerprint")
    distinct = df.select(column).where("fingerprint is not null").distinct()
    count = distinct.count()
    usual = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    tasks = max(-(-count * len(leads.first) // _ROWS_A_TASK), usual)

    def firsts(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in range(len(leads.first)):
                yield pa.record_batch({"key": leads.keys(_numbers(batch, "fingerprint"), number)})

    heavy_keys: list[int] = []
    if count > HEAVY_ROWS:
        keys = distinct.mapInArrow(firsts, "key long").groupBy("key").count()
        heavy_keys = [row.key for row in keys.where(F.col("count") > HEAVY_ROWS).collect()]
    heavy = np.array(sorted(heavy_keys), np.int64)

    def rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, keys, some in leads.rows(_numbers(batch, "fingerprint"), heavy):
                leads_of_rows = np.full(len(some), number, np.int16)
                yield pa.record_batch({"lead": leads_of_rows, "key": keys, "fingerprint": some.view(np.int64)})

    parts = distinct.mapInArrow(rows, "lead short, key long, fingerprint long")
    return parts.repartition(tasks, "lead", "key")


def _check_new(df: DataFrame, column: str) -> None:
    if column in df.columns:
        raise ValueError(f"there is a column {column!r} already: give another name")


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _by_lead(batches: Batches) -> Iterator[tuple[int, Fingerprints]]:
    """Yield the fingerprints of a task, lead by lead. Parts of one lead are searched together."""
    chunks: dict[int, list[Fingerprints]] = {}
    for batch in batches:
        leads, fingerprints = batch.column("lead").to_numpy(), _numbers(batch, "fingerprint")
        for number in np.unique(leads).tolist():
            chunks.setdefault(number, []).append(fingerprints[leads == number])
    for number in sorted(chunks):
        yield number, np.concatenate(chunks.pop(number))


def _numbers(batch: pa.RecordBatch, column: str) -> Fingerprints:
    numbers: Fingerprints = batch.column(column).to_numpy().view(np.uint64)
    return numbers


def _batch(**columns: Fingerprints) -> pa.RecordBatch:
    return pa.record_batch({name: np.ascontiguousarray(column).view(np.int64) for name, column in columns.items()})


def _fingerprints_of(column: Any, recipe: str) -> pa.Array:
    texts = column.to_pylist()
    has_none = np.array([text is None for text in texts], dtype=bool)
    fingerprints, without = _simshard.fingerprint([text or "" for text in texts], recipe)
    has_none[without] = True
    return pa.array(fingerprints.view(np.int64), mask=has_none)
