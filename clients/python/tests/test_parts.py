"""The parts of a set together find all pairs, each once, and all clusters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import SEED
from engines import clusters_of
from simshard import _arrow_parts, find_pairs, fingerprint
from simshard._inputs import Fingerprints
from simshard._parts import Leads, forest


def near(count: int, prefix_bits: int) -> Fingerprints:
    """Return distinct fingerprints of which many are near; all agree in the first bits."""
    chance = np.random.default_rng(SEED + count + prefix_bits)
    numbers = chance.integers(0, 2**64, count, np.uint64)
    copied = numbers[chance.integers(0, count // 3, count - count // 3)]
    for _ in range(3):
        copied = copied ^ np.uint64(1) << chance.integers(0, 64, len(copied), np.uint64)
    numbers[count // 3 :] = copied
    if prefix_bits:
        numbers >>= np.uint64(prefix_bits)
    return np.unique(numbers)


def parts(fingerprints: Fingerprints, leads: Leads, heavy_rows: int) -> list[tuple[int, Fingerprints]]:
    """Return what each part has, by one key a part."""
    heavy = [leads.keys(fingerprints, first) for first in range(len(leads.first))]
    keys, counts = np.unique(np.concatenate(heavy), return_counts=True)
    found = []
    for number, of_rows, some in leads.rows(fingerprints, keys[counts > heavy_rows]):
        for key in np.unique(of_rows):
            found.append((number, some[of_rows == key]))
    return found


@pytest.mark.parametrize("distance", [0, 1, 3, 6])
@pytest.mark.parametrize("prefix_bits", [0, 30])
@pytest.mark.parametrize("heavy_rows", [20, 10**9])
def test_parts_find_all_pairs_once(distance: int, prefix_bits: int, heavy_rows: int) -> None:
    fingerprints = near(450, prefix_bits)
    leads = Leads(distance)
    found = [leads.pairs(some, number) for number, some in parts(fingerprints, leads, heavy_rows)]
    pairs = np.concatenate(found)
    expected = find_pairs(fingerprints, distance)
    assert len(pairs) == len(expected)
    assert sorted(map(tuple, pairs.tolist())) == sorted(map(tuple, expected.tolist()))
    assert len(expected) > {0: -1, 1: 0}.get(distance, 10)


@pytest.mark.parametrize("prefix_bits", [0, 30])
def test_links_of_parts_make_the_clusters(prefix_bits: int) -> None:
    fingerprints = near(450, prefix_bits)
    leads = Leads(3)
    links = [leads.links(some) for _, some in parts(fingerprints, leads, 20)]
    half = len(links) // 2
    merged = forest([forest(links[:half]), forest(links[half:])])
    smallest = dict(zip(merged[:, 1].tolist(), merged[:, 0].tolist(), strict=True))
    assert {value: smallest.get(value, value) for value in fingerprints.tolist()} == clusters_of(fingerprints)


@pytest.mark.parametrize("heavy_rows", [20, 10**9])
def test_tasks_find_pairs_and_clusters_in_batches_of_rows(heavy_rows: int) -> None:
    fingerprints = near(450, 30)
    leads = Leads(3)
    batches = [pa.record_batch({"fingerprint": part.view(np.int64)}) for part in np.array_split(fingerprints, 3)]
    keys, counts = np.unique(np.concatenate(list(_arrow_parts.keys_of(batches, leads))), return_counts=True)
    rows = pa.Table.from_batches(_arrow_parts.rows_of(batches, leads, keys[counts > heavy_rows]))
    tasks = [rows.filter(pc.equal(pc.bit_wise_and(rows["key"], 1), task)).to_batches() for task in (0, 1)]
    pairs = [batch for task in tasks for batch in _arrow_parts.pairs_of(task, leads)]
    assert sorted(pairs_in(pairs)) == sorted(map(tuple, find_pairs(fingerprints).tolist()))
    links = [batch for task in tasks for batch in _arrow_parts.links_of(task, leads)]
    smallest = {b: a for a, b in pairs_in(list(_arrow_parts.merged(links)))}
    assert {value: smallest.get(value, value) for value in fingerprints.tolist()} == clusters_of(fingerprints)


TEXTS = ["one two three", None, "", "Ein Text über Füchse", "!"]


@pytest.mark.parametrize(
    "texts",
    [
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(["x", *TEXTS])[1:],
    ],
)
def test_tasks_add_fingerprints_to_batches(texts: pa.Array) -> None:
    batch = pa.record_batch({"body": texts})
    (added,) = _arrow_parts.add_fingerprints([batch], "body", "words-v3", "fingerprint")
    assert added.schema.names == ["body", "fingerprint"]
    first, last = fingerprint([TEXTS[0], TEXTS[3]]).view(np.int64).tolist()
    assert added.column("fingerprint").to_pylist() == [first, None, None, last, None]


def pairs_in(batches: list[pa.RecordBatch]) -> list[tuple[int, int]]:
    """Return the rows of batches."""
    columns = [np.concatenate([_arrow_parts.numbers(batch, name) for batch in batches]) for name in ("a", "b")]
    return list(zip(columns[0].tolist(), columns[1].tolist(), strict=True))


def test_a_heavy_key_is_shared_by_many_parts() -> None:
    fingerprints = near(2000, 16)
    leads = Leads(3)
    sizes = [len(some) for _, some in parts(fingerprints, leads, 100)]
    assert max(sizes) < len(fingerprints) / 4
    assert max(len(some) for _, some in parts(fingerprints, leads, 10**9)) == len(fingerprints)


@pytest.mark.parametrize("count", [0, 1, 2, 5000])
def test_a_forest_connects_what_links_connect(count: int) -> None:
    chance = np.random.default_rng(SEED)
    links = chance.integers(0, max(count, 1), (count, 2), np.uint64)
    root: dict[int, int] = {}

    def find(value: int) -> int:
        while root.setdefault(value, value) != value:
            value = root[value]
        return value

    for one, other in links.tolist():
        low, high = sorted([find(one), find(other)])
        root[high] = low
    expected = sorted((find(value), value) for value in root if find(value) != value)
    assert sorted(map(tuple, forest([links[:7], links[7:]]).tolist())) == expected


def test_a_chain_is_one_tree() -> None:
    chain = np.arange(20_001, dtype=np.uint64)
    links = np.stack([chain[:-1], chain[1:]], axis=1)
    assert (forest([links[::-1]])[:, 0] == 0).all()


def test_wrong_distances_are_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 63"):
        Leads(64)
