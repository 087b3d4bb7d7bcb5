"""A client of a Simshard cluster.

Streams have windows: a few batches are sent before the first is answered, and the input is read no further. Batches
without an answer are sent again when the connection breaks.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

from simshard._client import corpora, threads
from simshard._client.arrow import Table, match_rows, match_schema
from simshard._client.columns import Columns, Source
from simshard._client.corpora import CorpusDescription, CorpusInfo, NodeInfo
from simshard._client.leaving import Stream
from simshard._client.messages import (
    Acknowledged,
    Match,
    Method,
    Result,
    Search,
    finding,
    finding_first,
    inserting,
    matches,
    removing,
)
from simshard._client.settings import File, Settings, access_of
from simshard._inputs import import_pyarrow, to_name

__all__ = ["Acknowledged", "Client", "Corpus", "CorpusDescription", "CorpusInfo", "Match", "NodeInfo"]


class Client:
    """A client of the router at an address such as ``127.0.0.1:7460``, which is connected to when first needed.

    Requests have a ``timeout`` in seconds. Those that may be repeated without harm are made again where that may help.
    Streams send batches again until nothing has been answered for ``patience`` seconds. At most ``window`` batches are
    sent before the first is answered. A batch has at most ``batch_size`` elements and about ``batch_bytes`` bytes.
    Requests about corpora of another ``recipe``, if one is given, are refused.

    An address such as ``https://router:7460`` has TLS. ``ca`` is a PEM file of the authorities that signed the
    certificate of the router; without it, those that gRPC knows are trusted. Where the router asks for certificates,
    ``cert`` and ``key`` are PEM files of the client's own, and of its private key. Where it asks for a ``token``, give
    the text of that; without TLS, it is sent to this machine only.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout: float = 30.0,
        patience: float = 30.0,
        window: int = 8,
        batch_size: int = 4096,
        batch_bytes: int = 4 << 20,
        recipe: str = "",
        ca: File | None = None,
        cert: File | None = None,
        key: File | None = None,
        token: str | None = None,
    ) -> None:
        self._settings = Settings(address, timeout, patience, window, batch_size, batch_bytes, recipe)
        self._connection = threads.Connection(address, access_of(address, ca, cert, key, token))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Streams that are open end."""
        self._connection.close()

    def corpus(self, name: str, *, timeout: float | None = None, patience: float | None = None) -> Corpus:
        """Return a corpus, without asking whether it is there. The times are those of the client unless given."""
        timeout = self._settings.timeout if timeout is None else timeout
        patience = self._settings.patience if patience is None else patience
        return Corpus(self._connection, name, replace(self._settings, timeout=timeout, patience=patience))

    def create_corpus(self, name: str, *, blocks: int = 5, distance: int = 3, recipe: str = "words-v3") -> CorpusInfo:
        """Create a corpus. More ``blocks`` make more tables: they take memory, and leave fewer candidates."""
        steps = corpora.create_corpus(self._settings, name, blocks, distance, recipe)
        return threads.run(self._connection, self._settings.address, steps)

    def delete_corpus(self, name: str) -> None:
        """Delete a corpus and all its documents."""
        threads.run(self._connection, self._settings.address, corpora.delete_corpus(self._settings, name))

    def list_corpora(self) -> list[CorpusInfo]:
        """Return all corpora, by name."""
        steps = corpora.list_corpora(self._settings, time.monotonic)
        return threads.run(self._connection, self._settings.address, steps)

    def describe_corpus(self, name: str) -> CorpusDescription:
        """Return what a corpus is, how much it has, and what each node holds of it."""
        steps = corpora.describe_corpus(self._settings, time.monotonic, name)
        return threads.run(self._connection, self._settings.address, steps)


class Corpus:
    """A corpus of a cluster. A ``with`` block ends the streams that are still open when it is left.

    Reading on is an error then.

    Columns are any iterables, read and checked as batches need them. Fingerprints are numbers of 64 bits without a
    sign, or a NumPy array of ``uint64``. Those that are in memory are checked before anything is sent.
    """

    def __init__(self, connection: threads.Connection, name: str, settings: Settings) -> None:
        self.name = to_name(name, "the name of a corpus")
        self._connection = connection
        self._settings = settings
        self._streams: weakref.WeakSet[Stream[Any]] = weakref.WeakSet()

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in list(self._streams):
            stream.leave()

    def describe(self) -> CorpusDescription:
        """Return what the corpus is, how much it has, and what each node holds of it."""
        steps = corpora.describe_corpus(self._settings, time.monotonic, self.name)
        return threads.run(self._connection, self._settings.address, steps)

    def insert(
        self,
        *,
        ids: Iterable[str] | None = None,
        texts: Iterable[str] | None = None,
        fingerprints: Any = None,
        acknowledged: Callable[[Acknowledged], object] | None = None,
    ) -> Acknowledged:
        """Insert documents: one text or fingerprint each, and one id each or none. Return how many, and how many new.

        ``acknowledged`` is called with each batch, in order, once it is durable. Documents of other batches may be
        inserted or not if this raises: insert them again. To insert again changes nothing.
        """
        columns = Columns(texts, fingerprints, ids)
        return self._change(inserting(self.name, self._settings), columns, acknowledged)

    def insert_arrow(
        self,
        table: Any,
        *,
        text: str | None = None,
        fingerprint: str | None = None,
        id: str | None = None,
        acknowledged: Callable[[Acknowledged], object] | None = None,
    ) -> Acknowledged:
        """Insert the rows of a table with the Arrow PyCapsule interface, by the names of its columns."""
        columns = Table(table, text, fingerprint, id)
        return self._change(inserting(self.name, self._settings), columns, acknowledged)

    def remove(
        self,
        *,
        ids: Iterable[str] | None = None,
        texts: Iterable[str] | None = None,
        fingerprints: Any = None,
        acknowledged: Callable[[Acknowledged], object] | None = None,
    ) -> Acknowledged:
        """Remove documents, with the rules of ``insert``. Return how many were given, and how many there were."""
        columns = Columns(texts, fingerprints, ids)
        return self._change(removing(self.name, self._settings), columns, acknowledged)

    def find(
        self,
        *,
        texts: Iterable[str] | None = None,
        fingerprints: Any = None,
        max_distance: int | None = None,
        limit: int = 0,
        max_ids: int = 0,
    ) -> Generator[Match, None, None]:
        """Find all matches of each query; yield them by query, distance and fingerprint.

        ``max_distance`` is that of the corpus unless given. ``limit`` is how many matches of a query are listed, the
        nearest, and ``max_ids`` how many ids of a match; 0 means all.
        """
        search = Search(max_distance, max_ids, limit)
        method = finding(self.name, self._settings, search, matches)
        return self._open(_flat(self._stream(method, Columns(texts, fingerprints))))

    def find_first(
        self,
        *,
        texts: Iterable[str] | None = None,
        fingerprints: Any = None,
        max_distance: int | None = None,
        max_ids: int = 0,
    ) -> Generator[Match, None, None]:
        """Find the nearest match of each query that has one: the smallest distance, then the smallest fingerprint."""
        method = finding_first(self.name, self._settings, Search(max_distance, max_ids), matches)
        return self._open(_flat(self._stream(method, Columns(texts, fingerprints))))

    def find_arrow(
        self,
        table: Any,
        *,
        text: str | None = None,
        fingerprint: str | None = None,
        max_distance: int | None = None,
        limit: int = 0,
        max_ids: int = 0,
    ) -> Any:
        """Find all matches of the rows of a table, by the name of its column.

        The answer is a ``pyarrow.RecordBatchReader`` of ``query``, ``fingerprint``, ``distance`` and ``ids``.
        """
        method = finding(self.name, self._settings, Search(max_distance, max_ids, limit), match_rows)
        rows = self._open(self._stream(method, Table(table, text, fingerprint)))
        return import_pyarrow().RecordBatchReader.from_batches(match_schema(), rows)

    def _stream(self, method: Method[Result], source: Source) -> Generator[Result, None, None]:
        return threads.stream(self._connection, self._settings, method, source)

    def _change(
        self,
        method: Method[Acknowledged],
        source: Source,
        acknowledged: Callable[[Acknowledged], object] | None,
    ) -> Acknowledged:
        documents = changed = 0
        with closing(self._stream(method, source)) as stream:
            for batch in stream:
                documents, changed = documents + batch.documents, changed + batch.changed
                if acknowledged is not None:
                    acknowledged(batch)
        return Acknowledged(documents, changed)

    def _open(self, stream: Generator[Result, None, None]) -> Generator[Result, None, None]:
        opened = Stream(stream)
        self._streams.add(opened)
        return opened


def _flat(stream: Generator[Iterable[Match], None, None]) -> Generator[Match, None, None]:
    with closing(stream) as parts:
        for part in parts:
            yield from part
