"""Waiting for a trace's bytes: a newer request for the same trace ends the wait of an older one.

A link that breaks leaves its connection open at this end for minutes. The probe comes back long before, and must not find its share of
requests taken by its own dead ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

_STALL_BYTES = 4096


class Superseded(Exception):  # noqa: N818  (an answer, no accident)
    """A newer request sends this trace now."""


class Wait:
    """One request's wait. ``stall_s``: within which 4 KiB must come."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self._timeout: asyncio.Timeout | None = None
        self._over = False

    def end(self) -> None:
        """From the event loop: whoever waits gets Superseded now."""
        self._over = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    async def pieces(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes as they come; TimeoutError when too few do, Superseded."""
        loop, counted = asyncio.get_running_loop(), 0
        deadline_s = loop.time() + self._stall_s
        while not self._over:
            try:
                async with asyncio.timeout_at(deadline_s) as self._timeout:
                    piece = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if self._over:
                    break
                raise
            finally:
                self._timeout = None
            counted += len(piece)
            if counted >= _STALL_BYTES:
                deadline_s, counted = loop.time() + self._stall_s, 0
            yield piece
        raise Superseded
