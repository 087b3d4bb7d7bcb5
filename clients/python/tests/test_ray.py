"""Ray Data gives the pairs and clusters of the engine. It runs where ray is installed and SIMSHARD_LONG is set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import simshard
from engines import TEXTS, clusters_of, near, run_example
from simshard._inputs import Fingerprints
from simshard._parts import Leads

pytestmark = pytest.mark.skipif("SIMSHARD_LONG" not in os.environ, reason="Ray takes long to start")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Without clusters, Ray listens on the loopback address only.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


def dataset(ray: Any, fingerprints: Fingerprints, blocks: int = 3) -> Any:
    """Return a dataset of several blocks, with one row without a fingerprint."""
    rows = pa.table({"row": np.arange(len(fingerprints)), "fingerprint": fingerprints})
    one = pa.table({"row": pa.array([-1]), "fingerprint": pa.array([None], pa.uint64())})
    rows = pa.concat_tables([rows, one])
    size = -(-rows.num_rows // blocks)
    return ray.data.from_arrow([rows.slice(start, size) for start in range(0, rows.num_rows, size)])


def check(ds: Any, fingerprints: Fingerprints) -> None:
    from simshard import ray as on_ray

    found = on_ray.find_pairs(ds).to_pandas()
    expected = [tuple(pair) for pair in simshard.find_pairs(fingerprints).tolist()]
    assert sorted(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == sorted(expected)
    assert len(expected) > 100
    smallest = clusters_of(fingerprints)
    rows = on_ray.find_clusters(ds).take_all()
    assert len(rows) == len(fingerprints) + 1
    for row in rows:
        expected_cluster = None if row["row"] < 0 else smallest[int(fingerprints[row["row"]])]
        assert row["cluster"] == expected_cluster


@pytest.mark.parametrize("prefix_bits", [0, 20])
@pytest.mark.parametrize(("heavy_rows", "links_a_task"), [(50, 200), (1500, 10**6), (10**6, 10**6)])
def test_pairs_and_clusters_are_those_of_the_engine(
    ray: Any, monkeypatch: pytest.MonkeyPatch, prefix_bits: int, heavy_rows: int, links_a_task: int
) -> None:
    from simshard import _arrow_parts

    monkeypatch.setattr(_arrow_parts, "HEAVY_ROWS", heavy_rows)
    monkeypatch.setattr(_arrow_parts, "LINKS_A_TASK", links_a_task)
    fingerprints = near(prefix_bits)
    check(dataset(ray, fingerprints), fingerprints)


def test_copies_and_a_heavy_prefix_do_not_end_in_one_task(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from simshard import _arrow_parts
    from simshard import ray as on_ray

    monkeypatch.setattr(_arrow_parts, "HEAVY_ROWS", 200)
    monkeypatch.setattr(_arrow_parts, "ROWS_A_TASK", 2000)
    fingerprints = np.concatenate([near(20), np.full(100_000, near(20)[7])])

    def sizes(batches: Any, _: Leads) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"rows": pa.array([sum(batch.num_rows for batch in batches)])})

    ds = dataset(ray, fingerprints, blocks=8)
    rows = on_ray._map_parts(ds, "fingerprint", 3, sizes).to_pandas()["rows"]
    assert rows.max() < rows.sum() / 3
    assert rows.sum() < 16 * len(near(20))
    check(ds, fingerprints)


def test_fingerprints_of_spark_are_taken(ray: Any) -> None:
    from simshard import ray as on_ray

    fingerprints = np.array([2**64 - 1, 2**64 - 2, 5], np.uint64)
    signed = ray.data.from_arrow(pa.table({"fingerprint": fingerprints.view(np.int64)}))
    assert on_ray.find_pairs(signed).take_all() == [{"a": 2**64 - 2, "b": 2**64 - 1}]
    clusters = [row["cluster"] for row in on_ray.find_clusters(signed).take_all()]
    assert clusters == [2**64 - 2, 2**64 - 2, 5]


@pytest.mark.parametrize("numbers", [[], [None, None]])
def test_nothing_gives_nothing(ray: Any, numbers: list[None]) -> None:
    from simshard import ray as on_ray

    ds = ray.data.from_arrow(pa.table({"fingerprint": pa.array(numbers, pa.uint64())}))
    assert on_ray.find_pairs(ds).take_all() == []
    assert on_ray.find_clusters(ds).take_all() == [{"fingerprint": None, "cluster": None}] * len(numbers)


def test_texts_have_the_fingerprints_of_the_engine(ray: Any) -> None:
    from simshard import ray as on_ray

    texts = ["one two three", None, "", "Ein Text über Füchse", "!"]
    rows = on_ray.fingerprint(ray.data.from_arrow(pa.table({"body": texts})), "body").take_all()
    assert [row["body"] for row in rows] == texts
    first, last = simshard.fingerprint([texts[0], texts[3]]).tolist()
    assert [row["fingerprint"] for row in rows] == [first, None, None, last, None]


def test_what_cannot_be_is_refused_at_once(ray: Any) -> None:
    from simshard import ray as on_ray

    ds = ray.data.from_arrow(pa.table({"body": ["one two"], "number": [1.5]}))
    with pytest.raises(ValueError, match="already"):
        on_ray.fingerprint(ds, "body", into="body")
    with pytest.raises(ValueError, match="no column 'text', but body, number"):
        on_ray.fingerprint(ds, "text")
    with pytest.raises(ValueError, match="nonsense"):
        on_ray.fingerprint(ds, "body", recipe="nonsense")
    with pytest.raises(ValueError, match="not double"):
        on_ray.find_pairs(ds, "number")


def test_the_example_runs(ray: Any) -> None:
    names = run_example("On Ray", pages=ray.data.from_arrow(pa.table({"body": TEXTS})))
    kept = {row["body"] or "" for row in names["kept"].take_all()}
    assert len(kept) == 3 and TEXTS[2] in kept and kept & {TEXTS[0], TEXTS[3]}
    assert names["pairs"].count() == 0
