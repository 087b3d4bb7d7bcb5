"""The functions of ``simhash-py`` against their definitions, bit by bit and pair by pair."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from conftest import SEED
from simshard.compat import simhash_py as compat


def near(count: int) -> list[int]:
    """Fingerprints of which many are near each other."""
    chance = random.Random(SEED)
    hashes = [chance.getrandbits(64) for _ in range(count // 4)]
    while len(hashes) < count:
        flipped = sum(1 << bit for bit in chance.sample(range(64), chance.randrange(5)))
        hashes.append(chance.choice(hashes) ^ flipped)
    return hashes


def differing(a: int, b: int) -> int:
    return sum((a >> bit ^ b >> bit) & 1 for bit in range(64))


def test_hashes_and_windows_are_those_of_the_package() -> None:
    assert compat.unsigned_hash(b"") == 0xD41D8CD98F00B204
    assert compat.unsigned_hash(b"abc") == 0x900150983CD24FB0
    assert list(compat.shingle(iter("abcde"))) == [list("abcd"), list("bcde")]
    assert list(compat.shingle("ab", 3)) == []
    with pytest.raises(ValueError, match="not positive"):
        list(compat.shingle("ab", 0))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 101, 70_000])
def test_a_bit_is_set_where_more_than_half_have_it(count: int) -> None:
    chance = random.Random(SEED + count)
    hashes = [chance.getrandbits(64) & chance.getrandbits(64) | chance.getrandbits(64) for _ in range(count)]
    expected = 0
    for bit in range(64):
        ones = sum(value >> bit & 1 for value in hashes)
        expected |= int(2 * ones > count) << bit
    assert compat.compute(iter(hashes)) == expected
    # Halves are none.
    assert compat.compute([0, 2**64 - 1]) == 0


def test_pairs_and_clusters_are_all_that_there_are() -> None:
    hashes = near(400)
    hashes.append(hashes[0])
    pairs = {(min(a, b), max(a, b)) for a, b in combinations(set(hashes), 2) if differing(a, b) <= 3}
    found = compat.find_all(iter(hashes), 6, 3)
    assert len(found) == len(pairs) > 50
    assert set(found) == pairs
    clusters = compat.find_clusters(hashes, 6, 3)
    members = [value for cluster in clusters for value in cluster]
    assert len(members) == len(set(members))
    cluster_of = {value: number for number, cluster in enumerate(clusters) for value in cluster}
    assert set(cluster_of) == {value for pair in pairs for value in pair}
    assert all(cluster_of[a] == cluster_of[b] for a, b in pairs)
    assert compat.num_differing_bits(2**64 - 1, 1) == 63


def test_a_corpus_finds_each_match_once() -> None:
    hashes = near(300)
    corpus = compat.Corpus(5, 3)
    corpus.insert_bulk(iter(hashes[1:]))
    corpus.insert(hashes[0])
    assert corpus.differing_bits == 3
    queries = [*hashes[:50], 12345]
    expected = [{value for value in hashes if differing(value, query) <= 3} for query in queries]
    found = corpus.find_all_bulk(iter(queries))
    assert [set(matches) for matches in found] == expected
    assert all(len(matches) == len(set(matches)) for matches in found)
    assert [corpus.find_all(query) for query in queries] == found
    firsts = [matches[0] if matches else 0 for matches in found]
    assert corpus.find_first_bulk(queries) == firsts == [corpus.find_first(query) for query in queries]
    corpus.remove_bulk(hashes)
    corpus.remove(hashes[0])
    assert corpus.find_all_bulk(queries) == [[] for _ in queries]


@pytest.mark.parametrize("wrong", [-1, 2**64, 1.5, "7"])
def test_what_is_no_fingerprint_is_refused(wrong: object) -> None:
    corpus = compat.Corpus(5, 3)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        corpus.insert_bulk([1, wrong])  # type: ignore[list-item]
    with pytest.raises((TypeError, ValueError, OverflowError)):
        compat.compute([1, wrong])  # type: ignore[list-item]
