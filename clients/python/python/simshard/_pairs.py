"""What is near in a set of fingerprints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from simshard import _simshard
from simshard._arrow import Texts
from simshard._inputs import Fingerprints, to_blocks, to_count, to_distance, to_fingerprints, to_texts
from simshard._texts import fingerprints_of, lengths_of


def find_pairs(fingerprints: Any, distance: int = 3, *, blocks: int | None = None) -> Fingerprints:
    """Return each pair of different fingerprints within the distance, once.

    The answer has two columns, the smaller fingerprint first. A fingerprint that is given more than once counts once.
    ``blocks`` chooses the tables; without it the quickest for this many are taken. The pairs are the same.
    """
    return _simshard.find_pairs(to_fingerprints(fingerprints), *_layout(distance, blocks))


def iter_pairs(
    fingerprints: Any, distance: int = 3, *, blocks: int | None = None, batch_size: int = 1_000_000
) -> Iterator[Fingerprints]:
    """Return the pairs of ``find_pairs`` in batches, each of ``batch_size`` pairs but for the last.

    Pairs are found as batches are taken, and no more than a few batches are in memory. The search ends when the
    iterator does, or when nothing refers to it.
    """
    to_count(batch_size, "batch_size", least=1, most=sys.maxsize)
    return _simshard.pair_batches(to_fingerprints(fingerprints), *_layout(distance, blocks), batch_size)


def find_clusters(fingerprints: Any, distance: int = 3, *, blocks: int | None = None) -> npt.NDArray[np.int64]:
    """Return for each fingerprint the place of the first one of its cluster.

    Two fingerprints are in one cluster if they are within the distance, directly or through others. Where the answer is
    the own place, the fingerprint is the first of its cluster, or alone.
    """
    return _simshard.find_clusters(to_fingerprints(fingerprints), *_layout(distance, blocks))


class Deduplicated(NamedTuple):
    """Which rows a set keeps without its near-duplicates. Rows are numbered from 0."""

    kept: npt.NDArray[np.int64]
    """The rows that are kept, ascending."""
    dropped: npt.NDArray[np.int64]
    """The rows that are not, ascending."""
    because_of: npt.NDArray[np.int64]
    """For each dropped row the one that is kept of its cluster."""


def dedup(
    table: Any,
    text: str | None = None,
    *,
    recipe: str = "words-v3",
    distance: int = 3,
    keep: Literal["first", "longest"] = "first",
) -> Deduplicated:
    """Keep one row of each cluster of near-duplicates.

    ``table`` is a list or column of texts, or a table whose column ``text`` has them: of pandas, or anything with the
    Arrow PyCapsule interface, as of polars, pyarrow or duckdb. Rows without a fingerprint are kept. Of rows whose texts
    are equally long, the first is kept.
    """
    if keep not in ("first", "longest"):
        raise ValueError(f"keep is 'first' or 'longest', not {keep!r}")
    texts = to_texts(table, text)
    hashed, places = _with_fingerprints(texts, recipe)
    kept = np.arange(len(texts), dtype=np.int64)
    kept[places] = places[find_clusters(hashed, distance)]
    if keep == "longest":
        order = np.lexsort((kept, -lengths_of(texts)))
        longest = np.empty(len(texts), np.int64)
        # The last one written stays: the longest, and of equals the first.
        longest[kept[order[::-1]]] = order[::-1]
        kept = longest[kept]
    rows = np.arange(len(texts), dtype=np.int64)
    is_kept = kept == rows
    return Deduplicated(rows[is_kept], rows[~is_kept], kept[~is_kept])


def _layout(distance: Any, blocks: Any) -> tuple[int, int | None]:
    return to_distance(distance), None if blocks is None else to_blocks(blocks)


def _with_fingerprints(texts: list[Any] | Texts, recipe: str) -> tuple[Fingerprints, npt.NDArray[np.int64]]:
    """Return the fingerprints that there are, and the places of their texts."""
    fingerprints, without = fingerprints_of(texts, recipe)
    has_one = np.ones(len(texts), dtype=bool)
    has_one[without] = False
    return fingerprints[has_one], np.flatnonzero(has_one)
