"""The settings of a client, and its address."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BATCH = 65_536
"""The most documents that a server takes in one batch."""


@dataclass(frozen=True)
class Settings:
    """What holds for all requests of a client."""

    address: str
    """Where the router listens."""
    timeout: float = 30.0
    """Seconds that a request may take, or a batch of a stream."""
    patience: float = 30.0
    """Seconds for which a stream goes on without any progress."""
    window: int = 8
    """Batches that are sent before the first of them is answered."""
    batch_size: int = 4096
    """The most documents or queries of a batch."""
    batch_bytes: int = 4 << 20
    """About the most bytes of a batch."""
    recipe: str = ""
    """The recipe that every corpus must have; empty for any."""

    def __post_init__(self) -> None:
        for name, most in (("window", None), ("batch_size", MAX_BATCH), ("batch_bytes", 15 << 20)):
            value = getattr(self, name)
            if value < 1 or (most is not None and value > most):
                raise ValueError(f"{name} is {value}: it must be 1 or more" + (f", {most} at most" if most else ""))
        for name in ("timeout", "patience"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be 0 or more")


def target_of(address: str) -> str:
    """Return the host and port of an address: ``host:7460``, or the URL that a router prints."""
    host = address.removeprefix("http://").removesuffix("/")
    if "/" in host or not host.rpartition(":")[2].isdigit():
        raise ValueError(f"{address!r} is no address such as 127.0.0.1:7460 or http://127.0.0.1:7460")
    return host
