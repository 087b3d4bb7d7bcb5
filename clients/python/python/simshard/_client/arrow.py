"""Tables of Arrow data as input, and matches as Arrow data. Needs pyarrow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np

from simshard._client.columns import Batch, cut
from simshard._client.messages import checked
from simshard._client.settings import Settings
from simshard._inputs import import_pyarrow, to_fingerprints


class Table:
    """The columns of a table: anything with the Arrow PyCapsule interface, such as one of pyarrow or polars."""

    def __init__(self, table: Any, text: str | None, fingerprint: str | None, id: str | None = None) -> None:
        if (text is None) == (fingerprint is None):
            raise TypeError("name the column of texts or that of fingerprints, one of the two")
        self._text, self._fingerprint, self._id = text, fingerprint, id
        reader = _reader(table)
        names = reader.schema.names
        for name in (text, fingerprint, id):
            if name is not None and name not in names:
                raise ValueError(f"the table has no column {name!r}, but {', '.join(names)}")
        self._rows: Any = self._checked(reader)
        if _is_in_memory(table):
            # Nothing is sent of a table that has an error anywhere.
            self._rows = list(self._rows)

    def batches(self, settings: Settings) -> Iterator[Batch]:
        """Yield the batches of all rows."""
        first = 0
        for rows in self._rows:
            for start in range(0, rows.num_rows, settings.batch_size):
                part = rows.slice(start, settings.batch_size)
                ids = [] if self._id is None else part.column(self._id).to_pylist()
                if self._text is not None:
                    yield from cut(part.column(self._text).to_pylist(), ids, first + start, settings)
                else:
                    yield from cut(to_fingerprints(part.column(self._fingerprint)), ids, first + start, settings)
            first += rows.num_rows

    def _checked(self, reader: Any) -> Iterator[Any]:
        """Yield the rows, once their columns are what they have to be."""
        first = 0
        for rows in reader:
            if self._fingerprint is not None:
                to_fingerprints(rows.column(self._fingerprint), first)
            for name, what in ((self._text, "text"), (self._id, "id")):
                if name is not None:
                    _check_strings(rows.column(name), what, first)
            yield rows
            first += rows.num_rows

    async def batches_async(self, settings: Settings) -> AsyncIterator[Batch]:
        """Yield the batches of all rows."""
        for batch in self.batches(settings):
            yield batch


def _is_in_memory(table: Any) -> bool:
    """Return whether all rows of a table are there already: of pyarrow, polars or pandas."""
    pa = import_pyarrow()
    return isinstance(table, pa.Table | pa.RecordBatch) or hasattr(table, "__dataframe__")


def _check_strings(column: Any, what: str, first: int) -> None:
    pa = import_pyarrow()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_of(kind) for is_of in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        raise ValueError(f"{what}s are strings, not {column.type}")
    if column.null_count:
        place = first + column.is_null().index(True).as_py()
        raise ValueError(f"{what} {place} is null: drop such rows first")


def _reader(table: Any) -> Any:
    pa = import_pyarrow()
    if hasattr(table, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(table)
    if hasattr(table, "__arrow_c_array__"):
        rows = pa.record_batch(table)
        return pa.RecordBatchReader.from_batches(rows.schema, [rows])
    raise TypeError(f"a table has the Arrow PyCapsule interface, and {type(table).__name__} does not")


def match_schema() -> Any:
    """Return the columns of matches."""
    pa = import_pyarrow()
    number, ids = pa.uint64(), pa.list_(pa.string())
    return pa.schema({"query": number, "fingerprint": number, "distance": pa.uint8(), "ids": ids})


def match_rows(answer: Any, batch: Batch) -> Any:
    """Return the matches of an answer as a record batch."""
    pa = import_pyarrow()
    columns = checked(answer, batch)
    positions = np.arange(batch.first, batch.first + len(batch), dtype=np.uint64)
    queries = np.repeat(positions, np.array(columns.match_counts, np.int64))
    ends = np.cumsum(np.array([0, *columns.id_counts], np.int32), dtype=np.int32)
    ids = pa.ListArray.from_arrays(ends, pa.array(columns.ids, pa.string()))
    fingerprints = np.fromiter(columns.fingerprints, np.uint64, len(columns.fingerprints))
    distances = np.fromiter(columns.distances, np.uint8, len(columns.distances))
    return pa.RecordBatch.from_arrays([queries, fingerprints, distances, ids], schema=match_schema())
