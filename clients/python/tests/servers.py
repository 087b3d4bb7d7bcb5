"""Servers in processes of their own, which may be killed and started again at their addresses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path


class Process:
    """The program `simshard serve` with some arguments."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self._command = [str(program), "serve", *arguments]
        self.start()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SIMSHARD_")}
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on http"):
            self.kill()
            raise AssertionError(f"it does not listen: {line}")
        self.listens = line.split("://")[1].strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def send(self, sent: signal.Signals) -> None:
        self._process.send_signal(sent)


class Server:
    """A router and a node in one process."""

    def __init__(self, program: Path, data: Path | None = None) -> None:
        self._program = program
        self._data = [] if data is None else ["--data", str(data)]
        self.address = "127.0.0.1:0"
        self.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._process = Process(self._program, "--listen", self.address, *self._data)
        self.address = self._process.listens

    def kill(self) -> None:
        self._process.kill()

    def kill_and_start(self, _: int) -> None:
        self.kill()
        self.start()

    def pause(self) -> None:
        self._process.send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send(signal.SIGCONT)


class Cluster:
    """A router and two nodes, each in a process of its own, which keep what they store below a folder."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.address, *nodes = free_addresses(3)
        layout = folder / "cluster.toml"
        entries = [
            f'[[nodes]]\nname = "n{number}"\naddress = "http://{address}"\n' for number, address in enumerate(nodes)
        ]
        layout.write_text("".join(entries))
        of_cluster = ["--cluster", str(layout)]
        roles = [
            ["node", *of_cluster, "--name", f"n{number}", "--data", str(folder / f"n{number}")]
            for number in range(len(nodes))
        ]
        roles.append(["router", *of_cluster, "--listen", self.address])
        with ExitStack() as started:
            self._processes = [started.enter_context(Process(program, *role)) for role in roles]
            self._all = started.pop_all()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._all.close()

    def kill_and_start(self, number: int) -> None:
        """Kill each process in turn."""
        process = self._processes[number % len(self._processes)]
        process.kill()
        process.start()


def free_addresses(count: int) -> list[str]:
    """Return addresses of this machine that no process has now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
