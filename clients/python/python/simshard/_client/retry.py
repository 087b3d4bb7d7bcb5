"""Requests with one answer, which are made again where that may help.

The steps are generators, as in ``resend``: they yield calls and pauses, and are sent answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from simshard._client.patience import Pauses
from simshard._client.resend import Pause
from simshard._client.settings import Settings
from simshard.errors import SimshardError

RETRIES = 3
"""How often a request that may pass is made again."""

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """Make a request. Its answer is sent, or its error thrown."""

    method: str
    request: Any
    timeout: float


UnarySteps: TypeAlias = Generator[Call | Pause, Any, T]
"""Steps that return what a request brings."""


def once(settings: Settings, method: str, request: Any) -> UnarySteps[Any]:
    """Make a request that must not be repeated."""
    answer = yield Call(method, request, settings.timeout)
    return answer


def repeated(settings: Settings, clock: Callable[[], float], method: str, request: Any) -> UnarySteps[Any]:
    """Make a request that may be repeated: again, where that may help and time is left."""
    end = clock() + settings.timeout
    pauses = Pauses()
    for attempt in range(RETRIES + 1):
        try:
            answer = yield Call(method, request, max(end - clock(), 0.0))
            return answer
        except SimshardError as error:
            pause = pauses.after(error.retry_after)
            if not error.may_pass or attempt == RETRIES or clock() + pause >= end:
                raise
        yield Pause(pause)
    raise AssertionError("the last attempt returns or raises")
