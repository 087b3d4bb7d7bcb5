"""The earlier interfaces give what the earlier packages give."""

from __future__ import annotations

import random
import zlib

import pytest
import simhash as earlier
from conftest import SEED
from simshard.compat import simhash as compat

WORDS = "der die das Ab12 naïve 中文 字 _x ... £ i\u0307 \u212a fox jumps over".split(" ")


def texts(count: int) -> list[str]:
    chance = random.Random(SEED)
    return ["", "a", *(" ".join(chance.choices(WORDS, k=chance.randrange(30))) for _ in range(count))]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"f": 128},
        {"f": 32},
        {"reg": r"[a-z]+"},
        {"hashfunc": zlib.crc32, "f": 32},
        {"hashfunc": lambda data: zlib.crc32(data) * 2**32},
    ],
)
def test_texts_have_the_same_values(settings: dict[str, object]) -> None:
    for text in texts(200):
        assert compat.Simhash(text, **settings).value == earlier.Simhash(text, **settings).value, text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "features",
    [
        [],
        ["aaa", "bbb"],
        ["aaa", ("bbb", 3), "ccc"],
        {"aaa": 2, "bbb": 70, "ccc": 1},
        [("aaa", 0.5), ("bbb", 0.25)],
        [(f"f{number}", number % 256) for number in range(9000)],
    ],
)
def test_features_have_the_same_values(features: object) -> None:
    assert compat.Simhash(features).value == earlier.Simhash(features).value


def test_a_simhash_compares_and_refuses() -> None:
    one, other = compat.Simhash(5), compat.Simhash(compat.Simhash(4))
    assert one != other and one == compat.Simhash(5)
    assert one.distance(other) == 1
    with pytest.raises(ValueError, match="multiple of 8"):
        compat.Simhash("a", f=63)
    with pytest.raises(TypeError, match="not of"):
        compat.Simhash(1.5)
    with pytest.raises(ValueError, match="one has 64 bits"):
        one.distance(compat.Simhash(4, f=32))


@pytest.mark.parametrize(("f", "k"), [(64, 2), (64, 3), (64, 9), (32, 3), (128, 5)])
def test_an_index_finds_the_same_objects(f: int, k: int) -> None:
    chance = random.Random(SEED)
    centres = [chance.getrandbits(f) for _ in range(20)]
    values = [centre ^ (1 << chance.randrange(f)) ^ (1 << chance.randrange(f)) for centre in centres * 5]
    indices = [
        module.SimhashIndex([(number, module.Simhash(value, f)) for number, value in enumerate(values[:80])], f, k)
        for module in (compat, earlier)
    ]
    for module, index in zip((compat, earlier), indices, strict=True):
        for number, value in enumerate(values[80:], 80):
            index.add(number, module.Simhash(value, f))
        for number in range(0, 100, 7):
            index.delete(number, module.Simhash(values[number], f))
        index.delete("none", module.Simhash(0, f))
    assert indices[0].offsets == indices[1].offsets
    for value in values + centres:
        ours, theirs = compat.Simhash(value, f), earlier.Simhash(value, f)
        assert sorted(indices[0].get_near_dups(ours)) == sorted(indices[1].get_near_dups(theirs))
        assert list(indices[0].get_keys(ours)) == list(indices[1].get_keys(theirs))
    assert indices[0].bucket_size() <= indices[1].bucket_size()
    with pytest.raises(ValueError, match="the index has"):
        indices[0].add("x", compat.Simhash(1, f + 8))
