"""Requests for streams of batches, and what their answers say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from simshard._client.columns import Batch
from simshard._client.settings import Settings
from simshard._inputs import to_count
from simshard.errors import MalformedAnswer
from simshard.v1 import corpus_service_pb2 as pb

Result = TypeVar("Result")


class Acknowledged(NamedTuple):
    """Documents whose change is durable."""

    documents: int
    """How many there are."""
    changed: int
    """How many were absent before an insert, or present before a removal. Fewer may be counted if sent twice."""


class Match(NamedTuple):
    """A stored fingerprint near a query."""

    query: int
    """The position of the query in the input."""
    fingerprint: int
    """The stored fingerprint."""
    distance: int
    """In how many bits the two differ."""
    ids: list[str]
    """The ids of the documents that have it, ascending. A document without an id lists an empty one."""


@dataclass(frozen=True)
class Search:
    """How to search."""

    max_distance: int | None = None
    """The largest distance of a match; without it that of the corpus."""
    max_ids: int = 0
    """At most this many ids of a match; 0 means all."""
    limit: int = 0
    """At most this many matches of a query, the nearest; 0 means all."""

    def __post_init__(self) -> None:
        for name in ("max_distance", "max_ids", "limit"):
            if getattr(self, name) is not None:
                to_count(getattr(self, name), name)


@dataclass(frozen=True)
class Method(Generic[Result]):
    """A method that answers a stream of batches, each on its own."""

    name: str
    template: Any
    """The request of a batch, without its columns."""
    envelope: Callable[..., Any]
    """Makes a message of the stream."""
    read: Callable[[Any, Batch], Result]
    """Reads the answer to a batch."""

    def message(self, batch: Batch, sequence: int) -> Any:
        """Return the message that sends a batch."""
        message = self.envelope(sequence=sequence, batch=self.template)
        if isinstance(batch.keys, list):
            message.batch.texts.extend(batch.keys)
        else:
            message.batch.fingerprints.extend(batch.keys.tolist())
        if batch.ids:
            message.batch.ids.extend(batch.ids)
        return message


def inserting(corpus: str, settings: Settings) -> Method[Acknowledged]:
    """Return the method that inserts documents."""
    template = pb.InsertRequest(corpus=corpus, recipe=settings.recipe)

    def read(answer: Any, batch: Batch) -> Acknowledged:
        return Acknowledged(len(batch), answer.inserted_count)

    return Method("InsertStream", template, pb.InsertStreamRequest, read)


def removing(corpus: str, settings: Settings) -> Method[Acknowledged]:
    """Return the method that removes documents."""
    template = pb.RemoveRequest(corpus=corpus, recipe=settings.recipe)

    def read(answer: Any, batch: Batch) -> Acknowledged:
        return Acknowledged(len(batch), answer.removed_count)

    return Method("RemoveStream", template, pb.RemoveStreamRequest, read)


def finding(corpus: str, settings: Settings, search: Search, read: Callable[[Any, Batch], Result]) -> Method[Result]:
    """Return the method that finds all matches."""
    template = pb.FindAllRequest(
        corpus=corpus,
        recipe=settings.recipe,
        max_distance=search.max_distance,
        max_ids=search.max_ids,
        limit=search.limit,
    )
    return Method("FindAllStream", template, pb.FindAllStreamRequest, read)


def finding_first(
    corpus: str, settings: Settings, search: Search, read: Callable[[Any, Batch], Result]
) -> Method[Result]:
    """Return the method that finds the nearest match."""
    template = pb.FindFirstRequest(
        corpus=corpus, recipe=settings.recipe, max_distance=search.max_distance, max_ids=search.max_ids
    )
    return Method("FindFirstStream", template, pb.FindFirstStreamRequest, read)


def checked(answer: Any, batch: Batch) -> Any:
    """Return the columns of matches, once their lengths agree."""
    columns = answer.matches
    count = sum(columns.match_counts)
    lengths = (len(columns.fingerprints), len(columns.distances), len(columns.id_counts))
    if len(columns.match_counts) != len(batch) or lengths != (count, count, count):
        raise MalformedAnswer("the columns of the answer do not have the lengths that they say")
    if sum(columns.id_counts) != len(columns.ids):
        raise MalformedAnswer("the answer does not have the ids that it says")
    return columns


def matches(answer: Any, batch: Batch) -> Iterable[Match]:
    """Return the matches of an answer, by query."""
    return _rows(checked(answer, batch), batch.first)


def _rows(columns: Any, first: int) -> Iterator[Match]:
    found = zip(columns.fingerprints, columns.distances, columns.id_counts, strict=True)
    ids, begin = list(columns.ids), 0
    for query, match_count in enumerate(columns.match_counts, first):
        for _ in range(match_count):
            fingerprint, distance, id_count = next(found)
            yield Match(query, fingerprint, distance, ids[begin : begin + id_count])
            begin += id_count
