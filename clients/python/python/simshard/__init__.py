"""Exact near-duplicate search over 64-bit fingerprints of texts.

``fingerprint`` makes fingerprints of texts. ``find_pairs`` and ``find_clusters`` find what is near in a set. A
``Corpus`` stores fingerprints and finds those near a query. Answers are exact: no match is missed.
"""

from simshard._corpus import Corpus, Match, Matches
from simshard._pairs import Deduplicated, dedup, find_clusters, find_pairs
from simshard._texts import distance, fingerprint, recipes

__all__ = [
    "Corpus",
    "Deduplicated",
    "Match",
    "Matches",
    "dedup",
    "distance",
    "find_clusters",
    "find_pairs",
    "fingerprint",
    "recipes",
]
