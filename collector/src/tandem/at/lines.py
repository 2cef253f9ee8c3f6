"""Bytes from a port → lines of text, whatever the chunks."""

from __future__ import annotations

MAX_LINE_BYTES = 4096
"""Longer than any line a modem prints; what is longer is noise and is dropped, so that noise cannot fill the memory."""

_CONTROL = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_EDGE = _CONTROL + "".join(map(chr, range(0xA0, 0x100))) + " "


class LineSplitter:
    """Collects bytes and gives whole lines. A line ends at CR or LF (ITU-T V.250 5.7.1; some modems send only one of them).

    Bytes are read as Latin-1, so every byte is a character. Noise at either end of a line (bytes outside printable ASCII,
    spaces) is cut off and empty lines are dropped: a modem that wakes up often sends NUL or FF before its first line.
    """

    def __init__(self) -> None:
        self._partial = b""
        self._overlong = False
        self.dropped_lines = 0

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that ``chunk`` completes, in order."""
        *whole, rest = (self._partial + chunk).replace(b"\n", b"\r").split(b"\r")
        lines: list[str] = []
        for raw in whole:
            if self._overlong or len(raw) > MAX_LINE_BYTES:
                self._overlong = False
                self.dropped_lines += 1
                continue
            text = raw.decode("latin-1").strip(_EDGE)
            if text:
                lines.append(text)
        if len(rest) > MAX_LINE_BYTES:
            self._overlong = True
        self._partial = b"" if self._overlong else rest
        return lines

    @property
    def pending_bytes(self) -> int:
        """How much of an unfinished line is kept: at most ``MAX_LINE_BYTES``."""
        return len(self._partial)

    def take_prompt(self) -> bool:
        """Whether the modem waits for text: ``> `` at the start of a line without an end (27.005 clause 3.5.1). Told once."""
        if self._partial != b"> ":
            return False
        self._partial = b""
        return True


def is_clean(line: str) -> bool:
    """Whether the line has no control characters but tabs, with which makers pad: one that has some was hit by noise."""
    return not any(char in _CONTROL and char != "\t" for char in line)
