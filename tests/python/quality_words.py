"""The truth about texts: how alike their sets of runs of words are."""

import itertools

import regex

# Words in a run.
RUN = 5
# Pairs as similar as this are alike.
ALIKE = 0.8

# Word boundaries of UAX #29. `regex` has some of its own at apostrophes, and none at full stops, which
# the standard treats alike.
PIECES = regex.compile(r"(?wV1)\b")
APOSTROPHES = str.maketrans("'’", "..")
WORD = regex.compile(r"[\p{Alphabetic}\p{N}]")


def words_of(text):
    """The words as recipes cut them."""
    places = [0, *(match.start() for match in PIECES.finditer(text.translate(APOSTROPHES))), len(text)]
    pieces = (text[start:end] for start, end in itertools.pairwise(places))
    return [piece.lower() for piece in pieces if WORD.search(piece)]


def jaccard(one, other):
    """The similarity of two sets."""
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def run_set(words):
    """The set of runs of words; a shorter text is one run."""
    count = max(1, len(words) - RUN + 1)
    return {" ".join(words[place : place + RUN]) for place in range(count)}


def shares(similarities, true_pairs):
    """The shares of found pairs, given their similarities and the number of all alike pairs."""
    found = len(similarities)
    at_least = lambda least: sum(one >= least for one in similarities)
    share = lambda count: count / found if found else None
    return {
        "precision": share(at_least(ALIKE)),
        "loose": share(at_least(0.7)),
        "recall": at_least(ALIKE) / true_pairs,
        "unlike": share(found - at_least(0.5)),
    }
