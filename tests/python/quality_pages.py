"""How well recipes find near-duplicates among web pages, by the texts of the element that holds a page's content.

The truth is not what Simshard extracts: each site has an element for the content of a page, whose id `quality_sets.py`
names. Two pages are alike if the texts of these elements are.
"""

import html.parser
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

from quality_words import ALIKE, jaccard, run_set, shares, words_of

# Elements within a line. Any other parts words.
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q s samp small span strike "
    "strong sub sup time tt u var wbr".split()
)
# Elements without an end tag.
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
HIDDEN = frozenset(["script", "style"])
FARTHEST = 10
LEAST_PAIRS = 200
DESIGNS = (
    "both pages as they are",
    "both have `<main>`",
    "only one has it",
    "the contents alone, with nothing around them",
)


class Content(html.parser.HTMLParser):
    """The text of the element of an id, and where its content begins and ends in the markup."""

    def __init__(self, markup, identifier):
        super().__init__()
        self.identifier = identifier
        self.lines = [0, *itertools.accumulate(len(line) + 1 for line in markup.split("\n"))]
        self.open = []
        self.inside = 0
        self.pieces = []
        self.start = self.end = None
        self.feed(markup)
        self.close()
        if self.start is None:
            sys.exit(f"a page has no element with the id {identifier}")
        if self.end is None:
            self.end = len(markup)
        self.text = "".join(self.pieces)

    def place(self):
        """Where the parser is."""
        line, column = self.getpos()
        return self.lines[line - 1] + column

    def handle_starttag(self, tag, attrs):
        self.part(tag)
        if tag in VOID:
            return
        is_it = self.start is None and ("id", self.identifier) in attrs
        if is_it:
            self.start = self.place() + len(self.get_starttag_text())
        if is_it or self.inside:
            self.inside += 1
        self.open.append(tag)

    def handle_endtag(self, tag):
        self.part(tag)
        # Others were left open.
        while tag in self.open:
            last = self.open.pop()
            if self.inside:
                self.inside -= 1
                if not self.inside:
                    self.end = self.place()
            if last == tag:
                break

    def part(self, tag):
        """Parts words at a tag."""
        if tag not in INLINE:
            self.pieces.append("\n")

    def handle_data(self, data):
        if self.inside and not HIDDEN.intersection(self.open[-1:]):
            self.pieces.append(data)

    def marked(self, markup):
        """The page with `<main>` around the content."""
        start, end = self.start, self.end
        return f"{markup[:start]}<main>{markup[start:end]}</main>{markup[end:]}"


def fingerprints(program, texts, recipe, html_mode):
    """The fingerprint of each text, or `None`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "texts.jsonl"
        with open(path, "w", encoding="utf-8") as out:
            for number, text in enumerate(texts):
                out.write(json.dumps({"id": number, "text": text}) + "\n")
        command = [program, "hash", str(path), "--recipe", recipe, "--html", html_mode]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = [None] * len(texts)
    for line in done.stdout.splitlines()[1:]:
        number, fingerprint = line.split("\t")
        found[int(number)] = int(fingerprint)
    return found


class Pages:
    """The pages of a site whose contents differ."""

    def __init__(self, program, pages, identifier):
        self.program = program
        parsed = [(markup, Content(markup, identifier)) for markup in pages]
        by_words = {}
        for markup, content in parsed:
            words = tuple(words_of(content.text))
            if words:
                by_words.setdefault(words, (markup, content))
        self.markups = [markup for markup, _ in by_words.values()]
        self.contents = [content for _, content in by_words.values()]
        self.sets = [run_set(words) for words in by_words]
        self.similarities = {}
        pairs = itertools.combinations(range(len(self.sets)), 2)
        self.true_pairs = sum(self.is_alike(*pair) for pair in pairs)
        if self.true_pairs < LEAST_PAIRS:
            sys.exit(f"{self.true_pairs} alike pairs of pages are too few")

    def is_alike(self, one, other):
        """Whether two pages are alike. Most differ so much in length that they cannot be."""
        lengths = sorted([len(self.sets[one]), len(self.sets[other])])
        return lengths[0] >= ALIKE * lengths[1] and self.similarity(one, other) >= ALIKE

    def similarity(self, one, other):
        """The similarity of the contents of two pages."""
        pair = (one, other)
        if pair not in self.similarities:
            self.similarities[pair] = jaccard(self.sets[one], self.sets[other])
        return self.similarities[pair]

    def figures(self, recipe, first, second):
        """The figures by recipe and distance, where one list of fingerprints is the first of each pair."""
        found = [[] for _ in range(FARTHEST + 1)]
        for one, other in itertools.combinations(range(len(self.sets)), 2):
            if first[one] is None or second[other] is None:
                continue
            distance = (first[one] ^ second[other]).bit_count()
            if distance <= FARTHEST:
                found[distance].append(self.similarity(one, other))
        within = itertools.accumulate(found)
        return {(recipe, distance): shares(all_found, self.true_pairs) for distance, all_found in enumerate(within)}

    def figures_of_recipes(self, recipes):
        """What each recipe finds among the pages as they are."""
        figures = {}
        for recipe in recipes:
            found = fingerprints(self.program, self.markups, recipe, "main")
            figures |= self.figures(recipe, found, found)
        return figures

    def by_design(self, recipe):
        """What a recipe finds by the design of the pages: both as they are, with `<main>`, one of each, and without
        anything around the contents."""
        plain = fingerprints(self.program, self.markups, recipe, "main")
        marked = [content.marked(markup) for markup, content in zip(self.markups, self.contents, strict=True)]
        marked = fingerprints(self.program, marked, recipe, "main")
        contents = fingerprints(self.program, [content.text for content in self.contents], recipe, "raw")
        sides = [(plain, plain), (marked, marked), (plain, marked), (contents, contents)]
        return {design: self.figures(recipe, *side) for design, side in zip(DESIGNS, sides, strict=True)}
