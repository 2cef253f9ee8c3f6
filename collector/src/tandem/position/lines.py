"""A stream of bytes cut into lines of bounded length."""

from __future__ import annotations

LONGEST_LINE = 32_768
"""Bytes. gpsd's own limit for a response is 10,240 (gpsd 3.22 and 3.25, GPS_JSON_RESPONSE_MAX)."""


class Lines:
    """Fed with what a socket gives; a longer line is dropped whole, up to its end, and counted in ``dropped``."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._skipping = False
        self.dropped = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that ``piece`` completes, without their ends."""
        found: list[bytes] = []
        *ended, rest = piece.split(b"\n")
        for end in ended:
            self._rest += end
            if self._skipping or len(self._rest) > self._longest:
                self.dropped += not self._skipping
                self._skipping = False
            elif line := bytes(self._rest).strip():
                found.append(line)
            self._rest.clear()
        if not self._skipping:
            self._rest += rest
            if len(self._rest) > self._longest:
                self.dropped += 1
                self._skipping = True
        if self._skipping:
            self._rest.clear()
        return found
