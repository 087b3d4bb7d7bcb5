"""What the threads and the tasks share of gRPC: channels, methods, errors."""

from __future__ import annotations

from os import getpid
from typing import Any

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from simshard._client.settings import Access
from simshard.errors import (
    BY_REASON,
    DeadlineTooShort,
    MalformedAnswer,
    NoAnswer,
    NoRouter,
    NotARouter,
    SimshardError,
    Violation,
)
from simshard.v1 import corpus_service_pb2 as pb

MAX_MESSAGE_BYTES = 16 << 20
"""The largest message of a server."""

OPTIONS = [
    ("grpc.max_send_message_length", -1),
    # Room for what surrounds the largest answer.
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES + (64 << 10)),
    # A router that is started again is found soon.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # Each client has a connection of its own.
    ("grpc.use_local_subchannel_pool", 1),
    # As the commands: a cluster is not behind the proxy of the web.
    ("grpc.enable_http_proxy", 0),
]
"""The options of a channel."""

DOMAIN = "simshard"
"""That of every ``google.rpc.ErrorInfo`` of a server."""

CONNECTION_CODES = ("UNAVAILABLE", "UNKNOWN", "CANCELLED", "INTERNAL")
"""The codes that a broken connection gives rise to, and a peer that is no gRPC server."""

SERVICE = pb.DESCRIPTOR.services_by_name["CorpusService"]


def method_of(channel: Any, name: str) -> Any:
    """Return a method of the service, to be called with a request or an iterator of requests."""
    method = SERVICE.methods_by_name[name]
    request, answer = getattr(pb, method.input_type.name), getattr(pb, method.output_type.name)
    kind = channel.stream_stream if name.endswith("Stream") else channel.unary_unary
    return kind(
        f"/{SERVICE.full_name}/{name}",
        request_serializer=request.SerializeToString,
        response_deserializer=answer.FromString,
    )


def credentials_of(access: Access) -> grpc.ChannelCredentials | None:
    """Return what a channel needs; None if neither TLS nor a token."""
    if not access.has_tls and access.token is None:
        return None
    if access.has_tls:
        channel = grpc.ssl_channel_credentials(access.ca, access.key, access.cert)
    else:
        # It sends a token, if the connection is to this machine.
        channel = grpc.local_channel_credentials()
    if access.token is None:
        return channel
    return grpc.composite_channel_credentials(channel, grpc.access_token_call_credentials(access.token))


def closed() -> SimshardError:
    """Return the error of a request of a client that is closed."""
    return SimshardError("the client is closed: make another one")


class Origin:
    """The process that made a channel. A child of ``fork`` has none of the threads that gRPC needs."""

    def __init__(self) -> None:
        self._process = getpid()

    def check(self) -> None:
        """Raise an error in a child of the process."""
        if getpid() != self._process:
            raise SimshardError(
                "the client was connected before this process was forked from another: "
                "make one after the fork, or start processes by `spawn`"
            )


def early_end(address: str) -> SimshardError:
    """Return the error of a stream that ended before all batches were answered."""
    return NoAnswer(f"the router at {address} stopped answering: it ended the stream too early, see what it logs")


def error_of(failure: Any, address: str) -> SimshardError:
    """Return why a call failed, out of the error that gRPC raises."""
    code, message = failure.code().name, failure.details() or ""
    details = _details(failure)
    info = details.get(ErrorInfo)
    if info is not None and info.domain == DOMAIN:
        return _refusal(code, message, info, details)
    if code == grpc.StatusCode.UNIMPLEMENTED.name:
        return NotARouter(
            f"what answers at {address} is no router, or one of another version: give the address of the router",
            code=code,
        )
    if code in CONNECTION_CODES:
        advice = "start one with `simshard serve`, in a cluster with `simshard serve router`"
        if address.startswith("https://"):
            # gRPC tells of the address that it tried last, which need not be the one with the router.
            advice += ", or see that `ca` signed its certificate, which names this host, and that `cert` and `key` fit"
        else:
            advice += ", or if it has TLS, begin its address with https://"
        return NoRouter(f"no router answers at {address}: {advice} ({message})", code=code)
    if code == grpc.StatusCode.DEADLINE_EXCEEDED.name:
        return DeadlineTooShort(f"the router at {address} did not answer in time: allow more", code=code)
    if code == grpc.StatusCode.RESOURCE_EXHAUSTED.name:
        return MalformedAnswer(f"the answer is larger than an answer may be ({message})", code=code)
    return SimshardError(message, code=code)


def _refusal(code: str, message: str, info: Any, details: dict[Any, Any]) -> SimshardError:
    retry, bad = details.get(RetryInfo), details.get(BadRequest)
    return BY_REASON.get(info.reason, SimshardError)(
        message,
        code=code,
        metadata={**info.metadata},
        retry_after=None if retry is None else retry.retry_delay.ToTimedelta().total_seconds(),
        violations=[Violation(one.field, one.description) for one in bad.field_violations] if bad else (),
    )


def _details(failure: Any) -> dict[Any, Any]:
    """Return the details of an error by their kind."""
    found: dict[Any, Any] = {}
    for key, value in failure.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for packed in Status.FromString(value).details:
            for kind in (ErrorInfo, RetryInfo, BadRequest):
                detail = kind()
                if packed.Unpack(detail):
                    found[kind] = detail
    return found
