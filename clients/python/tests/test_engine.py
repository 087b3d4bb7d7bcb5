"""The engine gives what a scan of all pairs gives."""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import simshard
from conftest import SEED
from simshard._inputs import Fingerprints

DISTANCES = [0, 1, 3, 6]


def scan(fingerprints: Fingerprints, distance: int) -> set[tuple[int, int]]:
    """Return the pairs of different fingerprints within the distance."""
    numbers = sorted(set(fingerprints.tolist()))
    pairs = ((a, b) for place, a in enumerate(numbers) for b in numbers[place + 1 :])
    return {(a, b) for a, b in pairs if (a ^ b).bit_count() <= distance}


@pytest.mark.parametrize("distance", DISTANCES)
def test_pairs_are_those_of_a_scan(fingerprints: Fingerprints, distance: int) -> None:
    pairs = simshard.find_pairs(fingerprints, distance=distance)
    assert pairs.dtype == np.uint64
    found = [(a, b) for a, b in pairs.tolist()]
    assert len(set(found)) == len(found)
    assert set(found) == scan(fingerprints, distance)


@pytest.mark.parametrize("batch_size", [1, 7, 10**9])
def test_batches_have_the_same_pairs_in_the_same_order(fingerprints: Fingerprints, batch_size: int) -> None:
    batches = list(simshard.iter_pairs(fingerprints, distance=6, batch_size=batch_size))
    expected = simshard.find_pairs(fingerprints, distance=6)
    assert [len(batch) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert all(0 < len(batch) <= batch_size for batch in batches)
    assert np.array_equal(np.concatenate([expected[:0], *batches]), expected)
    assert list(simshard.iter_pairs([], batch_size=batch_size)) == []
    with pytest.raises(ValueError, match="batch_size is 0: it must be from 1"):
        simshard.iter_pairs(fingerprints, batch_size=0)


CROWD = np.arange(30_000, dtype=np.uint64)
"""All are within distance 17: these are 450 million pairs, of 7 GB."""


def test_pairs_need_not_fit() -> None:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = 0
    for batch in simshard.iter_pairs(CROWD, distance=17, batch_size=500_000):
        taken += len(batch)
        # All threads of the search wait for the next batch to be taken. Other work goes on.
        assert simshard.find_clusters(CROWD[:100]).tolist() == [0] * 100
        if taken > 20_000_000:
            break
    # These pairs take 320 MB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 200_000


def test_a_search_ends_when_its_batches_are_not_wanted() -> None:
    # Threads of a search before this one may take a moment to end.
    wait_until_no_search_runs()
    batches = simshard.iter_pairs(CROWD, distance=17, batch_size=10)
    next(batches)
    assert threads_of_searches() > 0
    del batches
    wait_until_no_search_runs()


def wait_until_no_search_runs() -> None:
    deadline = time.monotonic() + 60
    while threads_of_searches() > 0:
        assert time.monotonic() < deadline


def threads_of_searches() -> int:
    """Return how many threads of this process search for `iter_pairs`."""
    return sum(name == "simshard-pairs" for name in names_of_threads())


def names_of_threads() -> Iterator[str]:
    for thread in Path("/proc/self/task").iterdir():
        # It may end meanwhile.
        with contextlib.suppress(OSError):
            yield (thread / "comm").read_text().strip()


@pytest.mark.parametrize("distance", DISTANCES)
def test_clusters_are_linked_by_pairs(fingerprints: Fingerprints, distance: int) -> None:
    first = list(range(len(fingerprints)))
    numbers = fingerprints.tolist()
    for place, number in enumerate(numbers):
        for other in range(place):
            if (number ^ numbers[other]).bit_count() <= distance:
                joined = {first[place], first[other]}
                first = [min(joined) if label in joined else label for label in first]
    assert simshard.find_clusters(fingerprints, distance=distance).tolist() == first


def test_bulk_answers_of_crowded_queries_are_in_order() -> None:
    corpus, crowd = simshard.Corpus(8, 7), np.arange(128, dtype=np.uint64)
    corpus.insert_bulk(crowd)
    queries = np.concatenate([random_numbers(10_000), np.tile(crowd, 200), random_numbers(100)])
    matches = corpus.find_all_bulk(queries)
    assert np.array_equal(matches.query, np.repeat(np.arange(10_000, 35_600, dtype=np.uint64), 128))
    assert np.array_equal(matches.distance, simshard.distance(queries[matches.query], matches.fingerprint))


@pytest.mark.parametrize(("blocks", "distance"), [(5, 3), (8, 6), (4, 0)])
def test_a_corpus_finds_what_a_scan_finds(fingerprints: Fingerprints, blocks: int, distance: int) -> None:
    corpus = simshard.Corpus(blocks, distance)
    stored, gone = set(fingerprints.tolist()), fingerprints[::3]
    assert corpus.insert_bulk(fingerprints) == len(stored) == len(corpus)
    assert corpus.remove_bulk(gone) == len(set(gone.tolist()))
    stored -= set(gone.tolist())
    assert set(corpus) == stored
    matches = corpus.find_all_bulk(fingerprints)
    nearest = corpus.find_first_bulk(fingerprints)
    expected_first = {}
    for place, query in enumerate(fingerprints.tolist()):
        near = sorted(((query ^ other).bit_count(), other) for other in stored)
        near = [(distance_, other) for distance_, other in near if distance_ <= distance]
        of_query = matches.query == place
        found = zip(matches.distance[of_query].tolist(), matches.fingerprint[of_query].tolist(), strict=True)
        assert list(found) == near
        assert corpus.find_all(query) == [simshard.Match(other, bits) for bits, other in near]
        first = corpus.find_first(query)
        assert first == (simshard.Match(near[0][1], near[0][0]) if near else None)
        if near:
            expected_first[place] = near[0][1]
    assert dict(zip(nearest.query.tolist(), nearest.fingerprint.tolist(), strict=True)) == expected_first


def test_a_corpus_takes_single_fingerprints() -> None:
    corpus = simshard.Corpus()
    assert corpus.insert(7) and not corpus.insert(7)
    assert 7 in corpus and 8 not in corpus and list(corpus) == [7]
    assert corpus.remove(7) and not corpus.remove(7)
    assert (corpus.blocks, corpus.distance) == (5, 3)
    assert corpus.nbytes > 0
    assert repr(corpus) == "Corpus(blocks=5, distance=3) of 0 fingerprints"


def test_dedup_keeps_one_of_each_cluster() -> None:
    texts = ["one two three four", "", "One two three, four!", "something else", "one  two three four."]
    result = simshard.dedup(texts)
    assert result.kept.tolist() == [0, 1, 3]
    assert (result.dropped.tolist(), result.because_of.tolist()) == ([2, 4], [0, 0])
    longest = simshard.dedup(texts, keep="longest")
    assert longest.kept.tolist() == [1, 2, 3]
    assert (longest.dropped.tolist(), longest.because_of.tolist()) == ([0, 4], [2, 2])
    with pytest.raises(ValueError, match="keep is 'first' or 'longest'"):
        simshard.dedup(texts, keep="last")  # type: ignore[arg-type]


def test_layouts_that_make_no_corpus_are_refused() -> None:
    with pytest.raises(ValueError, match="distance must be less than blocks"):
        simshard.Corpus(3, 3)
    for call, name in (
        (lambda wrong: simshard.Corpus(wrong, 3), "blocks"),
        (lambda wrong: simshard.Corpus(5, wrong), "distance"),
        (lambda wrong: simshard.find_pairs([], distance=wrong), "distance"),
        (lambda wrong: simshard.find_clusters([], blocks=wrong), "blocks"),
        (lambda wrong: simshard.similarity(wrong, "words-v3"), "distance"),
    ):
        for wrong in (-1, 65, 2**32):
            with pytest.raises(ValueError, match=f"{name} is {wrong}: it must be from "):
                call(wrong)
        with pytest.raises(TypeError, match=f"{name} must be a whole number, not float"):
            call(3.0)
    with pytest.raises(ValueError, match="batch_size is -1: it must be from 1"):
        simshard.iter_pairs([], batch_size=-1)


def test_the_version_is_that_of_the_package() -> None:
    assert simshard.__version__ == version("simshard")


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Python ignores interrupts where a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def random_numbers(count: int) -> Fingerprints:
    return np.random.default_rng(SEED).integers(0, 2**64, count, dtype=np.uint64)


LONG_WORK = {
    "find_pairs": lambda: simshard.find_pairs(CROWD, distance=17),
    "iter_pairs": lambda: list(simshard.iter_pairs(CROWD, distance=17, batch_size=10**12)),
    "find_clusters": lambda: simshard.find_clusters(random_numbers(3_000_000), distance=8),
    "fingerprint": lambda: simshard.fingerprint(["some words of a text " * 200] * 20_000),
    "fingerprint of a column": lambda: simshard.fingerprint(pl.Series(["some words of a text " * 200] * 20_000)),
    "find_all_bulk": lambda: filled_corpus().find_all_bulk(np.tile(CROWD, 100)),
}


def filled_corpus() -> simshard.Corpus:
    corpus = simshard.Corpus(18, 17)
    corpus.insert_bulk(CROWD[:3000])
    return corpus


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("work", LONG_WORK)
def test_an_interruption_ends_long_work(work: str) -> None:
    interrupt = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        LONG_WORK[work]()
    interrupt.join()


def test_other_threads_run_meanwhile() -> None:
    many = random_numbers(2_000_000)
    done = threading.Event()
    counted = 0

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = counted
    simshard.find_pairs(many)
    after = counted
    done.set()
    counter.join()
    assert after - before > 1_000


FORKED = """
import multiprocessing
import simshard

texts = [f"text {number} of some" for number in range(1000)]


def work(part):
    fingerprints = simshard.fingerprint(part)
    simshard.dedup(part)
    corpus = simshard.Corpus()
    corpus.insert_bulk(fingerprints)
    return len(simshard.find_pairs(fingerprints, distance=3)), len(corpus.find_all_bulk(fingerprints).query)


before = work(texts)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, [texts] * 4) == [before] * 4
"""


def test_a_forked_process_works_like_its_parent() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=120)
