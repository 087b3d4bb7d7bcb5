"""What the tasks of an engine do with the parts of a set, in batches of Arrow data.

Fingerprints are of Arrow's type ``int64`` here, in two's complement: Spark has no numbers without a sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from simshard import _arrow
from simshard._inputs import Fingerprints
from simshard._parts import Keys, Leads, forest
from simshard._texts import fingerprints_of

HEAVY_ROWS = 1_000_000
"""A part with more fingerprints is cut further. A whole set with fewer is one part, as its parts would take longer."""

ROWS_A_TASK = 2_000_000
LINKS_A_TASK = 4_000_000

Batches = Iterable[pa.RecordBatch]


def tasks_of(count: int, most: int) -> int:
    """Return how many tasks have ``count`` rows, each no more than ``most``."""
    return -(-count // most)


def add_fingerprints(batches: Batches, text: str, recipe: str, into: str) -> Iterator[pa.RecordBatch]:
    """Add the fingerprints of a column of texts; null where a text is null or has none."""
    for batch in batches:
        columns = [*batch.columns, _fingerprints_of(batch.column(text), recipe)]
        yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, into])


def keys_of(batches: Batches, leads: Leads) -> Iterator[Keys]:
    """Yield the keys of all leads with one block, as often as fingerprints have them."""
    for batch in batches:
        fingerprints = numbers(batch, "fingerprint")
        for number in range(len(leads.first)):
            yield leads.keys(fingerprints, number)


def rows_of(batches: Batches, leads: Leads, heavy: Keys) -> Iterator[pa.RecordBatch]:
    """Yield the rows of parts. Those that agree in ``lead`` and ``key`` are to come to one task."""
    for batch in batches:
        for number, keys, some in leads.rows(numbers(batch, "fingerprint"), heavy):
            leads_of_rows = np.full(len(some), number, np.int16)
            yield pa.record_batch({"lead": leads_of_rows, "key": keys, "fingerprint": some.view(np.int64)})


def pairs_of(batches: Batches, leads: Leads) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of a task's parts as columns ``a`` and ``b``."""
    for number, some in _by_lead(batches):
        yield _two_columns(leads.pairs(some, number))


def links_of(batches: Batches, leads: Leads) -> Iterator[pa.RecordBatch]:
    """Yield fewer pairs, which connect what is near in a task's parts."""
    yield _two_columns(forest(leads.links(some) for _, some in _by_lead(batches)))


def merged(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield for what links connect one link each: ``a`` is the smallest of what ``b`` is connected to."""
    yield _two_columns(forest(np.stack([numbers(batch, "a"), numbers(batch, "b")], axis=1) for batch in batches))


def numbers(batch: pa.RecordBatch, column: str) -> Fingerprints:
    """Return a column of fingerprints without nulls."""
    array: Fingerprints = batch.column(column).to_numpy().view(np.uint64)
    return array


def _by_lead(batches: Batches) -> Iterator[tuple[int, Fingerprints]]:
    """Yield the fingerprints of a task, lead by lead. Parts of one lead are searched together."""
    chunks: dict[int, list[Fingerprints]] = {}
    for batch in batches:
        leads, fingerprints = batch.column("lead").to_numpy(), numbers(batch, "fingerprint")
        for number in np.unique(leads).tolist():
            chunks.setdefault(number, []).append(fingerprints[leads == number])
    for number in sorted(chunks):
        yield number, np.concatenate(chunks.pop(number))


def _two_columns(pairs: Fingerprints) -> pa.RecordBatch:
    columns = np.ascontiguousarray(pairs.T).view(np.int64)
    return pa.record_batch({"a": columns[0], "b": columns[1]})


def _fingerprints_of(column: Any, recipe: str) -> pa.Array:
    texts = _arrow.texts(column)
    fingerprints, without = fingerprints_of(texts, recipe)
    has_none = np.zeros(len(texts), np.bool_)
    has_none[without] = True
    return pa.array(fingerprints.view(np.int64), mask=has_none)
