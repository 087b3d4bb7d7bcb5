"""Runs the examples of all pages and compares what they print with what the pages show.

`pages.py` says which blocks are examples. A page is one session: its examples run in their order,
in one folder that holds the licences, `deploy`, `proto` and an empty `target` of the repository.

- A console holds `$ COMMAND` and, below it, what the command prints, errors included.
- `$ simshard serve ...` runs in a terminal of its own until the end of the page, or until the page
  shows the same command again with `^C` below it. Shown is what it prints when it is ready. One that
  is shown without output is not waited for.
- A Python program, and a console without output, are followed by a block with what they print.
- Pages show the usual ports. Here every session has free ones in their place.

    python tests/python/page_examples.py --program target/debug/simshard

The program may be built with or without features: no example that runs depends on them.
"""

import argparse
import contextlib
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

# The sources stay as they are.
sys.dont_write_bytecode = True

from pages import ROOT, Failure, all_pages, blocks_of, examples_of, is_output, is_shown

# What a session can read, as seen from the root.
COPIED = ["LICENSE-APACHE", "LICENSE-MIT", "deploy", "proto"]

ROUTER = "127.0.0.1:7460"
PORTS = [7461, 7470, 7472, 7474, 7480, 7482, 7484]
USUAL = [ROUTER, *(f"127.0.0.1:{port}" for port in PORTS)]

SERVER_SECONDS = 60
EXAMPLE_SECONDS = 60


class Server:
    """A process that serves, in a terminal of its own."""

    def __init__(self, command, folder, env, log):
        self.command = command
        self.log = open(log, "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def first_line(self):
        """The line that says where it listens; the reader goes on, so that no pipe fills up."""
        lines = queue.Queue()

        def read():
            for line in self.process.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        try:
            line = lines.get(timeout=SERVER_SECONDS)
        except queue.Empty:
            line = None
        if line is None:
            raise Failure(f"`{self.command}` is not ready:\n{self.told()}")
        return line

    def stop(self, sent):
        """Ends it as a user would and checks that it goes in good order."""
        self.process.send_signal(sent)
        try:
            code = self.process.wait(timeout=SERVER_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"`{self.command}` does not stop:\n{self.told()}") from None
        if code != 0:
            raise Failure(f"`{self.command}` stopped with {code}:\n{self.told()}")
        self.log.close()

    def kill(self):
        """Ends it at once, whatever it does."""
        self.process.kill()
        self.process.wait()

    def told(self):
        """The end of its log."""
        self.log.seek(0)
        return self.log.read()[-4000:]


class Session:
    """The folder, the ports and the servers of one page."""

    def __init__(self, program, folder):
        self.folder = folder / "session"
        self.logs = folder / "logs"
        self.addresses = dict(zip(USUAL, free_addresses(len(USUAL))))
        self.servers = {}
        self.started = 0
        programs = [folder / "programs", pathlib.Path(sys.executable).parent]
        programs[0].mkdir()
        (programs[0] / "simshard").symlink_to(program)
        path = ":".join([*map(str, programs), os.environ["PATH"]])
        ours = {name for name in os.environ if name.startswith("SIMSHARD_")}
        self.env = {name: value for name, value in os.environ.items() if name not in ours}
        self.env |= {"PATH": path, "SIMSHARD_ROUTER": f"http://{self.addresses[ROUTER]}"}
        self.copy()

    def copy(self):
        """Makes the folder."""
        self.logs.mkdir()
        (self.folder / "target").mkdir(parents=True)
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.folder / name)
        for path in (self.folder / "deploy").rglob("*"):
            if path.is_dir():
                continue
            path.write_text(self.real(path.read_text(encoding="utf-8")), encoding="utf-8")

    def real(self, text):
        """A text with the addresses of this session."""
        for usual, real in self.addresses.items():
            text = text.replace(usual, real)
        return text

    def usual(self, text):
        """A text with the addresses that pages show."""
        for usual, real in self.addresses.items():
            text = text.replace(real, usual)
        return text

    def run(self, example):
        """Runs an example and compares."""
        block, output = example.block, example.output
        if block.language == "python":
            script = self.folder / f"line_{block.line}.py"
            script.write_text(self.real(block.text), encoding="utf-8")
            printed = self.output_of(f"python {script.name}", block.where)
            compare(block.where, output.lines, printed, is_output(output, printed))
            return
        for command in block.commands():
            where = f"`{command.text}` at {block.where}"
            if command.text.startswith("simshard serve"):
                self.serve(command, where)
                continue
            printed = self.output_of(command.text, where)
            if output is None:
                compare(where, command.lines(), printed, is_shown(command.lines(), printed))
        if output is not None:
            compare(block.where, output.lines, printed, is_output(output, printed))

    def serve(self, command, where):
        """Starts a server unless it runs, and stops it where the page shows so."""
        if command.text not in self.servers:
            self.started += 1
            env = dict(self.env)
            if "serve node" not in command.text:
                env["SIMSHARD_LISTEN"] = self.addresses[ROUTER]
            log = self.logs / f"{self.started}.log"
            server = Server(self.real(command.text), self.folder, env, log)
            self.servers[command.text] = server
            if command.lines():
                printed = self.usual(server.first_line())
                compare(where, command.lines(), printed, is_shown(command.lines(), printed))
        if command.is_interrupted():
            self.servers.pop(command.text).stop(signal.SIGINT)

    def output_of(self, command, where):
        """What a command prints, on both streams. Refusals are examples as well."""
        process = subprocess.Popen(
            ["bash", "-c", self.real(command)],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                output, _ = process.communicate(timeout=EXAMPLE_SECONDS)
            except BaseException as error:
                # The whole group, for a shell leaves its own children behind.
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise Failure(f"{where} took longer than {EXAMPLE_SECONDS} s") from None
                raise
        return self.usual(output)

    def stop(self):
        """Ends all servers, those that were started last first."""
        while self.servers:
            _, server = self.servers.popitem()
            server.stop(signal.SIGTERM)

    def kill(self):
        """Ends all servers at once."""
        for server in self.servers.values():
            server.kill()


def free_addresses(count):
    """Addresses that nothing listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def compare(where, shown, printed, is_same):
    """Fails if a page shows something else than what was printed."""
    if not is_same:
        shown = "\n".join(shown)
        raise Failure(f"{where} printed\n{printed.rstrip()}\ninstead of\n{shown}")


def run_page(page, program):
    """Runs the examples of a page; how many there are, by language."""
    examples = examples_of(blocks_of(page))
    if not examples:
        return []
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="simshard-pages-") as name:
        session = Session(program, pathlib.Path(name))
        try:
            for example in examples:
                session.run(example)
            session.stop()
        except BaseException:
            session.kill()
            raise
    print(f"{page}: {len(examples)} examples, {time.monotonic() - start:.1f} s", flush=True)
    return [example.block.language for example in examples]


def main():
    """Runs the examples; the exit code tells whether all of them are right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the simshard program")
    parser.add_argument("pages", nargs="*", help="the pages to run; all without any")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if not arguments.program.is_file():
            raise Failure(f"there is no {arguments.program}: build it first")
        program = arguments.program.resolve()
        pages = arguments.pages or all_pages()
        languages = [one for page in pages for one in run_page(page, program)]
        missing = {"console", "python"} - set(languages)
        if missing and not arguments.pages:
            raise Failure(f"no page has an example in {', '.join(sorted(missing))}")
    except Failure as failure:
        sys.exit(f"error: {failure}")
    print(f"{len(languages)} examples passed")


if __name__ == "__main__":
    main()
