"""The interface of the package ``simhash`` 2.1: the same values and results.

Replace ``from simhash import Simhash, SimhashIndex`` by ``from simshard.compat.simhash import Simhash, SimhashIndex``.
An index of 64 bits searches tables instead of buckets. Queries do not make it grow.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from simshard._corpus import Corpus
from simshard._texts import fingerprint

HashFunction = Callable[[bytes], bytes | int]

_LETTERS = r"[\w\u4e00-\u9fcc]+"
_RECIPE = "leonsim-4"
_WIDTH = 4
_BATCH = 4096
_MOST_SHARED_BLOCKS = 6


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


class Simhash:
    """A fingerprint of ``f`` bits: of a text, of features with or without weights, or a number as it is."""

    def __init__(
        self,
        value: Any,
        f: int = 64,
        reg: str | re.Pattern[str] = _LETTERS,
        hashfunc: HashFunction = _md5,
        log: logging.Logger | None = None,
    ) -> None:
        if f % 8:
            raise ValueError("f must be a multiple of 8")
        self.f = f
        self.reg = reg
        self.hashfunc = hashfunc
        self.log = log or logging.getLogger("simhash")
        self.value: int
        if isinstance(value, Simhash):
            self.value = value.value
        elif isinstance(value, str):
            self.build_by_text(value)
        elif isinstance(value, Iterable):
            self.build_by_features(value)
        elif isinstance(value, Integral):
            self.value = int(value)
        else:
            raise TypeError(f"a Simhash is made of a text, features or a number, not of {type(value)}")

    def __eq__(self, other: object) -> bool:
        return self.value == getattr(other, "value", None)

    __hash__ = None  # type: ignore[assignment]

    def build_by_text(self, content: str) -> None:
        """Take the slides of four letters as features, each as often as it occurs."""
        if self.f == 64 and self.reg == _LETTERS and self.hashfunc is _md5:
            self.value = int(fingerprint([content], recipe=_RECIPE)[0])
            return
        letters = "".join(re.findall(self.reg, content.lower()))
        slides = range(max(len(letters) - _WIDTH + 1, 1))
        self.build_by_features(Counter(letters[start : start + _WIDTH] for start in slides))

    def build_by_features(self, features: Iterable[Any]) -> None:
        """Take features: strings, pairs of a string and its weight, or a mapping from one to the other.

        A string after a pair has the weight of that pair.
        """
        sums = np.zeros(self.f)
        total: float = 0
        for hashes, weights in self._batches(features):
            total += sum(weights)
            octets = np.frombuffer(b"".join(hashes), np.uint8).reshape(len(hashes), -1)
            sums += np.asarray(weights) @ np.unpackbits(octets, axis=1)
        self.value = int.from_bytes(np.packbits(sums > total / 2).tobytes(), "big")

    def _batches(self, features: Iterable[Any]) -> Iterator[tuple[list[bytes], list[float]]]:
        hashes: list[bytes] = []
        weights: list[float] = []
        weight: float = 1
        for feature in features.items() if isinstance(features, Mapping) else features:
            if not isinstance(feature, str):
                feature, weight = feature
            hashes.append(self._hash(feature))
            weights.append(weight)
            if len(hashes) == _BATCH:
                yield hashes, weights
                hashes, weights = [], []
        if hashes:
            yield hashes, weights

    def _hash(self, feature: str) -> bytes:
        hashed = self.hashfunc(feature.encode())
        if isinstance(hashed, Integral):
            return (int(hashed) & ((1 << self.f) - 1)).to_bytes(self.f // 8, "big")
        return bytes(hashed)[-(self.f // 8) :]

    def distance(self, another: Simhash) -> int:
        """Return in how many bits two fingerprints of the same length differ."""
        if self.f != another.f:
            raise ValueError(f"one has {self.f} bits, the other {another.f}")
        return ((self.value ^ another.value) & ((1 << self.f) - 1)).bit_count()


class SimhashIndex:
    """Names of objects by their fingerprints, found up to ``k`` bits away."""

    def __init__(
        self,
        objs: Iterable[tuple[Any, Simhash]],
        f: int = 64,
        k: int = 2,
        log: logging.Logger | None = None,
    ) -> None:
        self.f = f
        self.k = k
        self.log = log or logging.getLogger("simhash")
        self._names: dict[int, set[str]] = {}
        # A match shares two blocks or more where there are few. Without a corpus, every object is looked at.
        blocks = k + 2 if k <= _MOST_SHARED_BLOCKS else k + 1
        self._corpus = Corpus(blocks, k) if f == 64 and blocks <= 64 else None
        for name, simhash in objs:
            self._take(name, simhash)
        if self._corpus is not None:
            self._corpus.insert_bulk(list(self._names))

    def add(self, obj_id: Any, simhash: Simhash) -> None:
        """Add an object."""
        value = self._take(obj_id, simhash)
        if self._corpus is not None:
            self._corpus.insert(value)

    def delete(self, obj_id: Any, simhash: Simhash) -> None:
        """Take an object out, if it is there."""
        value = self._value(simhash)
        names = self._names.get(value, set())
        names.discard(str(obj_id))
        if not names and self._names.pop(value, None) is not None and self._corpus is not None:
            self._corpus.remove(value)

    def get_near_dups(self, simhash: Simhash) -> list[str]:
        """Return the names of the objects that are near, in no order."""
        value = self._value(simhash)
        if self._corpus is not None:
            near = [match.fingerprint for match in self._corpus.find_all(value)]
        else:
            near = [other for other in self._names if (value ^ other).bit_count() <= self.k]
        return list(set().union(*(self._names[other] for other in near)))

    @property
    def offsets(self) -> list[int]:
        """The first bits of the ``k`` + 1 blocks of a key."""
        return [self.f // (self.k + 1) * block for block in range(self.k + 1)]

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """Return the blocks of a fingerprint, each with its number."""
        ends = [*self.offsets[1:], self.f]
        for number, (start, end) in enumerate(zip(self.offsets, ends, strict=True)):
            yield f"{simhash.value >> start & (2 ** (end - start) - 1):x}:{number:x}"

    def bucket_size(self) -> int:
        """Return how many different blocks the objects have."""
        objects = (Simhash(value, self.f) for value in self._names)
        return len({key for simhash in objects for key in self.get_keys(simhash)})

    def _take(self, obj_id: Any, simhash: Simhash) -> int:
        value = self._value(simhash)
        self._names.setdefault(value, set()).add(str(obj_id))
        return value

    def _value(self, simhash: Simhash) -> int:
        if simhash.f != self.f:
            raise ValueError(f"the index has {self.f} bits, the fingerprint {simhash.f}")
        return simhash.value & ((1 << self.f) - 1)
