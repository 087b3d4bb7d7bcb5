"""Sets of fingerprints that tests share."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from simshard._inputs import Fingerprints

SEED = int(os.environ.get("SIMSHARD_SEED", random.randrange(2**32)))


def pytest_report_header() -> str:
    """Say how to have the same random sets again."""
    return f"SIMSHARD_SEED={SEED}"


@pytest.fixture(params=["random", "clustered", "skewed"])
def fingerprints(request: pytest.FixtureRequest) -> Fingerprints:
    """Return a set in which some fingerprints are near, and some there twice."""
    generator = np.random.default_rng([SEED, len(request.param)])
    centres = generator.integers(0, 2**64, 60, dtype=np.uint64)
    if request.param == "random":
        return np.concatenate([centres, centres[:5]])
    if request.param == "skewed":
        centres &= np.uint64(0xFFFF)
    flips = np.uint64(1) << generator.integers(0, 64, (60, 4), dtype=np.uint64)
    near = centres[:, None] ^ flips ^ np.roll(flips, 1, axis=1)
    return generator.permutation(np.concatenate([centres, near.ravel(), centres[:5]]))
