"""Draws the output of `simshard demo` as `docs/demo.svg`, as a terminal shows it.

    simshard demo --verify | python tests/python/demo_picture.py > docs/demo.svg

The picture shows the largest cluster only, and paths without the place of the crates on the machine.
"""

import re
import sys
from xml.sax.saxutils import escape

COMMAND = "$ cargo run --release -- demo --verify"
SIZE = 13
WIDTH = 7.8
HEIGHT = 17
MARGIN = 14

# Where cargo unpacks crates: a folder, and below it one for each index.
REGISTRY = re.compile(r"\S*/(?=registry/src)")
INDEX = re.compile(r"index\.[^/\s]+/")


def shortened(lines):
    """The lines without those of further clusters."""
    kept = []
    clusters = 0
    for line in lines:
        clusters += line.endswith("distances from the first:")
        if clusters < 2 or not line.startswith("  "):
            kept.append(line)
    return without_repeated_blanks(kept)


def without_repeated_blanks(lines):
    """The lines with one blank line where there are several."""
    pairs = zip(["", *lines], lines)
    return [line for before, line in pairs if before or line]


def picture(lines):
    """The lines as an SVG image."""
    width = round(2 * MARGIN + WIDTH * max(map(len, lines)))
    height = 2 * MARGIN + HEIGHT * len(lines)
    text = "".join(
        f'<text x="{MARGIN}" y="{MARGIN + HEIGHT * number + SIZE}">{escape(line)}</text>\n'
        for number, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#16181d"/>\n'
        f'<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" '
        f'font-size="{SIZE}" fill="#d8dee9" xml:space="preserve" style="white-space:pre">\n{text}</g>\n</svg>\n'
    )


def main():
    """Reads the output of the demo and writes the image."""
    text = INDEX.sub("", REGISTRY.sub("~/.cargo/", sys.stdin.read()))
    lines = [line.rstrip() for line in text.strip().splitlines()]
    sys.stdout.write(picture([COMMAND, "", *shortened(lines)]))


if __name__ == "__main__":
    main()
