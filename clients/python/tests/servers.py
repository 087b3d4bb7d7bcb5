"""A server in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path


class Server:
    """The program `simshard serve`, which may be killed and started again at its address."""

    def __init__(self, program: Path, data: Path | None = None) -> None:
        self.address = "127.0.0.1:0"
        self._program = program
        self._data = [] if data is None else ["--data", str(data)]
        self.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        command = [self._program, "serve", "--listen", self.address, *self._data]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SIMSHARD_")}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("listening on http://"), line
        self.address = line.split("http://")[1].strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)
