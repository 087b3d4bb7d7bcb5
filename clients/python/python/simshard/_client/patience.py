"""How long to go on after failures, and how long to wait between two tries."""

from __future__ import annotations

import random

FIRST_PAUSE = 0.1
"""The first pause in seconds; each one after it is about twice as long, …"""

LONGEST_PAUSE = 5.0
"""… up to this, and as long again by chance: many clients must not come back as one."""


class Pauses:
    """Pauses that grow."""

    def __init__(self) -> None:
        self._next = FIRST_PAUSE

    def after(self, retry_after: float | None) -> float:
        """Return the next pause, not shorter than the server asks for."""
        pause = self._next * (1 + random.random())
        self._next = min(2 * self._next, LONGEST_PAUSE)
        return max(pause, retry_after or 0.0)


class Patience:
    """How long to go on retrying, without progress."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: float | None = None
        self._pauses = Pauses()

    @property
    def end(self) -> float | None:
        """When retries end, if the last attempt failed."""
        return None if self._since is None else self._since + self._limit

    def after_failure(self, began: float, now: float, retry_after: float | None) -> float | None:
        """Return how long to wait before the next try; nothing if it has gone on for too long."""
        if self._since is None:
            self._since, self._pauses = began, Pauses()
        left = self._limit - (now - self._since)
        if left <= 0:
            return None
        # The next try needs time as well: retries end with the patience.
        return min(self._pauses.after(retry_after), max(left / 2, FIRST_PAUSE), left)

    def after_progress(self) -> None:
        """Note that something succeeded."""
        self._since = None
