"""Runs other implementations of the recipes beside `simshard hash`, on generated texts.

`leonsim-3` and `leonsim-4` are held against the package `simhash`. The packages behind the other
recipes cannot stand beside it (simhash-py does not build under Python 3.11 and shares its module
name with `simhash`; ChenghaoMou's simhash is in no registry; text-dedup needs Spark), so
`moz-shingle-4`, `jenkins-window-5` and `textdedup-3` are held against a few lines of Python that
follow their sources. `words-v1`, `words-v2-N` and `words-v3` are this project's own: here they are written anew
from their definitions, with word boundaries from the package `uniseg` (Unicode 16).

Texts mix scripts, cases, marks and spaces. Their alphabets are older than Unicode 13, the version of
Python 3.10: newer letters and cases differ from Python to Python. They are too short for a run of
characters to occur over 255 times, where `simhash` 2.1.2 fails under NumPy 2. Longer texts follow them
for the other recipes.

    python tests/python/published_recipes.py --program target/debug/simshard
"""

import argparse
import functools
import hashlib
import json
import multiprocessing
import random
import re
import subprocess
import sys
import unicodedata

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from simhash import Simhash
from uniseg.derived import alphabetic
from uniseg.emoji import extended_pictographic
from uniseg.wordbreak import WB, word_break, word_breakables
from xxhash import xxh3_64_digest, xxh3_64_intdigest

TEXTS = 10_000

JOINER = "\u200d"
IGNORED = (WB.EXTEND, WB.FORMAT, WB.ZWJ)

# Each alphabet is a list of ranges and characters to draw from.
ALPHABETS = {
    "Latin": ["az", "az", "AZ"],
    "Latin with accents": ["az", "\u00c0\u024f", "\u1e00\u1eff"],
    "Turkish and German": ["az", "AZ", "İıŞşĞğ", "ẞß", "ﬁﬂﬆ"],
    "Greek": ["\u0391\u03a1", "\u03b1\u03c9", "ΣΣσς", "\u1f00\u1f15", "ΐΰᾳᾼ"],
    "Cyrillic": ["\u0400\u045f"],
    "Arabic": ["\u0621\u064a", "\u064b\u0652", "\u0660\u0669"],
    "Hebrew": ["\u05d0\u05ea", "\u05b0\u05bd", "\"'"],
    "Devanagari": ["\u0904\u0939", "\u093e\u094d", "\u0966\u096f"],
    "Thai": ["\u0e01\u0e3a", "\u0e40\u0e5b"],
    "Han": ["\u4e00\u9fcc", "\u3400\u4db5", "\U00020000\U0002a6d6", "。,、"],
    "Hiragana and Katakana": ["\u3041\u3096", "\u30a1\u30fa", "ー"],
    "Hangul": ["\uac00\ud7a3", "\u1100\u1112"],
    "emoji": ["\U0001f600\U0001f64f", "\U0001f1e6\U0001f1ff", "\ufe0f\u200d", "Ⓜ"],
    "marks": ["az", "\u0300\u036f", "\u20d0\u20f0"],
    "numbers": ["09", "²³½¾", "\u2160\u2188", "\u0966\u096f", "\u0e50\u0e59", "_"],
    "joined emoji": ["az", "09", "\u05d0\u05d3", "'.:,_\"", JOINER * 8, "\u0301", "😏🙁ⓂⓂ"],
    "beyond 16 bits": ["\U00010400\U0001044f", "\U0001d400\U0001d7ff", "\U0001e900\U0001e943"],
    "punctuation": ["!/", ":@", "[`", "{~", "\u2010\u2027", "\u3000\u3003"],
}
SPACES = [" ", " ", " ", " ", "  ", "\t", "\u00a0", "\u3000", ", ", ". ", "-", "'"]


def is_assigned(character):
    return unicodedata.category(character) not in ("Cn", "Cs", "Co")


def characters_of(alphabet):
    """All characters of an alphabet: two of rising order are the ends of a range, others a list."""
    characters = []
    for entry in alphabet:
        if len(entry) == 2 and entry[0] < entry[1]:
            entry = [chr(code) for code in range(ord(entry[0]), ord(entry[1]) + 1)]
        characters.extend(filter(is_assigned, entry))
    return characters


def generate(source, alphabets):
    """A text of up to 60 words, mostly of one script."""
    main = source.choice(alphabets)
    words = []
    for _ in range(source.choice([0, 1, 2, 3, 5, 8, 20, 60])):
        alphabet = main if source.random() < 0.8 else source.choice(alphabets)
        word = "".join(source.choices(alphabet, k=source.randint(1, 9)))
        shape = source.random()
        if shape < 0.1:
            word = word.upper()
        elif shape < 0.2:
            word = word.title()
        words.append(word + source.choice(SPACES))
    if words and source.random() < 0.2:
        words *= source.randint(2, 3)
    return "".join(words)


def leonsim_3(text):
    """The script in the package's README."""
    kept = re.sub(r"[^\w]+", "", text.lower())
    return Simhash([kept[at : at + 3] for at in range(max(len(kept) - 2, 1))]).value


def leonsim_4(text):
    return Simhash(text).value


def majority(hashes):
    """A bit is 1 if more hashes have it than lack it."""
    words = numpy.array(hashes, dtype="<u8").view(numpy.uint8).reshape(-1, 8)
    counts = numpy.unpackbits(words, axis=1, bitorder="little").sum(axis=0)
    return sum(1 << bit for bit, count in enumerate(counts.tolist()) if 2 * count > len(hashes))


def moz_shingle_4(text):
    tokens = text.split(" ")
    shingles = [" ".join(tokens[at : at + 4]) for at in range(len(tokens) - 3)]
    digests = [hashlib.md5(shingle.encode()).digest() for shingle in shingles]
    return majority([int.from_bytes(digest[:8], "big") for digest in digests])


def rotate(words, turns):
    return words << turns | words >> (32 - turns)


def lookup3(data, width):
    """hashlittle2 of each window of `width` bytes, 1 to 12; words of 32 bits drop what overflows."""
    windows = sliding_window_view(numpy.frombuffer(data, numpy.uint8), width)
    padded = numpy.zeros((len(windows), 12), numpy.uint8)
    padded[:, :width] = windows
    a, b, c = padded.view("<u4").T + numpy.uint32(0xDEADBEEF + width)
    for turns in [(14, 11, 25), (16, 4, 14)]:
        c = (c ^ b) - rotate(b, turns[0])
        a = (a ^ c) - rotate(c, turns[1])
        b = (b ^ a) - rotate(a, turns[2])
    c = (c ^ b) - rotate(b, 24)
    return c.astype(numpy.uint64) << 32 | b


def jenkins_window_5(text):
    data = text.encode()
    return majority(lookup3(data, min(len(data), 5)) if data else [])


def jenkins_window_5_compat(text):
    data = text.encode()
    return majority(lookup3(data, 5)[:-1] if len(data) > 5 else [])


def joins(text, mark):
    """Whether a letter or a digit behind the text would keep its mark with the word before."""
    start = text.rfind(" ", 0, mark) + 1
    ends = [list(word_breakables(text[start:] + letter)) for letter in "1\u05d0"]
    return any(not breaks[mark - start] for breaks in ends)


def word_pieces(text):
    """The pieces between word boundaries: those of UAX #29, save at an emoji behind a joiner. It is
    no letter, even if it is one as Ⓜ is, and a mark before it stays with the word before."""
    places = range(1, len(text))
    behind = [at for at in places if text[at - 1] == JOINER and extended_pictographic(text[at])]
    plain = list(text)
    for at in behind:
        plain[at] = "😀"
    plain = "".join(plain)
    breaks = list(word_breakables(plain))
    for at in behind:
        mark = max((at for at in range(at) if word_break(text[at]) not in IGNORED), default=0)
        if joins(plain[:at], mark):
            breaks[mark] = False
    starts = [at for at in range(len(text)) if at == 0 or breaks[at]]
    return [text[start:end] for start, end in zip(starts, starts[1:] + [len(text)])]


@functools.cache
def word_hashes(text):
    """XXH3 of each lower-cased word, little-endian."""
    is_letter = lambda one: alphabetic(one) or unicodedata.category(one)[0] == "N"
    words = [piece for piece in word_pieces(text) if any(map(is_letter, piece))]
    lowered = ["".join(character.lower() for character in word) for word in words]
    return [xxh3_64_digest(word.encode())[::-1] for word in lowered]


def word_runs(text, size):
    """XXH3 of each run of word hashes; of all of them where there are fewer."""
    hashes = word_hashes(text)
    starts = range(max(len(hashes) - size + 1, 1 if hashes else 0))
    return [xxh3_64_intdigest(b"".join(hashes[at : at + size])) for at in starts]


def words_v1(text):
    return majority(word_runs(text, 4))


WORD = 2**64 - 1


def mix(feature, number):
    """A feature in a round: SplitMix64's finalizer of a sum."""
    if number == 0:
        return feature
    mixed = (feature + number * 0x9E3779B97F4A7C15) & WORD
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & WORD
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & WORD
    return mixed ^ mixed >> 31


def minima(features):
    """The lowest bits of the least value in each of 64 bins, or nothing without features."""
    bins = {}
    for number in range(128 if features else 0):
        thrown = {}
        for feature in features:
            mixed = mix(feature, number)
            bin = mixed >> 58 if number < 64 else number - 64
            thrown.setdefault(bin, []).append(mixed % 2**58)
        for bin, values in thrown.items():
            bins.setdefault(bin, min(values))
        if len(bins) == 64:
            return sum((bins[bin] & 1) << bin for bin in range(64))
    return None


def words_v2(size):
    return lambda text: minima(set(word_runs(unicodedata.normalize("NFC", text), size)))


def words_v3(text):
    """The lowest bit of every four is that of the words, the others are those of their runs."""
    of_words, of_runs = (words_v2(size)(text) for size in (1, 2))
    if of_words is None:
        return None
    digits = zip(f"{of_words:016x}", f"{of_runs:016x}")
    return int("".join(f"{int(words, 16) & 1 | int(runs, 16) & 14:x}" for words, runs in digits), 16)


def textdedup_3(text):
    if len(text) < 5:
        return None
    runs = {text[at : at + 3].lower() for at in range(len(text) - 2)}
    return majority([xxh3_64_intdigest(run.encode()) for run in runs])


PUBLISHED = {
    "words-v3": words_v3,
    "words-v2": words_v2(2),
    "words-v2-3": words_v2(3),
    "words-v1": words_v1,
    "textdedup-3": textdedup_3,
    "leonsim-3": leonsim_3,
    "leonsim-4": leonsim_4,
    "moz-shingle-4": moz_shingle_4,
    "jenkins-window-5": jenkins_window_5,
    "jenkins-window-5-compat": jenkins_window_5_compat,
}


def hash_all(program, recipe, lines):
    """The fingerprints that `simshard hash` prints, by id."""
    command = [program, "hash", "--recipe", recipe, "--format", "jsonl"]
    run = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=True)
    rows = [row.split("\t") for row in run.stdout.decode().splitlines()]
    if rows[0] != ["id", "hash"]:
        raise SystemExit(f"the table of `simshard hash` begins with {rows[0]}")
    return [(int(name), int(value)) for name, value in rows[1:]]


def published(numbered):
    """The fingerprints of one text by every recipe that can take it."""
    at, text = numbered
    recipes = [recipe for recipe in PUBLISHED if at < TEXTS or not recipe.startswith("leonsim")]
    return {recipe: PUBLISHED[recipe](text) for recipe in recipes}


def compare(recipe, texts, expected, ours):
    """Complains about every text with another fingerprint, the first few in full. A text without
    fingerprint has no row."""
    if [name for name, _ in ours] != sorted(dict(ours)):
        raise SystemExit(f"{recipe}: `simshard hash` moved or repeated documents")
    values = dict(ours)
    numbered = enumerate(zip(texts, expected))
    rows = [(text, row[recipe], values.get(at)) for at, (text, row) in numbered]
    differ = [(text, theirs, value) for text, theirs, value in rows if theirs != value]
    for text, theirs, value in differ[:5]:
        shown = f"{text[:500]!r} ({len(text)} characters)"
        print(f"{recipe} of {shown}: published {theirs}, ours {value}", file=sys.stderr)
    return len(differ)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="the simshard to test")
    parser.add_argument("--seed", type=int, default=None, help="to repeat a run")
    arguments = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {TEXTS} texts", flush=True)

    source = random.Random(seed)
    alphabets = [characters_of(alphabet) for alphabet in ALPHABETS.values()]
    texts = [generate(source, alphabets) for _ in range(TEXTS)]
    texts += ["", " \n", "?!", "same " * 300, "word 3.14 don't " * 5000, "e\u0301" * 20_000]
    documents = (json.dumps({"id": str(at), "text": text}) for at, text in enumerate(texts))
    lines = "".join(document + "\n" for document in documents)

    with multiprocessing.Pool() as pool:
        expected = pool.map(published, enumerate(texts), chunksize=100)

    failures = 0
    for recipe in PUBLISHED:
        ours = hash_all(arguments.program, recipe, lines)
        count = TEXTS if recipe.startswith("leonsim") else len(texts)
        failures += compare(recipe, texts[:count], expected, ours)
        print(f"{recipe}: {len(set(ours))} fingerprints compared")
    if failures:
        raise SystemExit(f"{failures} fingerprints differ (--seed {seed} repeats this run)")


if __name__ == "__main__":
    main()
