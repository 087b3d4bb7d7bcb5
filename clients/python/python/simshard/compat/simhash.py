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
from simshard._inputs import to_count
from simshard._texts import fingerprint

HashFunction = Callable[[bytes], bytes | int]

_LETTERS = r"[\w\u4e00-\u9fcc]+"
_RECIPE = "leonsim-4"
_WIDTH = 4
_BATCH = 200
"""How many features are summed up at once, as in the package: so the same numbers that are no integers are rounded."""
_LARGE_WEIGHT = 50
"""A feature of more than this weight is summed up alone."""
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
        if f < 8 or f % 8:
            raise ValueError(f"f must be 8 or another multiple of 8, not {f}")
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

        A string after a pair has the weight of that pair. No weight is below 0.
        """
        sums = np.zeros(self.f)
        total: float = 0
        batch: list[tuple[bytes, float]] = []
        for hashed, weight in self._weighted(features):
            total += weight
            if weight > _LARGE_WEIGHT or not isinstance(weight, int):
                sums += _weights_of_bits([(hashed, weight)])
                continue
            batch.append((hashed, weight))
            if len(batch) == _BATCH:
                sums += _weights_of_bits(batch)
                batch = []
        if batch:
            sums += _weights_of_bits(batch)
        self.value = int.from_bytes(np.packbits(sums > total / 2).tobytes(), "big")

    def _weighted(self, features: Iterable[Any]) -> Iterator[tuple[bytes, float]]:
        weight: float = 1
        for feature in features.items() if isinstance(features, Mapping) else features:
            if not isinstance(feature, str):
                feature, weight = feature
                if weight < 0:
                    raise ValueError(f"the weight of {feature!r} is {weight}: it must not be below 0")
            yield self._hash(feature), weight

    def _hash(self, feature: str) -> bytes:
        size = self.f // 8
        hashed = self.hashfunc(feature.encode())
        if isinstance(hashed, Integral):
            return (int(hashed) & ((1 << self.f) - 1)).to_bytes(size, "big")
        octets = bytes(hashed)
        if len(octets) < size:
            raise ValueError(f"f is {self.f}, and the hash function gives {8 * len(octets)} bits: give another one")
        return octets[-size:]

    def distance(self, another: Simhash) -> int:
        """Return in how many bits two fingerprints of the same length differ."""
        _check(another)
        if self.f != another.f:
            raise ValueError(f"one has {self.f} bits, the other {another.f}")
        return ((self.value ^ another.value) & ((1 << self.f) - 1)).bit_count()


def _weights_of_bits(batch: list[tuple[bytes, float]]) -> Any:
    """Return for each bit the weights of the hashes that have it, summed up."""
    octets = np.frombuffer(b"".join(hashed for hashed, _ in batch), np.uint8).reshape(len(batch), -1)
    return np.array([weight for _, weight in batch]) @ np.unpackbits(octets, axis=1)


def _check(simhash: Any) -> None:
    if not isinstance(getattr(simhash, "value", None), int) or not hasattr(simhash, "f"):
        raise TypeError(f"give a Simhash, not a value of type {type(simhash).__name__}")


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
        self.k = to_count(k, "k")
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
        _check(simhash)
        if simhash.f != self.f:
            raise ValueError(f"the index has {self.f} bits, the fingerprint {simhash.f}")
        return simhash.value & ((1 << self.f) - 1)
