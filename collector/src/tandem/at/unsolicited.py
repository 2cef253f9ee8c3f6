"""What a modem says unasked, as a stream: each line with the time when it was read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tandem.at.grammar import prefix, values

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unsolicited:
    """One unsolicited line. ``monotonic_ns``: CLOCK_MONOTONIC when the read returned that completed the line, so it is later
    than what it tells of by the modem's own delay and the port's latency only, not by our waiting."""

    line: str
    monotonic_ns: int

    @property
    def name(self) -> str | None:
        """``+CEREG`` of ``+CEREG: 1,"1A2B","05A2C30B",7``; None of RING and its like."""
        return prefix(self.line)

    @property
    def values(self) -> tuple[str, ...]:
        """Its values, unquoted."""
        return values(self.line)


Subscriber = Callable[[Unsolicited], None]


class Stream:
    """Gives each unsolicited line to every subscriber, in the order in which they subscribed, from the thread that reads."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []
        self.count = 0

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Give it each line from now on; what is returned ends that, and may be called twice."""
        self._subscribers.append(subscriber)

        def end() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return end

    def put(self, line: str, monotonic_ns: int) -> None:
        """Hand one line out."""
        self.count += 1
        told = Unsolicited(line, monotonic_ns)
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(told)
            except Exception:
                # A subscriber's mistake must not end the exchange in which the line happened to come.
                log.exception("an unsolicited line could not be handed over")
