"""Sets of fingerprints and servers that tests share."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from servers import Server
from simshard._inputs import Fingerprints

SEED = int(os.environ.get("SIMSHARD_SEED", random.randrange(2**32)))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the program that serves."""
    built = Path(__file__).parents[3] / "target" / "debug" / "simshard"
    parser.addoption("--program", default=built, type=Path, help="the program simshard")
    parser.addoption("--certificates", type=Path, help="a folder with those of a server and a client")


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest) -> Path:
    """Return the program that serves."""
    path: Path = request.config.getoption("--program")
    if not path.exists():
        pytest.fail(f"there is no {path}: build it, or give another with --program")
    return path


@pytest.fixture(scope="session")
def certificates(request: pytest.FixtureRequest) -> Path:
    """Return the folder with certificates of a server on loopback and of a client."""
    path: Path | None = request.config.getoption("--certificates")
    if path is None:
        pytest.fail("give a folder with --certificates: the example `certificates` of simshard-testkit fills it")
    return path


@pytest.fixture(scope="session")
def shared_server(program: Path) -> Iterator[Server]:
    """Serve all tests that change only corpora of their own."""
    with Server(program) as server:
        yield server


@pytest.fixture
def own_server(program: Path, tmp_path: Path) -> Iterator[Server]:
    """Serve one test, which may kill the server, and keep what it stores."""
    with Server(program, tmp_path / "data") as server:
        yield server


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
