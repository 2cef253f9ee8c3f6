"""One command and its answer out of a stream of lines, and what a modem says unasked. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tandem.at.errors import CommandError
from tandem.at.grammar import Command, Final, ascii_upper, final, is_clean, is_unsolicited, prefix, values


@dataclass(frozen=True, slots=True)
class Response:
    """What a command line was answered: its result lines in order and the final result.

    An error keeps the lines that came before it: of ``AT+CSQ;+CESQ`` on a modem without ``+CESQ`` the first is answered.
    ``noise_lines``: lines during the dialogue that belonged to nothing.
    """

    command: str
    lines: tuple[str, ...]
    final: Final
    noise_lines: int = 0

    def checked(self) -> Response:
        """Itself when the final result is OK; else CommandError."""
        if not self.final.ok:
            raise CommandError(self.command, self.final.code)
        return self


_SYMBOLS = tuple("+^!#*$%&@_")

MAX_LINES = 1000
"""More than any response has; what follows is counted as noise, so that a modem that never ends cannot fill the memory."""


def _nobody(_line: str) -> None:
    """The default receiver of unsolicited codes."""


class Dialogue:
    """Takes the lines that arrive after ``command`` was sent.

    ``owed``: prefixes of earlier commands whose answers never came. Modems answer in order, so lines of theirs announce
    that the next final result is theirs too. ``wary``: an OK without a line is theirs as well, when ``command`` must print.
    """

    def __init__(
        self,
        command: Command,
        owed: tuple[str, ...] = (),
        on_unsolicited: Callable[[str], None] = _nobody,
        wary: bool = False,
    ) -> None:
        self.command = command
        self._owed = tuple(name for name in owed if name not in command.prefixes)
        self._wary = wary
        self._on_unsolicited = on_unsolicited
        self._lines: list[str] = []
        self._noise = 0
        self._foreign = False

    def feed(self, line: str) -> Response | None:
        """Take one line; the response when this line ended it, else None."""
        result = final(line, self.command)
        if result is not None:
            return self._end(result)
        own = self._own(line)
        if own is not None:
            self._keep(own)
        elif self._is_echo(line):
            return None
        elif not is_clean(line):
            self._noise += 1
        elif prefix(line) in self._owed and not is_unsolicited(line, self._owed):
            self._foreign = True
        elif is_unsolicited(line, self.command.prefixes):
            self._on_unsolicited(line)
        elif self.command.takes_bare_lines:
            self._keep(line)
        else:
            self._noise += 1
        return None

    def _keep(self, line: str) -> None:
        if len(self._lines) < MAX_LINES:
            self._lines.append(line)
        else:
            self._noise += 1

    def _end(self, result: Final) -> Response | None:
        empty = result.ok and not self._lines and self.command.prints_lines
        if self._foreign or (self._wary and empty):
            self._foreign = False
            return None
        return Response(self.command.text, tuple(self._lines), result, self._noise)

    def _is_echo(self, line: str) -> bool:
        """An echo of this command, perhaps cut short, or of an earlier one."""
        upper = ascii_upper(line)
        return upper.startswith("AT") and (upper[2:3] in _SYMBOLS or ascii_upper(self.command.text).startswith(upper))

    def _own(self, line: str) -> str | None:
        """The line from its prefix on when it is one of this response's, else None. Noise or echo may be stuck before it."""
        upper = ascii_upper(line)
        for name in self.command.prefixes:
            at = upper.find(f"{name}:")
            if at >= 0 and is_clean(line[at:]) and not is_unsolicited(line[at:], self.command.prefixes):
                return line[at:]
        return None


# ---------------------------------------------------------------------------------------------------------------------
# What a modem says unasked, as a stream: each line with the time when it was read.


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
