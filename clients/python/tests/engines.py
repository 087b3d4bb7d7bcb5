"""What the tests of engines share: a set, and what the engine in the process finds in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import simshard
from conftest import SEED
from simshard._inputs import Fingerprints

README = Path(__file__).parent.parent / "README.md"

TEXTS = ["One two three four.", "", "Another text", "one two three four", None]


def run_example(section: str, **names: Any) -> dict[str, Any]:
    """Run the code in a section of the README as written, and return what it names."""
    found = re.search(rf"^## {section}$.*?```python no-run\n(.*?)```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    exec(compile(found[1], str(README), "exec"), names)
    return names


def near(prefix_bits: int) -> Fingerprints:
    """Return fingerprints of which many are near, some twice; all agree in the first bits."""
    chance = np.random.default_rng(SEED)
    numbers = chance.integers(0, 2**64, 3000, np.uint64)
    numbers[1000:] = numbers[chance.integers(0, 1000, 2000)]
    for _ in range(3):
        numbers[1500:] ^= np.uint64(1) << chance.integers(0, 64, 1500, np.uint64)
    return numbers >> np.uint64(prefix_bits)


def clusters_of(fingerprints: Fingerprints) -> dict[int, int]:
    """Return for each fingerprint the smallest of its cluster."""
    firsts = fingerprints[simshard.find_clusters(fingerprints)]
    smallest: dict[int, int] = {}
    for first, value in zip(firsts.tolist(), fingerprints.tolist(), strict=True):
        smallest[first] = min(smallest.get(first, value), value)
    return {value: smallest[first] for first, value in zip(firsts.tolist(), fingerprints.tolist(), strict=True)}
