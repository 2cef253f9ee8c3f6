"""The AT command line as ITU-T V.250 (5.2, 5.3, 5.4) and 3GPP TS 27.007 (4) write it, read as a modem reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["execute", "read", "test", "set"]

_EXTENDED = re.compile(r"[+^$%*!#][A-Za-z][A-Za-z0-9!%\-./:_]*")
_BASIC = re.compile(r"(&?[A-Za-z])([0-9]*)")
_REGISTER = re.compile(r"[Ss]([0-9]{1,3})(\?|=([0-9]{0,3}))")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a line. ``name`` in capitals with its prefix (``+CSQ``, ``E``, ``&F``, ``S0``).

    ``arguments`` of a set command, or the digits of a basic one: texts without their quotes, None where left empty.
    """

    name: str
    kind: Kind
    arguments: tuple[str | None, ...] = ()

    def argument(self, index: int) -> str | None:
        """The argument at ``index``, None when it is empty or was not given."""
        return self.arguments[index] if index < len(self.arguments) else None

    def number(self, index: int, default: int | None = None) -> int | None:
        """The argument at ``index`` as a whole number: ``default`` when absent, -1 when it is no number."""
        text = self.argument(index)
        if text is None:
            return default
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


class GrammarError(ValueError):
    """The line breaks the grammar. ``before`` holds the commands that come before the fault: a modem runs those."""

    def __init__(self, before: tuple[Command, ...]) -> None:
        super().__init__("the command line breaks the grammar")
        self.before = before


def commands(line: str) -> tuple[Command, ...] | None:
    """The commands of one line, without its carriage return. None when the line is not addressed to a modem (no AT).

    Raises GrammarError where the grammar is broken.
    """
    text = line.strip()
    if text[:2].upper() != "AT":
        return None
    found: list[Command] = []
    i = 2
    while i < len(text):
        if text[i] in " ;":
            i += 1
            continue
        step = _extended(text, i) or _register(text, i) or _basic(text, i)
        if step is None:
            raise GrammarError(tuple(found))
        command, i = step
        found.append(command)
    return tuple(found)


def _extended(text: str, start: int) -> tuple[Command, int] | None:
    match = _EXTENDED.match(text, start)
    if not match:
        return None
    name, i = match.group().upper(), match.end()
    end = _separator(text, i)
    if end is None:
        return None
    tail = text[i:end].strip()
    if tail == "":
        return Command(name, "execute"), end
    if tail == "?":
        return Command(name, "read"), end
    if tail == "=?":
        return Command(name, "test"), end
    if tail[0] == "=":
        arguments = _arguments(tail[1:])
        return None if arguments is None else (Command(name, "set", arguments), end)
    return None


def _separator(text: str, start: int) -> int | None:
    """Where this command ends: the next semicolon outside quotes, or the end; None when a quote is not closed."""
    quoted = False
    for i in range(start, len(text)):
        if text[i] == '"':
            quoted = not quoted
        elif text[i] == ";" and not quoted:
            return i
    return None if quoted else len(text)


def _arguments(text: str) -> tuple[str | None, ...] | None:
    """Comma-separated values; None when text stands beside a quoted value."""
    values: list[str | None] = []
    for part in _split(text):
        value = part.strip()
        if '"' in value:
            if len(value) < 2 or value[0] != '"' or value[-1] != '"' or '"' in value[1:-1]:
                return None
            values.append(value[1:-1])
        else:
            values.append(value or None)
    return tuple(values)


def _split(text: str) -> list[str]:
    parts, start, quoted = [], 0, False
    for i, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif char == "," and not quoted:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return parts


def _register(text: str, start: int) -> tuple[Command, int] | None:
    match = _REGISTER.match(text, start)
    if not match:
        return None
    name = f"S{int(match.group(1))}"
    if match.group(2) == "?":
        return Command(name, "read"), match.end()
    return Command(name, "set", (match.group(3) or None,)), match.end()


def _basic(text: str, start: int) -> tuple[Command, int] | None:
    match = _BASIC.match(text, start)
    if not match:
        return None
    digits = match.group(2)
    return Command(match.group(1).upper(), "execute", (digits,) if digits else ()), match.end()


class LineReader:
    """Gathers bytes into command lines: a carriage return ends a line, a backspace takes one byte back, line feeds are
    skipped. A line longer than ``limit`` bytes is reported as None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._overlong = False

    def feed(self, received: bytes) -> list[str | None]:
        """The lines that ``received`` completes; None stands for one that was too long."""
        lines: list[str | None] = []
        for byte in received:
            if byte == 0x0D:
                lines.append(None if self._overlong else self._line.decode("latin-1"))
                self.clear()
            elif byte == 0x08:
                del self._line[-1:]
            elif byte != 0x0A:
                if len(self._line) >= self._limit:
                    self._overlong = True
                else:
                    self._line.append(byte)
        return lines

    def clear(self) -> None:
        """Forget the unfinished line."""
        self._line.clear()
        self._overlong = False
