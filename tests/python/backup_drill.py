"""A restore drill: a corpus is backed up to a store that speaks S3, its cluster is destroyed, and another one gets it back.

    python tests/python/backup_drill.py --program target/debug/simshard

The store is the server of moto, which the Python that runs this has. The cluster that is backed up has two nodes, and that
which is restored into has three, with three replicas. Backups and restores are killed at random, and run again.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import urllib.request

BUCKET = "backups"
DOCUMENTS = 300_000
SECONDS = 60
KILLS = 4
# At this rate a backup of the corpus takes about as long as this allows for it to be killed.
RATE = "8"


class Failure(Exception):
    """A drill that went wrong."""


class Drill:
    """The processes of a drill, and the folder of their files."""

    def __init__(self, program, folder, stack):
        self.program, self.folder, self.stack = program, pathlib.Path(folder), stack
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(("SIMSHARD_", "AWS_"))}
        self.variables.update(AWS_ACCESS_KEY_ID="drill", AWS_SECRET_ACCESS_KEY="drill", AWS_ALLOW_HTTP="true")
        self.variables.update(AWS_REGION="us-east-1")

    def serve(self, *words):
        """Starts a server that is killed at the end; returns its process, and where it listens."""
        words = [self.program, "serve", *words, "--listen", "127.0.0.1:0"]
        log = open(self.folder / "log", "ab")
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=self.variables)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        for line in process.stdout:
            if "listening on " in line:
                return process, line.split("listening on ")[1].strip()
        raise Failure(f"{words} does not start: see its log\n{(self.folder / 'log').read_text()}")

    def run(self, *words, text=None):
        """What a command prints."""
        ran = subprocess.run(
            [self.program, *words], input=text, capture_output=True, text=True, env=self.variables, check=False
        )
        if ran.returncode:
            raise Failure(f"{' '.join(map(str, words))} failed: {ran.stderr}")
        return ran.stdout

    def done(self, *words):
        """What a command says it has done."""
        return json.loads(self.run(*words, "--json"))

    def killed(self, seconds, *words):
        """Runs a command for some seconds at most. Returns whether it was killed."""
        process = subprocess.Popen(
            [self.program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.variables
        )
        try:
            _, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True
        if process.returncode:
            raise Failure(f"{' '.join(map(str, words))} failed: {said}")
        return False

    def cluster(self, name, nodes, replication):
        """Starts a cluster; returns its processes and the URL of its router."""
        metadata = f"file:{self.folder / name}-keys"
        processes = []
        for number in range(nodes):
            data = self.folder / f"{name}-{number}"
            node = [
                self.program, "serve", "node", "--metadata", metadata, "--name", f"n{number}", "--data", data,
                "--listen", "127.0.0.1:0",
            ]
            log = open(self.folder / "log", "ab")
            process = subprocess.Popen(list(map(str, node)), stdout=log, stderr=log, env=self.variables)
            self.stack.callback(process.wait)
            self.stack.callback(process.kill)
            processes.append(process)
        begin = ["cluster", "init", "--metadata", metadata, "--nodes", str(nodes)]
        self.run(*begin, "--replicas", str(replication))
        router, url = self.serve("router", "--metadata", metadata)
        return [*processes, router], url


def moto(drill):
    """Starts a store; returns its URL, with an empty bucket."""
    server = pathlib.Path(sys.executable).with_name("moto_server")
    words = [str(server), "-H", "127.0.0.1", "-p", "0"]
    log = open(drill.folder / "moto.log", "wb")
    process = subprocess.Popen(words, stdout=log, stderr=log)
    drill.stack.callback(process.wait)
    drill.stack.callback(process.kill)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        said = (drill.folder / "moto.log").read_text(errors="replace")
        if "Running on " in said:
            url = said.split("Running on ")[1].split()[0]
            request = urllib.request.Request(f"{url}/{BUCKET}", method="PUT")
            urllib.request.urlopen(request).close()
            return url
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            raise Failure(f"moto does not start: {said}")
    raise Failure("moto does not start in time")


def upload(url, objects, size):
    """Uploads objects of random bytes, one after the other; returns bytes a second."""
    chance = random.Random(1)
    bodies = [chance.randbytes(size) for _ in range(objects)]
    began = time.monotonic()
    for number, body in enumerate(bodies):
        # Without a type, it would be read as a form.
        kind = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(f"{url}/{BUCKET}/plain/{number}", data=body, headers=kind, method="PUT")
        urllib.request.urlopen(request).close()
    return objects * size / (time.monotonic() - began)


def documents(seed):
    chance = random.Random(seed)
    lines = (f"page-{number:0>40}\t{chance.getrandbits(64)}" for number in range(DOCUMENTS))
    return "id\thash\n" + "\n".join(lines) + "\n"


def run(drill, seed):
    chance = random.Random(seed)
    url = moto(drill)
    drill.variables["AWS_ENDPOINT_URL"] = url
    place = f"s3://{BUCKET}/of/this/cluster"
    first, router = drill.cluster("first", 2, 1)
    of_first = ["--router", router]
    drill.run("corpus", "create", "pages", *of_first)
    drill.run("insert", "--corpus", "pages", "--format", "tsv", *of_first, text=documents(seed))
    before = drill.run("corpus", "scan", "pages", *of_first)
    create = ["backup", "create", place, *of_first]
    killed = sum(drill.killed(chance.uniform(0.1, 1.5), *create, "--rate", RATE) for _ in range(KILLS))
    made = drill.done(*create)
    again = drill.done(*create)
    if again["new_bytes"] or again["documents"] != DOCUMENTS:
        raise Failure(f"an unchanged corpus was stored again: {again}")
    print(f"backed up {made['documents']} documents, after {killed} that were killed", flush=True)

    for process in first:
        process.kill()
        process.wait()
    _, router = drill.cluster("second", 3, 3)
    drill.done("backup", "verify", place)
    restore = ["backup", "restore", place, "--corpus", "pages", "--router", router]
    killed = 0
    for _ in range(KILLS):
        killed += drill.killed(chance.uniform(0.1, 1.5), *restore, "--continue", "--rate", RATE)
    restored = drill.done(*restore, "--continue")
    if not restored["verified"] or drill.run("corpus", "scan", "pages", "--router", router) != before:
        raise Failure(f"what was restored is not what there was: {restored}")
    print(f"restored {DOCUMENTS} documents, after {killed} that were killed", flush=True)
    speed(drill, url, router)


def speed(drill, url, router):
    """Prints how fast a backup is, to the store and to a folder, and what the store takes of plain uploads."""
    drill.run("corpus", "delete", "pages", "--router", router)
    chance = random.Random(3)
    names = (f"https://example.org/a/path/of/usual/length/{number:0>18}" for number in range(1_000_000))
    lines = "id\thash\n" + "\n".join(f"{name}\t{chance.getrandbits(64)}" for name in names)
    drill.run("corpus", "create", "speed", "--router", router)
    drill.run("insert", "--corpus", "speed", "--format", "tsv", "--router", router, text=lines)
    speeds = {}
    for name, place in (("folder", drill.folder / "place"), ("store", f"s3://{BUCKET}/speed")):
        began = time.monotonic()
        made = drill.done("backup", "create", str(place), "--router", router)
        speeds[name] = made["bytes"] / (time.monotonic() - began)
    speeds["plain"] = upload(url, 8, 1 << 20)
    print(json.dumps({name: round(speed / 1e6, 1) for name, speed in speeds.items()}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        try:
            run(Drill(arguments.program, folder, stack), arguments.seed)
        except Failure as failure:
            sys.exit(f"the drill failed: {failure}")


main()
