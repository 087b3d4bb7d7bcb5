"""Near-duplicates of a Spark data frame, on the cluster that Spark runs on.

Fingerprints are of Spark's type ``long``, which has a sign: those above 2**63 are negative (two's complement). The
workers need this package, pandas and pyarrow.

No worker holds a set of more than a million rows: it is cut into parts that find their own pairs. Each fingerprint goes
to ``distance`` + 1 of them, and to more where very many agree in a block. For clusters, one worker holds one link of 16
bytes for each fingerprint that is near another.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from simshard import _arrow_parts, _simshard
from simshard._arrow_parts import Batches, tasks_of
from simshard._parts import Keys, Leads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fingerprint(df: DataFrame, text: str, *, recipe: str = "words-v3", into: str = "fingerprint") -> DataFrame:
    """Add the fingerprints of a column of texts; null where a text is null, or has none, as one without words."""
    from pyspark.sql.types import LongType, StructField, StructType

    _check_new(df, into)
    # Who gives a wrong recipe learns it now, and not from a worker.
    _simshard.fingerprint([], recipe)
    add = partial(_arrow_parts.add_fingerprints, text=text, recipe=recipe, into=into)
    # A schema is changed by what is added to it.
    return df.mapInArrow(add, StructType([*df.schema.fields, StructField(into, LongType())]))


def find_pairs(df: DataFrame, fingerprint: str = "fingerprint", *, distance: int = 3) -> DataFrame:
    """Return each pair of different fingerprints within the distance, once, as columns ``a`` and ``b``.

    ``a`` is the smaller one as a number without a sign. Rows without a fingerprint count for nothing.
    """
    parts, leads = _parts(df, fingerprint, distance)
    return parts.mapInArrow(partial(_arrow_parts.pairs_of, leads=leads), "a long, b long")


def find_clusters(
    df: DataFrame, fingerprint: str = "fingerprint", *, distance: int = 3, into: str = "cluster"
) -> DataFrame:
    """Add to each row the smallest fingerprint of its cluster, as a number without a sign.

    Two fingerprints are in one cluster if they are within the distance, directly or through others. One that is alone
    is its own cluster. Rows without a fingerprint have none.
    """
    from pyspark.sql import functions as F

    _check_new(df, into)
    parts, leads = _parts(df, fingerprint, distance)
    links = parts.mapInArrow(partial(_arrow_parts.links_of, leads=leads), "a long, b long").persist()
    tasks = tasks_of(links.count(), _arrow_parts.LINKS_A_TASK)
    while tasks > 1:
        before, links = links, links.repartition(tasks).mapInArrow(_arrow_parts.merged, "a long, b long").persist()
        fewer = tasks_of(links.count(), _arrow_parts.LINKS_A_TASK)
        before.unpersist()
        if fewer == tasks:
            break
        tasks = fewer
    found = links.repartition(1).mapInArrow(_arrow_parts.merged, "a long, b long")
    found = found.select(F.col("a").alias(into), "b")
    fingerprints = df[_quoted(fingerprint)].cast("long")
    rows = df.join(found, fingerprints == found["b"], "left")
    return rows.select(df["*"], F.coalesce(found[_quoted(into)], fingerprints).alias(into))


def _parts(df: DataFrame, fingerprint: str, distance: int) -> tuple[DataFrame, Leads]:
    """Return the fingerprints with their parts, those of one part in one task, and the leads that cut them."""
    leads = Leads(distance)
    column = df[_quoted(fingerprint)].cast("long").alias("fingerprint")
    fingerprints = df.select(column).where("fingerprint is not null")
    if fingerprints.count() <= _arrow_parts.HEAVY_ROWS:
        whole = fingerprints.selectExpr("0S as lead", "0L as key", "fingerprint")
        return whole.repartition(1), Leads(distance, is_whole=True)
    distinct = fingerprints.distinct()
    count = distinct.count()
    usual = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    tasks = max(tasks_of(count * len(leads.first), _arrow_parts.ROWS_A_TASK), usual)
    heavy = _heavy(distinct, leads) if count > _arrow_parts.HEAVY_ROWS else np.empty(0, np.int64)
    rows = partial(_arrow_parts.rows_of, leads=leads, heavy=heavy)
    parts = distinct.mapInArrow(rows, "lead short, key long, fingerprint long")
    return parts.repartition(tasks, "lead", "key"), leads


def _heavy(distinct: DataFrame, leads: Leads) -> Keys:
    """Return the keys of parts that are to be cut further."""
    from pyspark.sql import functions as F

    def keys(batches: Batches) -> Iterator[pa.RecordBatch]:
        for some in _arrow_parts.keys_of(batches, leads):
            yield pa.record_batch({"key": some})

    counts = distinct.mapInArrow(keys, "key long").groupBy("key").count()
    heavy = counts.where(F.col("count") > _arrow_parts.HEAVY_ROWS)
    return np.array(sorted(row.key for row in heavy.collect()), np.int64)


def _check_new(df: DataFrame, column: str) -> None:
    if column in df.columns:
        raise ValueError(f"there is a column {column!r} already: give another name")


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"
