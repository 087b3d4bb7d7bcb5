"""Near-duplicates of a dataset of Ray Data, on the cluster that Ray runs on. The workers need this package.

Columns of fingerprints are of Arrow's type ``uint64``, or ``int64`` in two's complement, as Spark writes them. What is
added is ``uint64``.

No worker holds a set of more than a million fingerprints: it is cut into parts that find their own pairs. Each goes to
``distance`` + 1 of them, and to more where very many agree in a block. For clusters, each machine holds one link of 16
bytes for each fingerprint that is near another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import ray

from simshard import _arrow_parts, _simshard
from simshard._arrow_parts import Batches, tasks_of
from simshard._inputs import Fingerprints
from simshard._parts import Keys, Leads

if TYPE_CHECKING:
    from ray.data import Dataset

Step = Callable[[Batches], Iterator[pa.RecordBatch]]
PartStep = Callable[[Batches, Leads], Iterator[pa.RecordBatch]]

_ROWS_A_BATCH = 1 << 20
_TASKS_A_PROCESSOR = 2


def fingerprint(ds: Dataset, text: str, *, recipe: str = "words-v3", into: str = "fingerprint") -> Dataset:
    """Add the fingerprints of a column of texts; null where a text is null, or has none, as one without words."""
    _check_columns(ds, text, into)
    # Who gives a wrong recipe learns it now, and not from a worker.
    _simshard.fingerprint([], recipe)
    add = partial(_arrow_parts.add_fingerprints, text=text, recipe=recipe, into=into)
    return _map(ds, add, unsigned=[into])


def find_pairs(ds: Dataset, fingerprint: str = "fingerprint", *, distance: int = 3) -> Dataset:
    """Return each pair of different fingerprints within the distance, once, as columns ``a`` and ``b``.

    ``a`` is the smaller one. Rows without a fingerprint count for nothing.
    """
    _check_fingerprints(ds, fingerprint)
    return _map_parts(ds, fingerprint, distance, _arrow_parts.pairs_of, unsigned=["a", "b"])


def find_clusters(
    ds: Dataset, fingerprint: str = "fingerprint", *, distance: int = 3, into: str = "cluster"
) -> Dataset:
    """Add to each row the smallest fingerprint of its cluster.

    Two fingerprints are in one cluster if they are within the distance, directly or through others. One that is alone
    is its own cluster. Rows without a fingerprint have none.
    """
    _check_fingerprints(ds, fingerprint, into)
    links = _map_parts(ds, fingerprint, distance, _arrow_parts.links_of).materialize()
    tasks = tasks_of(links.count(), _arrow_parts.LINKS_A_TASK)
    while tasks > 1:
        links = _map(links.repartition(tasks), _arrow_parts.merged).materialize()
        fewer = tasks_of(links.count(), _arrow_parts.LINKS_A_TASK)
        if fewer == tasks:
            break
        tasks = fewer
    # All tasks of a machine read the same copy.
    found = ray.remote(_smallest).remote(*links.to_arrow_refs())

    def label(batches: Batches) -> Iterator[pa.RecordBatch]:
        smallest, members = ray.get(found)
        for batch in batches:
            column = _in_twos_complement(batch.column(fingerprint))
            labels = _labels(column.fill_null(0).to_numpy().view(np.uint64), smallest, members)
            clusters = pa.array(labels, mask=column.is_null().to_numpy(zero_copy_only=False))
            yield pa.RecordBatch.from_arrays([*batch.columns, clusters], names=[*batch.schema.names, into])

    return _map(ds, label)


def _map_parts(
    ds: Dataset,
    fingerprint: str,
    distance: int,
    step: PartStep,
    unsigned: Sequence[str] = (),
) -> Dataset:
    """Take a step with the parts of a set: those of one part are in one batch."""
    leads = Leads(distance)

    def distinct(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            column = _in_twos_complement(batch.column(fingerprint)).drop_null()
            yield pa.record_batch({"fingerprint": np.unique(column.to_numpy())})

    # A fingerprint is left once a block. Its part has it once.
    fingerprints = _map(ds, distinct).materialize()
    count = fingerprints.count()
    if not count:
        # Ray groups no dataset without rows.
        none = pa.array([], pa.uint64() if unsigned else pa.int64())
        return ray.data.from_arrow(pa.table({"a": none, "b": none}))
    is_whole = count <= _arrow_parts.HEAVY_ROWS
    if is_whole:
        leads = Leads(distance, is_whole)
    usual = int(ray.cluster_resources().get("CPU", 1)) * _TASKS_A_PROCESSOR
    tasks = 1 if is_whole else max(tasks_of(count * len(leads.first), _arrow_parts.ROWS_A_TASK), usual)
    heavy = np.empty(0, np.int64) if is_whole else _heavy(fingerprints, leads, tasks)

    def rows(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in _arrow_parts.rows_of(batches, leads, heavy):
            yield _with_task(batch, tasks)

    parts = _map(fingerprints, rows, rows=_ROWS_A_BATCH)
    return _map_tasks(parts, lambda batches: step(batches, leads), tasks, unsigned)


def _heavy(fingerprints: Dataset, leads: Leads, tasks: int) -> Keys:
    """Return the keys of parts that are to be cut further."""
    most = _arrow_parts.HEAVY_ROWS

    def counts(batches: Batches) -> Iterator[pa.RecordBatch]:
        for keys in _arrow_parts.keys_of(batches, leads):
            distinct, numbers = np.unique(keys, return_counts=True)
            yield _with_task(pa.record_batch({"key": distinct, "count": numbers}), tasks)

    def above(batches: Batches) -> Iterator[pa.RecordBatch]:
        counted = pa.Table.from_batches(batches).group_by("key").aggregate([("count", "sum")])
        yield from counted.filter(pc.field("count_sum") > most).select(["key"]).to_batches()

    counted = _map(fingerprints, counts, rows=_ROWS_A_BATCH)
    heavy = _map_tasks(counted, above, tasks).to_arrow_refs()
    keys = [table.column("key").to_numpy() for table in ray.get(heavy) if table.num_rows]
    return np.sort(np.concatenate(keys)) if keys else np.empty(0, np.int64)


def _map(ds: Dataset, step: Step, unsigned: Sequence[str] = (), rows: int | None = None) -> Dataset:
    """Take a step with batches of this many rows, or with whole blocks."""
    return ds.map_batches(_of_tables(step, unsigned), batch_size=rows, batch_format="pyarrow")


def _map_tasks(ds: Dataset, step: Step, tasks: int, unsigned: Sequence[str] = ()) -> Dataset:
    """Take a step with all rows of each task at once."""
    # A group comes whole, however large it is. A block need not.
    grouped = ds.groupby("task", num_partitions=tasks)
    return grouped.map_groups(_of_tables(step, unsigned), batch_format="pyarrow")


def _of_tables(step: Step, unsigned: Sequence[str]) -> Callable[[pa.Table], Iterator[pa.Table]]:
    """Return a step from table to tables, in which some columns have no sign."""

    def of_table(table: pa.Table) -> Iterator[pa.Table]:
        for batch in step(table.to_batches()):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns.update((name, columns[name].view(pa.uint64())) for name in unsigned)
            yield pa.table(columns)

    return of_table


def _with_task(batch: pa.RecordBatch, tasks: int) -> pa.RecordBatch:
    """Add the number of the task that has all rows with a key."""
    task = (_arrow_parts.numbers(batch, "key") % np.uint64(tasks)).view(np.int64)
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(task)], names=[*batch.schema.names, "task"])


def _smallest(*links: pa.Table) -> tuple[Fingerprints, Fingerprints]:
    """Return what links connect, ascending, after the smallest fingerprint of the cluster of each."""
    batches = (batch for table in links if table.num_rows for batch in table.to_batches())
    merged = next(_arrow_parts.merged(batches))
    return _arrow_parts.numbers(merged, "a"), _arrow_parts.numbers(merged, "b")


def _labels(fingerprints: Fingerprints, smallest: Fingerprints, members: Fingerprints) -> Fingerprints:
    labels = fingerprints.copy()
    if len(members):
        places = np.minimum(np.searchsorted(members, fingerprints), len(members) - 1)
        is_linked = members[places] == fingerprints
        labels[is_linked] = smallest[places[is_linked]]
    return labels


def _in_twos_complement(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if pa.types.is_null(column.type) else column.view(pa.int64())


def _check_columns(ds: Dataset, old: str, new: str | None = None) -> pa.DataType:
    """Check the names of columns, and return the type of the old one, if Ray knows it."""
    schema = ds.schema()
    if schema is None:
        return None
    if old not in schema.names:
        raise ValueError(f"there is no column {old!r}, but {', '.join(schema.names)}")
    if new in schema.names:
        raise ValueError(f"there is a column {new!r} already: give another name")
    return schema.types[schema.names.index(old)]


def _check_fingerprints(ds: Dataset, old: str, new: str | None = None) -> None:
    found = _check_columns(ds, old, new)
    if found not in (None, pa.null(), pa.uint64(), pa.int64()):
        raise ValueError(f"fingerprints are uint64, or int64 in two's complement, not {found}")
