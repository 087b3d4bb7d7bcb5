"""The settings of a client, its address, and whom it trusts."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from numbers import Real
from os import PathLike, fspath
from pathlib import Path
from re import fullmatch

from simshard._inputs import MOST_COUNT, to_count, to_name

File = str | PathLike[str]
"""The path of a file."""

MOST_SECONDS = 1_000_000_000
"""The longest time: gRPC fails with more."""

MOST_PORT = 65_535
"""The largest port."""

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
        to_name(self.recipe, "recipe")
        for name, most in (("window", MOST_COUNT), ("batch_size", MAX_BATCH), ("batch_bytes", 15 << 20)):
            to_count(getattr(self, name), name, least=1, most=most)
        for name in ("timeout", "patience"):
            value = getattr(self, name)
            if not isinstance(value, Real):
                raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
            if not 0 <= float(value) <= MOST_SECONDS:
                raise ValueError(f"{name} is {value}: it must be from 0 to {MOST_SECONDS} seconds")


@dataclass(frozen=True)
class Access:
    """Whom a client trusts, and how it makes itself known: the bytes of PEM files, and a token."""

    has_tls: bool
    """Whether the address has TLS."""
    ca: bytes | None = None
    """The authorities that signed the certificate of the router; those of gRPC without any."""
    cert: bytes | None = None
    """The certificate by which the router knows the client."""
    key: bytes | None = field(default=None, repr=False)
    """Its private key."""
    token: str | None = field(default=None, repr=False)
    """The token by which the router knows the client."""


def access_of(address: str, ca: File | None, cert: File | None, key: File | None, token: str | None) -> Access:
    """Read the files that TLS needs."""
    if not isinstance(address, str):
        raise TypeError(f"an address is a str such as 127.0.0.1:7460, not {type(address).__name__}")
    has_tls = address.startswith("https://")
    if token is not None:
        if not isinstance(token, str):
            raise TypeError("the token has to be a str: the text of its file")
        # An editor ends a file with the end of a line.
        token = token.strip()
        if not fullmatch("[!-~]+", token):
            raise ValueError("the token is empty, or has characters that no token has: give the text of its file")
        if not has_tls and not is_this_machine(target_of(address)):
            raise ValueError("a token goes by https:// only, or to this machine: without TLS others can read it")
    files = {"ca": (ca, b"CERTIFICATE-----"), "cert": (cert, b"CERTIFICATE-----"), "key": (key, b"PRIVATE KEY-----")}
    given = [name for name, (file, _) in files.items() if file is not None]
    if not has_tls:
        if given:
            raise ValueError(f"{given[0]} is of use with TLS only: the address {address!r} has to start with https://")
        return Access(has_tls=False, token=token)
    if (cert is None) != (key is None):
        raise ValueError("cert and key go together: a certificate, and its private key")
    read: dict[str, bytes] = {}
    for name, (file, section) in files.items():
        if file is not None:
            if isinstance(file, bytes) or section.decode() in fspath(file):
                raise ValueError(f"{name} must be the path of a PEM file, not its content")
            read[name] = Path(file).read_bytes()
            if section not in read[name]:
                raise ValueError(f"{name} is no PEM file with a {section.decode().strip('-').lower()}: {file}")
    return Access(has_tls=True, token=token, **read)


def is_this_machine(target: str) -> bool:
    """Return whether a host and port are of this machine, without asking any name server."""
    host = target.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def target_of(address: str) -> str:
    """Return the host and port of an address: ``host:7460``, or the URL that a router prints."""
    host = address.removeprefix("http://").removeprefix("https://").removesuffix("/")
    port = host.rpartition(":")[2]
    if not fullmatch("[^/ \t\r\n]+:[0-9]{1,5}", host) or not 1 <= int(port) <= MOST_PORT:
        raise ValueError(
            f"{address!r} is no address such as 127.0.0.1:7460, http://127.0.0.1:7460 or, with TLS, https://router:7460"
        )
    return host
