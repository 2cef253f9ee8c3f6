"""One command and its answer out of a stream of lines, what a modem says unasked, and what can go wrong. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tandem.at.grammar import Command, Final, ascii_upper, final, is_clean, is_unsolicited, prefix


class AtError(Exception):
    """Any failure of an AT exchange. The channel raises nothing else for what a modem or its port may do."""


class NoAnswer(AtError):  # noqa: N818 - the field's word for it; it is a result of a poll as much as an error
    """No final result within the deadline."""


class PortLost(AtError):  # noqa: N818 - as above
    """The port cannot be opened, or it went away (unplugged, renumbered, closed at the other end)."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a command line was answered: its result lines in order and the final result.

    An error keeps the lines that came before it: of ``AT+CSQ;+CESQ`` on a modem without ``+CESQ`` the first is answered.
    """

    command: str
    lines: tuple[str, ...]
    final: Final


@dataclass(frozen=True, slots=True)
class Unsolicited:
    """One line that came unasked. ``monotonic_ns``: CLOCK_MONOTONIC when the read returned that completed the line, so it is later
    than what it tells of by the modem's own delay and the port's latency only, not by our waiting."""

    line: str
    monotonic_ns: int


_SYMBOLS = tuple("+^!#*$%&@_")

MAX_LINES = 1000
"""More than any response has; what follows is dropped, so that a modem that never ends cannot fill the memory."""


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
        self._foreign = False

    def feed(self, line: str) -> Response | None:
        """Take one line; the response when this line ended it, else None."""
        result = final(line, self.command)
        if result is not None:
            return self._end(result)
        own = self._own(line)
        if own is not None:
            self._keep(own)
        elif self._is_echo(line) or not is_clean(line):
            return None
        elif prefix(line) in self._owed and not is_unsolicited(line, self._owed):
            self._foreign = True
        elif is_unsolicited(line, self.command.prefixes):
            self._on_unsolicited(line)
        elif self.command.takes_bare_lines:
            self._keep(line)
        return None

    def _keep(self, line: str) -> None:
        if len(self._lines) < MAX_LINES:
            self._lines.append(line)

    def _end(self, result: Final) -> Response | None:
        empty = result.ok and not self._lines and self.command.prints_lines
        if self._foreign or (self._wary and empty):
            self._foreign = False
            return None
        return Response(self.command.text, tuple(self._lines), result)

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
