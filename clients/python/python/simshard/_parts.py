"""How the pairs of a set part, so that many processes find them, each some of them.

A pair within ``distance`` bits agrees in at least one of ``distance + 1`` blocks. The first one in which it agrees is
its *lead*. Fingerprints that agree in a block go to one part, with the number of the block. The part finds the pairs
whose lead that block is, so no two parts find the same pair.

Where very many fingerprints agree in a block, their other bits are cut into ``distance + 1`` blocks again: the *second
lead*. So one heavy prefix keeps more than one process busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simshard import _simshard
from simshard._inputs import Fingerprints

BITS = 64

Keys = npt.NDArray[np.int64]


class Lead(NamedTuple):
    """The blocks in which the pairs of a part agree, and those before them in which they do not."""

    agree: int
    differ: tuple[int, ...]

    def of_pairs(self, pairs: Fingerprints) -> npt.NDArray[np.bool_]:
        """Return which pairs have this lead."""
        difference = pairs[:, 0] ^ pairs[:, 1]
        has_lead: npt.NDArray[np.bool_] = (difference & np.uint64(self.agree)) == 0
        for block in self.differ:
            has_lead &= (difference & np.uint64(block)) != 0
        return has_lead


class Leads:
    """The leads of a distance: those with one block first, then those with two.

    A set that ``is_whole`` is one part: its only lead has no block.
    """

    def __init__(self, distance: int, is_whole: bool = False) -> None:
        if not 0 <= distance < BITS:
            raise ValueError(f"a distance is from 0 to {BITS - 1}, not {distance}")
        self.distance = distance
        every, none = (1 << BITS) - 1, Lead(0, ())
        self.first = [none] if is_whole else list(_leads(every, distance + 1, none))
        self.second = [second for first in self.first for second in _leads(every & ~first.agree, distance + 1, first)]

    def lead(self, number: int) -> Lead:
        """Return a lead by its number."""
        return self.first[number] if number < len(self.first) else self.second[number - len(self.first)]

    def seconds_of(self, first: int) -> range:
        """Return the numbers of the leads with two blocks that begin with one."""
        start = len(self.first) + first * (self.distance + 1)
        return range(start, start + self.distance + 1)

    def keys(self, fingerprints: Fingerprints, number: int) -> Keys:
        """Return for each fingerprint a key that those have in common which agree in a lead's blocks."""
        kept = fingerprints & np.uint64(self.lead(number).agree)
        return _mixed(kept + np.uint64(number)).view(np.int64)

    def rows(self, fingerprints: Fingerprints, heavy: Keys) -> Iterator[tuple[int, Keys, Fingerprints]]:
        """Yield the rows of a set: the number of a lead, the keys, and the fingerprints. ``heavy`` is sorted."""
        for first in range(len(self.first)):
            keys = self.keys(fingerprints, first)
            is_heavy = np.isin(keys, heavy)
            yield first, keys[~is_heavy], fingerprints[~is_heavy]
            some = fingerprints[is_heavy]
            if len(some):
                for second in self.seconds_of(first):
                    yield second, self.keys(some, second), some

    def pairs(self, fingerprints: Fingerprints, number: int) -> Fingerprints:
        """Return the pairs of some fingerprints that have a lead, each once, the smaller one first."""
        pairs = _simshard.find_pairs(fingerprints, self.distance, None)
        return pairs[self.lead(number).of_pairs(pairs)]

    def links(self, fingerprints: Fingerprints) -> Fingerprints:
        """Return fewer pairs that connect what is near among some fingerprints."""
        distinct = np.unique(fingerprints)
        firsts = distinct[_simshard.find_clusters(distinct, self.distance, None)]
        is_linked = firsts != distinct
        return np.stack([firsts[is_linked], distinct[is_linked]], axis=1)


def _leads(bits: int, count: int, before: Lead) -> Iterator[Lead]:
    """Cut some bits into blocks, and yield what each adds to a lead."""
    places = [place for place in reversed(range(BITS)) if bits >> place & 1]
    blocks = [sum(1 << int(place) for place in some) for some in np.array_split(np.array(places), count)]
    for number, block in enumerate(blocks):
        yield Lead(before.agree | block, (*before.differ, *blocks[:number]))


def _mixed(numbers: Fingerprints) -> Fingerprints:
    """Return numbers that look random: the finalizer of SplitMix64."""
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)


def forest(links: Iterable[Fingerprints]) -> Fingerprints:
    """Return for what links connect one link each, to the smallest of what is connected."""
    chunks = [chunk for chunk in links if len(chunk)]
    if not chunks:
        return np.empty((0, 2), np.uint64)
    members, places = np.unique(np.concatenate(chunks), return_inverse=True)
    ends = places.reshape(-1, 2)
    roots = np.arange(len(members))
    while True:
        # The smaller root of both ends becomes the root of the greater one, and all skip what lies between.
        one, other = roots[ends[:, 0]], roots[ends[:, 1]]
        is_open = one != other
        if not is_open.any():
            break
        ends = ends[is_open]
        low, high = np.minimum(one, other)[is_open], np.maximum(one, other)[is_open]
        np.minimum.at(roots, high, low)
        while not np.array_equal(roots, roots[roots]):
            roots = roots[roots]
    is_linked = roots != np.arange(len(members))
    return np.stack([members[roots[is_linked]], members[is_linked]], axis=1)
