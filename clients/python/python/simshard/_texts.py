"""Fingerprints of texts."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from simshard import _simshard
from simshard._arrow import Texts
from simshard._inputs import Fingerprints, to_count, to_fingerprint, to_fingerprints, to_name, to_texts


def recipes() -> list[str]:
    """Return the names of the recipes, the default first."""
    return _simshard.recipes()


def fingerprint(
    texts: Any,
    recipe: str = "words-v3",
    *,
    missing: Literal["raise"] | int = "raise",
) -> Fingerprints:
    """Return the fingerprint of each text. If they are not few, all processors compute them.

    Texts are a list, any other iterable of strings, or a column of Arrow data, which is read without a copy.
    Some texts have no fingerprint, as those without words, ``None`` and null. Then ``ValueError`` is raised with the
    position of the first, unless ``missing`` is a number that stands for them. ``find_clusters`` puts all of these
    into one cluster; ``dedup`` keeps each such row.
    """
    if missing != "raise":
        missing = to_fingerprint(missing)
    fingerprints, without = fingerprints_of(to_texts(texts), to_name(recipe, "recipe"))
    if without and missing == "raise":
        more = f", nor have {len(without) - 1} others" if len(without) > 1 else ""
        raise ValueError(f"text {without[0]} has no fingerprint by recipe {recipe}{more}")
    if without:
        fingerprints[without] = missing
    return fingerprints


def fingerprints_of(texts: list[Any] | Texts, recipe: str) -> tuple[Fingerprints, list[int]]:
    """Return the fingerprint of each text, and the places of those that have none."""
    if isinstance(texts, Texts):
        return _simshard.fingerprint_column(texts, recipe)
    return _simshard.fingerprint(texts, recipe)


def lengths_of(texts: list[Any] | Texts) -> npt.NDArray[np.int64]:
    """Return how many characters each text has; ``None`` and null have none."""
    if isinstance(texts, Texts):
        return _simshard.lengths_of_column(texts)
    return np.fromiter((len(text or "") for text in texts), np.int64, len(texts))


def distance(a: Any, b: Any) -> Any:
    """Return in how many bits fingerprints differ: of two numbers a number, of arrays an array."""
    if _is_number(a) and _is_number(b):
        return (to_fingerprint(a) ^ to_fingerprint(b)).bit_count()
    return bit_count(_operand(a) ^ _operand(b))


def similarity(distance: int, recipe: str) -> float | None:
    """Return the Jaccard similarity of two texts that the distance of their fingerprints suggests.

    It is ``1 - distance / 32``, and at least 0. With ``words-v2-N`` that of their runs of N words is meant. With
    ``words-v3`` it is a quarter of that of their words, and three quarters of that of their runs of 2 words. Other
    recipes suggest none: ``None``.
    """
    return _simshard.similarity(to_count(distance, "distance", most=64), recipe)


def bit_count(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Return how many bits of each number are set. NumPy can since 2.0."""
    if hasattr(np, "bitwise_count"):
        counts: npt.NDArray[np.uint8] = np.bitwise_count(numbers)
        return counts
    octets = np.ascontiguousarray(numbers).view(np.uint8).reshape(*numbers.shape, 8)
    bits: npt.NDArray[np.uint8] = np.unpackbits(octets, axis=-1).sum(axis=-1, dtype=np.uint8)
    return bits


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0


def _operand(value: Any) -> Any:
    if isinstance(value, float):
        raise TypeError("a fingerprint is a whole number, not a float")
    return np.uint64(to_fingerprint(value)) if _is_number(value) else to_fingerprints(value)
