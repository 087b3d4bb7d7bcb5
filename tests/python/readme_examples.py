"""Runs the gRPC examples of README.md against a real server and compares what they print.

Examples are the fenced blocks marked ```python and those whose text starts with `buf curl`. Each
must be followed, before any other fenced block, by one marked ```text or ```json: what it prints,
compared to the letter or as JSON values. They run in the order of the README against one fresh
`simshard serve`, in place of the default address 127.0.0.1:7460 that they must show.

Examples too are the blocks marked ```console whose commands need no server. They run in a folder of
their own, and print, errors included, what stands below each `$ command`. The program must be built
without features, as the README says first.

    python tests/python/readme_examples.py --server target/release/simshard
"""

import argparse
import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_ADDRESS = "127.0.0.1:7460"
READY = re.compile(r"listening on http://(127\.0\.0\.1:\d+)")
SERVER_SECONDS = 60
EXAMPLE_SECONDS = 60


# What needs no server.
LOCAL_VERBS = {"distance", "find-all", "find-clusters", "hash", "recipes"}


class Failure(Exception):
    """What is wrong, in words for whoever has to put it right."""


@dataclass
class Block:
    """A fenced block of a Markdown file."""

    language: str
    text: str
    line: int

    def is_python(self):
        return self.language == "python"

    def is_curl(self):
        return self.text.lstrip().startswith("buf curl")

    def is_output(self):
        return self.language in ("text", "json")

    def is_local(self):
        """Whether it is typed at a terminal and needs no server."""
        verbs = {verb for command, _ in self.dialogue() for verb in re.findall(r"\bsimshard (\S+)", command)}
        return self.language == "console" and bool(verbs) and verbs <= LOCAL_VERBS

    def dialogue(self):
        """The commands of a terminal, each with what it prints."""
        turns = self.text.removeprefix("$ ").split("\n$ ")
        return [turn.rstrip("\n").partition("\n")[::2] for turn in turns]


def fenced_blocks(markdown):
    """The fenced blocks of a Markdown text, in their order."""
    blocks = []
    current = None
    for number, line in enumerate(markdown.splitlines(), start=1):
        if not line.startswith("```"):
            if current is not None:
                current.text += line + "\n"
        elif current is None:
            current = Block(line[3:].strip(), "", number)
        else:
            blocks.append(current)
            current = None
    if current is not None:
        raise Failure(f"README.md:{current.line}: this block is never closed")
    return blocks


def examples(blocks):
    """Pairs of an example and its expected output; at least one of each kind."""
    pairs = []
    for position, block in enumerate(blocks):
        if not (block.is_python() or block.is_curl()):
            continue
        following = blocks[position + 1] if position + 1 < len(blocks) else None
        if following is None or not following.is_output():
            raise Failure(
                f"README.md:{block.line}: no output to compare with: the next fenced block must be"
                " what this example prints, marked ```text or ```json"
            )
        if DEFAULT_ADDRESS not in block.text:
            raise Failure(f"README.md:{block.line}: this example must connect to {DEFAULT_ADDRESS}")
        pairs.append((block, following))
    if not any(example.is_python() for example, _ in pairs):
        raise Failure("README.md has no Python example: a fenced block marked ```python")
    if not any(example.is_curl() for example, _ in pairs):
        raise Failure("README.md has no `buf curl` example: a fenced block that starts with it")
    return pairs


def generate_stubs(folder):
    """Generates the Python modules of all interfaces into a folder."""
    proto = ROOT / "proto"
    files = sorted(str(path) for path in proto.rglob("*.proto"))
    if not files:
        raise Failure(f"no interface in {proto}")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={proto}"]
    command += [f"--python_out={folder}", f"--grpc_python_out={folder}", *files]
    run(command, cwd=folder, env=os.environ, what="generating the Python modules")


def run(command, cwd, env, what):
    """What a command prints; a failure if it fails or takes too long."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            output, errors = process.communicate(timeout=EXAMPLE_SECONDS)
        except BaseException as error:
            # The whole group, for a shell leaves its own children behind.
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failure(f"{what} took longer than {EXAMPLE_SECONDS} s") from None
            raise
    if process.returncode != 0:
        raise Failure(f"{what} failed ({process.returncode}):\n{output}{errors}")
    return output


@contextlib.contextmanager
def serving(program, folder):
    """A server on a free port, stopped at the end; gives its address, `host:port`."""
    command = [str(program), "serve", "--listen", "127.0.0.1:0"]
    with open(folder / "server.log", "w+", encoding="utf-8") as log:
        try:
            server = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        except OSError as error:
            raise Failure(f"cannot start {program}: {error}: build it first") from error
        with server:
            try:
                yield address_of(server, log)
            except BaseException:
                server.kill()
                raise
            stop(server, log)


def address_of(server, log):
    """Waits for the line that tells the address; the reader goes on so that no pipe fills up."""
    lines = queue.Queue()

    def read():
        for line in server.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + SERVER_SECONDS
    while True:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise Failure(f"the server was not ready in {SERVER_SECONDS} s:\n{told(log)}") from None
        if line is None:
            raise Failure(f"the server ended before it was ready:\n{told(log)}")
        if found := READY.search(line):
            return found.group(1)


def stop(server, log):
    """Ends the server as a user would and checks that it goes in good order."""
    server.send_signal(signal.SIGTERM)
    try:
        code = server.wait(timeout=SERVER_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        raise Failure(f"the server did not stop in {SERVER_SECONDS} s:\n{told(log)}") from None
    if code != 0:
        raise Failure(f"the server stopped with {code} instead of 0:\n{told(log)}")


def told(log):
    """The end of what the server wrote to its log."""
    log.seek(0)
    return log.read()[-4000:]


def command_of(example, address, folder):
    """The command that runs an example, and where."""
    text = example.text.replace(DEFAULT_ADDRESS, address)
    if example.is_curl():
        return ["sh", "-e", "-c", text], ROOT
    script = folder / f"readme_line_{example.line}.py"
    script.write_text(text, encoding="utf-8")
    return [sys.executable, str(script)], folder


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


def same(expected, printed, where):
    """Whether an example printed what the README says."""
    if expected.language == "json":
        wanted = json_values(expected.text, f"README.md:{expected.line}")
        return json_values(printed, f"the output of {where}") == wanted
    wanted = [line.rstrip() for line in expected.text.strip().splitlines()]
    return [line.rstrip() for line in printed.strip().splitlines()] == wanted


def check(example, expected, address, folder):
    """Runs one example and compares."""
    where = f"README.md:{example.line}"
    command, cwd = command_of(example, address, folder)
    env = os.environ | {"PYTHONPATH": str(folder)}
    printed = run(command, cwd, env, f"the example at {where}")
    if not printed.strip():
        raise Failure(f"the example at {where} printed nothing")
    if not same(expected, printed, where):
        raise Failure(
            f"the example at {where} printed\n{printed}\ninstead of what README.md says at line"
            f" {expected.line}:\n{expected.text}"
        )
    print(f"{where}: prints what README.md says", flush=True)


def check_dialogue(block, program, folder):
    """Types the commands of a block and compares what they print."""
    (folder / "target").mkdir(exist_ok=True)
    env = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    for command, expected in block.dialogue():
        where = f"`{command}` at README.md:{block.line}"
        # Refusals are examples as well.
        shell = ["sh", "-c", f"{{ {command}\n}} 2>&1 || true"]
        printed = run(shell, folder, env, where).strip()
        if printed != expected.strip():
            raise Failure(f"{where} printed\n{printed}\ninstead of\n{expected}")
    print(f"README.md:{block.line}: prints what README.md says", flush=True)


def main():
    """Runs the examples; the exit code tells whether all of them are right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", type=pathlib.Path, required=True, help="the simshard program")
    parser.add_argument("--readme", type=pathlib.Path, default=ROOT / "README.md")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if not arguments.readme.is_file():
            raise Failure(f"there is no {arguments.readme}")
        blocks = fenced_blocks(arguments.readme.read_text(encoding="utf-8"))
        pairs = examples(blocks)
        local = [block for block in blocks if block.is_local()]
        if not local:
            raise Failure("README.md has no example of a command that needs no server")
        with tempfile.TemporaryDirectory(prefix="simshard-examples-") as name:
            folder = pathlib.Path(name)
            program = arguments.server.resolve()
            for block in local:
                check_dialogue(block, program, folder)
            generate_stubs(folder)
            with serving(program, folder) as address:
                for example, expected in pairs:
                    check(example, expected, address, folder)
    except Failure as failure:
        sys.exit(f"error: {failure}")
    print(f"{len(local) + len(pairs)} examples passed")


if __name__ == "__main__":
    main()
