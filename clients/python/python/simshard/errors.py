"""Why a server refused or failed a request: one class for each reason.

Programs decide by the class; people read the message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

POSITION = re.compile(r"\b(texts|ids|fingerprints)\[(\d+)\]")
"""A place in a column, as the server names it: counted from the start of a batch."""


class Violation(NamedTuple):
    """A field that is wrong, and why."""

    field: str
    """Its name. An element of a column has its position in the input, such as ``texts[3]``."""
    description: str
    """What is wrong with it."""


class SimshardError(Exception):
    """A server refused or failed a request, or did not answer."""

    reason: ClassVar[str] = ""
    """The name of the reason in ``google.rpc.ErrorInfo``; empty if there is none."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        violations: Sequence[Violation] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        """What is wrong, in words."""
        self.code = code
        """The name of the gRPC code; empty if there was no answer."""
        self.metadata = dict(metadata or {})
        """The values in the message, for programs."""
        self.retry_after = retry_after
        """After how many seconds the same request may succeed; ``None`` if it is of no use."""
        self.violations = list(violations)
        """The fields that are wrong."""

    @property
    def nodes(self) -> list[str]:
        """The nodes that the failure is about, if the server named any."""
        return [node for node in self.metadata.get("nodes", "").split(",") if node]

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.retry_after is not None

    def count_from(self, first: int) -> None:
        """Turn positions in a batch into positions in the input, where the batch begins at ``first``."""

        def moved(text: str) -> str:
            return POSITION.sub(lambda found: f"{found[1]}[{int(found[2]) + first}]", text)

        self.message = moved(self.message)
        self.args = (self.message,)
        self.violations = [Violation(moved(field), moved(text)) for field, text in self.violations]

    def is_of_query(self, position: int) -> None:
        """Say which query of the input it is about."""
        self.message = f"query {position}: {self.message}"
        self.args = (self.message,)


class NoRouter(SimshardError):
    """No router answers at the address."""

    may_pass = True


class NotARouter(SimshardError):
    """Something else than a router answers at the address, or a router of another version."""


class NoAnswer(SimshardError):
    """The router took a stream of batches and did not answer all of them."""

    may_pass = True


class MalformedAnswer(SimshardError):
    """The answer of the router makes no sense."""


class InvalidRequest(SimshardError, ValueError):
    """A field is wrong: see ``violations``."""

    reason = "INVALID_REQUEST"


class RecipeMismatch(SimshardError):
    """The corpus was made with another recipe."""

    reason = "RECIPE_MISMATCH"


class MessageTooLarge(SimshardError):
    """A document does not fit a message of 16 MiB."""

    reason = "MESSAGE_TOO_LARGE"


class UnknownMethod(NotARouter):
    """The server has no such method."""

    reason = "UNKNOWN_METHOD"


class UnsupportedEncoding(SimshardError):
    """The messages are compressed."""

    reason = "UNSUPPORTED_ENCODING"


class Unauthenticated(SimshardError):
    """The server asks for a token. The request has none, or one that the server does not know, or that has expired."""

    reason = "UNAUTHENTICATED"


class PermissionDenied(SimshardError):
    """The token is not for such requests, or for other corpora."""

    reason = "PERMISSION_DENIED"


class CorpusNotFound(SimshardError):
    """There is no such corpus, or its creation or deletion is not complete."""

    reason = "CORPUS_NOT_FOUND"


class CorpusExists(SimshardError):
    """The name is taken."""

    reason = "CORPUS_EXISTS"


class TooManyCorpora(SimshardError):
    """There are as many corpora as the router allows."""

    reason = "TOO_MANY_CORPORA"


class NodeUnreachable(SimshardError):
    """A needed node does not answer: see ``nodes``."""

    reason = "NODE_UNREACHABLE"


class DeadlineTooShort(SimshardError):
    """The answer did not come in time."""

    reason = "DEADLINE_TOO_SHORT"


class NotOwner(SimshardError):
    """Router and node have different maps of shards."""

    reason = "NOT_OWNER"


class WrongEpoch(SimshardError):
    """Router and node have different records of shards."""

    reason = "WRONG_EPOCH"


class Cold(SimshardError):
    """A node has no tables of these shards, or not yet."""

    reason = "COLD"


class CorpusNotLoaded(SimshardError):
    """A node lost the documents of the corpus."""

    reason = "CORPUS_NOT_LOADED"


class CorpusDiffers(SimshardError):
    """A node holds the corpus with another layout."""

    reason = "CORPUS_DIFFERS"


class AnswerTooLarge(SimshardError):
    """The matches of one query do not fit an answer: set ``limit`` or ``max_ids``."""

    reason = "ANSWER_TOO_LARGE"


class MetadataFailed(SimshardError):
    """The metadata store cannot be read or written."""

    reason = "METADATA_FAILED"


class DiskFull(SimshardError):
    """A node has no room for inserts."""

    reason = "DISK_FULL"


class Overloaded(SimshardError):
    """More is in flight than a process may hold."""

    reason = "OVERLOADED"


class WriteConflict(SimshardError):
    """Others keep changing the same documents."""

    reason = "WRITE_CONFLICT"


class ClockAhead(SimshardError):
    """The clocks of the machines differ by too much."""

    reason = "CLOCK_AHEAD"


class StorageFailed(SimshardError):
    """A node cannot read or write its files."""

    reason = "STORAGE_FAILED"


class Stopping(SimshardError):
    """The process is shutting down."""

    reason = "STOPPING"


class InternalFault(SimshardError):
    """A fault in Simshard: please report it."""

    reason = "INTERNAL"


BY_REASON: dict[str, type[SimshardError]] = {
    kind.reason: kind for kind in [*SimshardError.__subclasses__(), *NotARouter.__subclasses__()] if kind.reason
}
"""The class of each reason."""
