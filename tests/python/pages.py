"""The examples of the Markdown pages: which there are, and whether an output is the one shown.

A fenced block is an example if it is marked ```console, ```python or ```sh. Every example runs,
unless its first line says why it does not: ```console not-run: REASON. All other blocks are data,
and marked as text, json or toml.
"""

import json
import pathlib
import re
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]

EXAMPLES = {"console", "python", "sh"}
DATA = {"text", "json", "toml"}
# Markdown allows no backquote here.
REASON = re.compile(r"not-run: [^\s`][^`]*")

# A line of its own stands for any number of lines, a character for any part of a line.
ANY_LINES = "..."
ANY_PART = "…"

# What a terminal shows where a user ends the program that runs in it.
INTERRUPT = "^C"


class Failure(Exception):
    """What is wrong, in words for the person who has to mend it."""


@dataclass
class Command:
    """A command of a terminal, and the lines below it."""

    text: str
    output: list

    def is_interrupted(self):
        """Whether the terminal shows that the command is ended with Ctrl-C."""
        return self.output[-1:] == [INTERRUPT]

    def lines(self):
        """What it prints."""
        return self.output[:-1] if self.is_interrupted() else self.output


@dataclass
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    note: str
    lines: list = field(default_factory=list)

    @property
    def where(self):
        return f"{self.page}:{self.line}"

    @property
    def text(self):
        return "".join(f"{line}\n" for line in self.lines)

    def is_example(self):
        return self.language in EXAMPLES

    def runs(self):
        return self.is_example() and not self.note

    def commands(self):
        """The commands of a terminal, in their order."""
        commands = []
        continued = False
        for line in self.lines:
            if continued:
                commands[-1].text += "\n" + line
            elif line.startswith("$ "):
                commands.append(Command(line.removeprefix("$ "), []))
            elif commands:
                commands[-1].output.append(line)
            else:
                raise Failure(f"{self.where}: the first line of a console is `$ COMMAND`")
            continued = line.endswith("\\") and (continued or line.startswith("$ "))
        return commands


@dataclass
class Example:
    """An example that runs, and the block below it that shows what it prints, if there is one."""

    block: Block
    output: Block | None


def all_pages():
    """The pages of the project, by path."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("docs", "crates"):
        pages += sorted((ROOT / folder).rglob("*.md"))
    return [str(page.relative_to(ROOT)) for page in pages]


def blocks_of(page):
    """The fenced blocks of a page, in their order."""
    blocks = []
    current = None
    markdown = (ROOT / page).read_text(encoding="utf-8")
    for number, line in enumerate(markdown.splitlines(), start=1):
        if not line.startswith("```"):
            if current is not None:
                current.lines.append(line)
        elif current is None:
            language, _, note = line[3:].strip().partition(" ")
            current = Block(page, number, language, note)
        else:
            blocks.append(current)
            current = None
    if current is not None:
        raise Failure(f"{current.where}: this block is never closed")
    for block in blocks:
        check(block)
    return blocks


def check(block):
    """Refuses a block that is neither an example nor data."""
    if block.language not in EXAMPLES | DATA:
        known = ", ".join(sorted(EXAMPLES | DATA))
        raise Failure(f"{block.where}: mark this block as one of {known}")
    if block.note and not (block.is_example() and REASON.fullmatch(block.note)):
        raise Failure(f"{block.where}: `{block.note}` is not `not-run: REASON`")
    if block.language == "sh" and block.runs():
        raise Failure(f"{block.where}: mark this as console, or say `not-run: REASON`")


def examples_of(blocks):
    """The examples that run. A block of data directly after one is what it prints."""
    examples = []
    for block, following in zip(blocks, [*blocks[1:], None]):
        if not block.runs():
            continue
        output = following
        if output is None or output.language not in ("text", "json"):
            output = None
        if block.language == "console" and any(one.output for one in block.commands()):
            output = None
        if block.language == "python" and output is None:
            raise Failure(f"{block.where}: what this prints must be the next block")
        examples.append(Example(block, output))
    return examples


def is_shown(shown, printed):
    """Whether these lines are the ones that a page shows."""
    pattern = ""
    for line in "\n".join(shown).strip().splitlines():
        if line.strip() == ANY_LINES:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += re.escape(line.rstrip()).replace(ANY_PART, ".*?") + "\n"
    lines = [line.rstrip() + "\n" for line in printed.strip().splitlines()]
    return re.fullmatch(pattern, "".join(lines)) is not None


def json_values(text, what):
    """The JSON values that stand one after another in a text."""
    decoder = json.JSONDecoder()
    values = []
    text = text.strip()
    while text:
        try:
            value, end = decoder.raw_decode(text)
        except json.JSONDecodeError as error:
            raise Failure(f"{what} is not JSON ({error}):\n{text}") from error
        values.append(value)
        text = text[end:].lstrip()
    return values


def is_output(block, printed):
    """Whether a block shows what was printed: to the letter, or as JSON values."""
    if block.language == "json":
        wanted = json_values(block.text, block.where)
        return json_values(printed, f"the output above {block.where}") == wanted
    return is_shown(block.lines, printed)
