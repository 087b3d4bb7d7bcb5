"""Exact near-duplicate search over 64-bit fingerprints of texts.

``fingerprint`` makes fingerprints of texts. ``find_pairs`` and ``find_clusters`` find what is near in a set. A
``Corpus`` stores fingerprints and finds those near a query. Answers are exact: no match is missed.

``Client`` talks to a cluster, and ``aio.Client`` does for asyncio. They need ``pip install 'simshard[client]'``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from simshard._corpus import Corpus, Match, Matches
from simshard._pairs import Deduplicated, dedup, find_clusters, find_pairs, iter_pairs
from simshard._simshard import __version__
from simshard._texts import distance, fingerprint, recipes, similarity
from simshard.errors import SimshardError

if TYPE_CHECKING:
    from simshard import aio as aio
    from simshard.client import Client as Client

__all__ = [
    "Corpus",
    "Deduplicated",
    "Match",
    "Matches",
    "SimshardError",
    "__version__",
    "dedup",
    "distance",
    "find_clusters",
    "find_pairs",
    "fingerprint",
    "iter_pairs",
    "recipes",
    "similarity",
]


def __getattr__(name: str) -> Any:
    """Import the client when it is first used: gRPC takes longer to import than all the rest."""
    if name == "Client":
        return import_module("simshard.client").Client
    if name == "aio":
        return import_module("simshard.aio")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
