"""A corpus in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simshard import _simshard
from simshard._inputs import Fingerprints, to_blocks, to_distance, to_fingerprint, to_fingerprints


class Match(NamedTuple):
    """A stored fingerprint near a query."""

    fingerprint: int
    distance: int


class Matches(NamedTuple):
    """The matches of many queries as columns of one length, ordered by query, distance and fingerprint."""

    query: npt.NDArray[np.uint64]
    """The place of the query."""
    fingerprint: Fingerprints
    """The stored fingerprint."""
    distance: npt.NDArray[np.uint8]
    """In how many bits they differ."""


class Corpus:
    """Distinct fingerprints, found up to a distance.

    More ``blocks`` make more tables: they take memory, and leave fewer candidates. 5 blocks suit distance 3, and 8
    blocks distance 6.
    """

    __slots__ = ("_engine",)

    def __init__(self, blocks: int = 5, distance: int = 3) -> None:
        self._engine = _simshard.Corpus(to_blocks(blocks), to_distance(distance))

    @property
    def blocks(self) -> int:
        """How many blocks a fingerprint is cut into."""
        return self._engine.layout()[0]

    @property
    def distance(self) -> int:
        """Up to how many bits a match differs."""
        return self._engine.layout()[1]

    @property
    def nbytes(self) -> int:
        """How much memory the tables take."""
        return self._engine.memory()

    def __len__(self) -> int:
        return len(self._engine)

    def __contains__(self, fingerprint: object) -> bool:
        return self._engine.contains(to_fingerprint(fingerprint))

    def __iter__(self) -> Iterator[int]:
        return iter(self.to_numpy().tolist())

    def __repr__(self) -> str:
        return f"Corpus(blocks={self.blocks}, distance={self.distance}) of {len(self)} fingerprints"

    def to_numpy(self) -> Fingerprints:
        """Return the fingerprints, in no order."""
        return self._engine.to_array()

    def insert(self, fingerprint: int) -> bool:
        """Add a fingerprint; return whether it was absent."""
        return self._engine.insert(to_fingerprint(fingerprint))

    def insert_bulk(self, fingerprints: Any) -> int:
        """Add fingerprints; return how many were absent. A signal may end it early, with some of them added."""
        return self._engine.insert_bulk(to_fingerprints(fingerprints))

    def remove(self, fingerprint: int) -> bool:
        """Take a fingerprint out; return whether it was present."""
        return self._engine.remove(to_fingerprint(fingerprint))

    def remove_bulk(self, fingerprints: Any) -> int:
        """Take fingerprints out; return how many were present. A signal may end it early, with some of them removed."""
        return self._engine.remove_bulk(to_fingerprints(fingerprints))

    def find_first(self, query: int) -> Match | None:
        """Return the nearest match: the smallest distance, then the smallest fingerprint."""
        found = self._engine.find_first(to_fingerprint(query))
        return None if found is None else Match(*found)

    def find_all(self, query: int) -> list[Match]:
        """Return all matches, each once, by distance, then fingerprint."""
        return [Match(*found) for found in self._engine.find_all(to_fingerprint(query))]

    def find_first_bulk(self, queries: Any) -> Matches:
        """Return the nearest match of each query that has one."""
        return Matches(*self._engine.find_first_bulk(to_fingerprints(queries)))

    def find_all_bulk(self, queries: Any) -> Matches:
        """Return all matches of each query."""
        return Matches(*self._engine.find_all_bulk(to_fingerprints(queries)))
