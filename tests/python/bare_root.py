"""An archive of a release, tried in a root that holds nothing but what it unpacks.

    bare_root.py --archive simshard-….tar.gz [--emulator PROGRAM]

There is no C library, no shell and no /proc. The program must run its demo and check the answers,
serve from a data directory, take documents and find them again after a restart, and write a set
without near-duplicates in every form that a build can leave out. Changing the root takes the rights
of root, or of a user namespace. The emulator runs a program of another processor; it is copied into
the root, and so must be static.
"""

import argparse
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

# A program that has not answered by then never will.
PATIENCE = 120

def fail(message):
    sys.exit(f"bare root: {message}")


def found(program):
    """Where a program of the system is: those in the root find nothing by a path."""
    place = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    return place or fail(f"there is no {program}")


class Root:
    """A folder that is the whole file system of the programs in it."""

    def __init__(self, folder, archive, emulator):
        self.folder = folder
        with tarfile.open(archive) as unpacked:
            unpacked.extractall(folder, filter="data")
        (top,) = folder.iterdir()
        self.program = [f"/{top.name}/simshard"]
        if not (folder / top.name / "LICENSE-MIT").is_file():
            fail(f"{archive} has no licence")
        if emulator:
            shutil.copy(shutil.which(emulator), folder / "emulator")
            self.program.insert(0, "/emulator")
        for name in ("tmp", "in", "out"):
            (folder / name).mkdir()
        self.change = [found("chroot"), str(folder)]
        if os.geteuid() != 0:
            self.change = [found("unshare"), "--map-root-user", *self.change]

    def start(self, *arguments, **pipes):
        command = [*self.change, *self.program, *map(str, arguments)]
        return subprocess.Popen(command, env={}, text=True, **pipes)

    def run(self, *arguments):
        """What a command prints; it must succeed."""
        process = self.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = process.communicate(timeout=PATIENCE)
        if process.returncode != 0:
            fail(f"`simshard {' '.join(arguments)}` ended with {process.returncode}: {errors}")
        return out


def write_input(root):
    """Ten texts in two versions each, as files and as JSON lines."""
    lines = []
    for number in range(1, 11):
        for year in (1990, 1991):
            words = [f"word{number * place * place % 9973}" for place in range(1, 400)]
            text = " ".join(words) + f" of {year}\n"
            name = f"{number}-{year}"
            (root.folder / "in" / f"{name}.txt").write_text(text)
            lines.append(json.dumps({"id": name, "text": text, "year": year}) + "\n")
    with gzip.open(root.folder / "in" / "pages.jsonl.gz", "wt") as file:
        file.writelines(lines)
    return lines


def try_demo(root):
    out = root.run("demo", "/in", "--verify").strip()
    last = out.splitlines()[-1]
    if not last.endswith(" pairs, 0 missed, 0 extra") or last.startswith("verified: 0 "):
        fail(f"the demo ends with `{last}`")


def serve(root):
    server = root.start(
        "serve", "--listen", "127.0.0.1:0", "--data", "/data", stdout=subprocess.PIPE
    )
    url = server.stdout.readline().removeprefix("listening on ").strip()
    if not url.startswith("http://"):
        fail("`simshard serve` does not say where it listens")
    return server, url


def stop(server):
    server.send_signal(signal.SIGTERM)
    if server.wait(timeout=PATIENCE) != 0:
        fail(f"`simshard serve` ended with {server.returncode}")


def try_server(root):
    server, url = serve(root)
    root.run("insert", "/in/pages.jsonl.gz", "--router", url)
    stop(server)
    server, url = serve(root)
    found = root.run("find", "/in/pages.jsonl.gz", "--router", url).splitlines()
    stop(server)
    if len(found) != 20:
        fail(f"{len(found)} of 20 queries were answered")
    for line in found:
        answer = json.loads(line)
        ids = {one for match in answer["matches"] for one in match["ids"]}
        number = answer["id"].split("-")[0]
        if not {f"{number}-1990", f"{number}-1991"} <= ids:
            fail(f"a search for {answer['id']} finds {sorted(ids)}")


def try_dedup(root, lines):
    """Through every format that a build can leave out, and back."""
    root.run("dedup", "/in/pages.jsonl.gz", "--output", "/out/clean.jsonl.gz")
    with gzip.open(root.folder / "out" / "clean.jsonl.gz", "rt") as file:
        clean = file.readlines()
    if clean != lines[::2]:
        fail(f"dedup kept {len(clean)} lines, not the 10 that it should")
    root.run("dedup", "/in/pages.jsonl.gz", "--output", "/out/clean.jsonl.zst")
    root.run("hash", "/out/clean.jsonl.zst", "--output", "/out/hashes.parquet")
    rows = root.run("find-clusters", "/out/hashes.parquet", "--fingerprint-field", "fingerprint")
    if rows:
        fail(f"near-duplicates are left: {rows}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--archive", required=True, type=Path)
    arguments.add_argument("--emulator")
    arguments = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Root(Path(folder), arguments.archive, arguments.emulator)
        lines = write_input(root)
        try_demo(root)
        try_server(root)
        try_dedup(root, lines)
    print(f"{arguments.archive.name}: demo, serve, insert, find and dedup run in a bare root")


if __name__ == "__main__":
    main()
