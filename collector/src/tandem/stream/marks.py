"""How much payload a stream of TLS records holds up to any of its bytes. Pure.

A record of TLS 1.3 (RFC 8446, 5.2) has at most 16384 bytes of payload and 22 more: header, content type, tag. Payload counts when the
whole record is there.
"""

from __future__ import annotations

from collections import deque

RECORD_BYTES = 16384
OVERHEAD_BYTES = 22


class Marks:
    """Places of one stream, in order: so many bytes of it hold so much payload. Between two of them all records but the last are full.

    What lies before the place asked for last is forgotten, so that there are no more marks than what is on its way needs.
    """

    def __init__(self) -> None:
        self._ahead: deque[tuple[int, int]] = deque()
        self._reached = (0, 0)

    def add(self, stream_bytes: int, payload_bytes: int) -> None:
        """A place further on."""
        ahead = self._ahead
        if len(ahead) > 1 and ahead[-1][1] == ahead[-2][1] == payload_bytes:
            ahead.pop()  # nothing of payload since: answers of the library's
        ahead.append((stream_bytes, payload_bytes))

    def payload_in(self, stream_bytes: int) -> int:
        """How much payload the first so many bytes hold. Never ask for fewer than before."""
        while self._ahead and self._ahead[0][0] <= stream_bytes:
            self._reached = self._ahead.popleft()
        stream, payload = self._reached
        if not self._ahead:
            return payload
        whole = max(0, stream_bytes - stream) // (RECORD_BYTES + OVERHEAD_BYTES) * RECORD_BYTES
        return min(payload + whole, self._ahead[0][1])
