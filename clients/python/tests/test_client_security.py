"""A router with TLS, or tokens: who is answered, and who is not."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import simshard.aio
from servers import Process
from simshard import Client
from simshard.errors import NoRouter, PermissionDenied, Unauthenticated


@pytest.fixture(scope="module")
def address(program: Path, certificates: Path) -> Iterator[str]:
    """Serve clients that have a certificate."""
    files = {"cert": "server.pem", "key": "server.key", "client-ca": "ca.pem"}
    arguments = [text for name, file in files.items() for text in (f"--tls-{name}", str(certificates / file))]
    with Process(program, "--listen", "127.0.0.1:0", *arguments) as server:
        yield f"https://{server.listens}"


@pytest.fixture
def files(certificates: Path) -> dict[str, Any]:
    """Return what a client needs."""
    return {"ca": certificates / "ca.pem", "cert": certificates / "client.pem", "key": str(certificates / "client.key")}


def test_documents_are_found_by_tls_as_without(address: str, files: dict[str, Any]) -> None:
    with Client(address, **files) as client:
        corpus = client.corpus("default")
        corpus.insert(fingerprints=[7], ids=["seven"])
        assert [match.ids for match in corpus.find(fingerprints=[6])] == [["seven"]]

    async def found() -> list[list[str]]:
        async with simshard.aio.Client(address, **files) as client:
            return [match.ids async for match in client.corpus("default").find(fingerprints=[6])]

    assert asyncio.run(found()) == [["seven"]]


def test_a_client_that_is_not_known_or_trusts_others_gets_no_answer(address: str, files: dict[str, Any]) -> None:
    without_identity = {"ca": files["ca"]}
    without_authority = {name: files[name] for name in ("cert", "key")}
    plain = address.replace("https", "http")
    for where, lacking in ((address, without_identity), (address, without_authority), (plain, {})):
        with Client(where, timeout=3, **lacking) as client, pytest.raises(NoRouter):
            client.list_corpora()


def test_files_that_cannot_be_of_use_are_refused(files: dict[str, Any]) -> None:
    for wrong, problem in (
        ({"address": "http://127.0.0.1:7460", **files}, "ca is of use with TLS only"),
        ({"address": "127.0.0.1:7460", **files}, "ca is of use with TLS only"),
        ({"cert": files["cert"]}, "cert and key go together"),
        ({"ca": files["key"]}, "ca is no PEM file with a certificate"),
        ({**files, "key": files["cert"]}, "key is no PEM file with a private key"),
    ):
        with pytest.raises(ValueError, match=problem):
            Client(**{"address": "https://127.0.0.1:7460", **wrong})
    with pytest.raises(ValueError, match="ca must be the path of a PEM file, not its content"):
        Client("https://127.0.0.1:7460", ca=files["ca"].read_text())
    with pytest.raises(ValueError, match="ca must be the path of a PEM file, not its content"):
        Client("https://127.0.0.1:7460", ca=files["ca"].read_bytes())  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        Client("https://127.0.0.1:7460", ca="nowhere.pem")


def test_a_token_opens_what_its_role_is_for(program: Path, tmp_path: Path) -> None:
    tokens, secret = tmp_path / "tokens.toml", tmp_path / "reader.token"
    make = ["token", "new", "reader", "--role", "read", "--token-file", str(secret), "--tokens", str(tokens)]
    subprocess.run([program, *make], check=True)
    # The file ends with the end of a line.
    token = secret.read_text()
    assert token.endswith("\n")
    with Process(program, "--listen", "127.0.0.1:0", "--tokens", str(tokens)) as server:
        with Client(server.listens, token=token) as client:
            assert [corpus.name for corpus in client.list_corpora()] == ["default"]
            with pytest.raises(PermissionDenied):
                client.corpus("default").insert(fingerprints=[7])
        with Client(server.listens) as client, pytest.raises(Unauthenticated):
            client.list_corpora()

        async def names() -> list[str]:
            async with simshard.aio.Client(server.listens, token=token) as client:
                return [corpus.name for corpus in await client.list_corpora()]

        assert asyncio.run(names()) == ["default"]
    for address, wrong, problem in (
        ("127.0.0.1:7460", f"{token}a", "no token has"),
        ("127.0.0.1:7460", "", "no token has"),
        ("router:7460", token, "by https:// only"),
        ("http://10.0.0.1:7460", token, "by https:// only"),
    ):
        with pytest.raises(ValueError, match=problem):
            Client(address, token=wrong)
