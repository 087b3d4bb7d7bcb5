"""The interface of ``simhash-py``: the same values, and each match once.

Replace ``import simhash`` by ``from simshard.compat import simhash_py as simhash``. A corpus finds the nearest match
first, where the package gives any, and each match once, where it gives one a table.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np

from simshard._corpus import Corpus as _Corpus
from simshard._inputs import to_fingerprints
from simshard._pairs import find_clusters as _find_clusters
from simshard._pairs import find_pairs

__all__ = [
    "Corpus",
    "compute",
    "find_all",
    "find_clusters",
    "num_differing_bits",
    "shingle",
    "unsigned_hash",
]

_BITS = 64
_BATCH = 1 << 16

Token = TypeVar("Token")


def unsigned_hash(obj: bytes) -> int:
    """Return the first eight bytes of the MD5 of some bytes, as a number."""
    return int.from_bytes(hashlib.md5(obj, usedforsecurity=False).digest()[:8], "big")


def shingle(tokens: Iterable[Token], window: int = 4) -> Iterator[list[Token]]:
    """Yield each run of ``window`` tokens."""
    if window <= 0:
        raise ValueError("the window is not positive")
    run: deque[Token] = deque(maxlen=window)
    for token in tokens:
        run.append(token)
        if len(run) == window:
            yield list(run)


def compute(hashes: Iterable[int]) -> int:
    """Return the fingerprint of 64-bit hashes: a bit is set where it is set in more than half of them."""
    ones = np.zeros(_BITS, np.int64)
    count = 0
    rest = iter(hashes)
    while some := list(islice(rest, _BATCH)):
        octets = to_fingerprints(some, count).astype(">u8").view(np.uint8).reshape(-1, _BITS // 8)
        ones += np.unpackbits(octets, axis=1).sum(axis=0, dtype=np.int64)
        count += len(some)
    return int.from_bytes(np.packbits(2 * ones > count).tobytes(), "big")


def num_differing_bits(a: int, b: int) -> int:
    """Return in how many bits two fingerprints differ."""
    one, other = to_fingerprints([a, b]).tolist()
    return int(one ^ other).bit_count()


def find_all(hashes: Iterable[int], number_of_blocks: int, different_bits: int) -> list[tuple[int, int]]:
    """Return each pair of different fingerprints that differ in at most ``different_bits``, the smaller one first."""
    pairs = find_pairs(list(hashes), different_bits, blocks=number_of_blocks)
    return [(smaller, greater) for smaller, greater in pairs.tolist()]


def find_clusters(hashes: Iterable[int], number_of_blocks: int, different_bits: int) -> list[set[int]]:
    """Return the sets of fingerprints that are near each other, directly or through others; none of one alone."""
    distinct = list(dict.fromkeys(to_fingerprints(list(hashes)).tolist()))
    clusters: dict[int, set[int]] = {}
    for value, first in zip(distinct, _find_clusters(distinct, different_bits, blocks=number_of_blocks), strict=True):
        clusters.setdefault(int(first), set()).add(value)
    return [cluster for cluster in clusters.values() if len(cluster) > 1]


class Corpus:
    """Distinct fingerprints, found up to ``diff_bits`` away."""

    def __init__(self, num_blocks: int, diff_bits: int) -> None:
        self._corpus = _Corpus(num_blocks, diff_bits)

    @property
    def differing_bits(self) -> int:
        """Up to how many bits a match differs."""
        return self._corpus.distance

    def insert(self, h: int) -> None:
        """Add a fingerprint."""
        self._corpus.insert(h)

    def insert_bulk(self, hashes: Iterable[int]) -> None:
        """Add fingerprints."""
        self._corpus.insert_bulk(list(hashes))

    def remove(self, h: int) -> None:
        """Take a fingerprint out, if it is there."""
        self._corpus.remove(h)

    def remove_bulk(self, hashes: Iterable[int]) -> None:
        """Take fingerprints out, as far as they are there."""
        self._corpus.remove_bulk(list(hashes))

    def find_first(self, query: int) -> int:
        """Return the nearest fingerprint, or 0 if none is near."""
        found = self._corpus.find_first(query)
        return 0 if found is None else found.fingerprint

    def find_first_bulk(self, queries: Iterable[int]) -> list[int]:
        """Return the nearest fingerprint of each query, or 0 where none is near."""
        asked = list(queries)
        found = self._corpus.find_first_bulk(asked)
        answers = [0] * len(asked)
        for place, fingerprint in zip(found.query.tolist(), found.fingerprint.tolist(), strict=True):
            answers[place] = fingerprint
        return answers

    def find_all(self, query: int) -> list[int]:
        """Return all fingerprints that are near, each once, nearest first."""
        return [match.fingerprint for match in self._corpus.find_all(query)]

    def find_all_bulk(self, queries: Iterable[int]) -> list[list[int]]:
        """Return for each query all fingerprints that are near."""
        asked = list(queries)
        found = self._corpus.find_all_bulk(asked)
        answers: list[list[int]] = [[] for _ in asked]
        for place, fingerprint in zip(found.query.tolist(), found.fingerprint.tolist(), strict=True):
            answers[place].append(fingerprint)
        return answers
