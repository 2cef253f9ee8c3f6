"""HTTP/1.1 over a connection that cannot be kept for nothing: every wait for the peer ends."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from tandem_server.door.admission import Admitted, Door, ends_of

_WRITE_S = 30.0
"""How long an answer may wait for a peer that does not read it."""

_GRACE = 1.5
"""The application ends a late body itself, with an answer; when that fails, it ends here after so many times as long."""

_SAME_AGAIN_S = 60.0


class Guard(asyncio.Protocol):
    """Before a protocol of uvicorn's: those have one bound in time, for a connection that rests after an answer, and the first byte
    afterwards lifts it for ever. ``awaited`` says what the peer is waited for."""

    door: Door
    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    _admitted: Admitted | None = None
    _stage: tuple[str, int] | None = None
    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _heard_s: float = 0.0

    def awaited(self) -> tuple[str, int] | None:
        """``head``, ``body`` or ``rest`` and of which request; None: nothing, it is being answered."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of a connection: no datagrams
        """TLS's handshake is done."""
        super().connection_made(transport)
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._admitted = self.door.find(ends_of(peer, own)) if peer and own else None
        if self._admitted is not None:
            self._admitted.abort = transport.abort
        self.watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        for timer in (self._timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        if self._admitted is not None:
            self.door.left(self._admitted)
        super().connection_lost(exc)

    def heard(self) -> None:
        """Something has come."""
        self._heard_s = time.monotonic()

    def pause_writing(self) -> None:
        """The peer reads more slowly than it is answered."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(_WRITE_S, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def watch(self) -> None:
        """Give what is waited for now its time, once."""
        stage, bounds = self.awaited(), self.door.bounds
        if stage == self._stage:
            return
        self._stage = stage
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if stage is None or self.transport.is_closing():
            return
        idle_s = bounds.idle_s if self._known() else bounds.head_s
        within_s = {"head": bounds.head_s, "body": bounds.body_s * _GRACE, "rest": idle_s}[stage[0]]
        self._timer = self.loop.call_later(within_s, self._late, within_s)

    def _known(self) -> bool:
        return self._admitted is None or self._admitted.probe is not None

    def _late(self, within_s: float) -> None:
        quiet_s = time.monotonic() - self._heard_s
        if self._stage is not None and self._stage[0] == "body" and self._known() and quiet_s < within_s:
            # A probe on a slow path may take its time for a trace, as long as something comes.
            self._timer = self.loop.call_later(within_s - quiet_s, self._late, within_s)
        else:
            self.transport.abort()


def guarded(door: Door) -> type[Any]:
    """The protocol of the connections of one listener: with the parser in C where it is to be had."""
    try:
        from tandem_server.door.protocol_tools import GuardedTools as Found
    except ImportError:
        from tandem_server.door.protocol_h11 import GuardedH11 as Found  # type: ignore[assignment]
    return type("GuardedHere", (Found,), {"door": door})


class OnceAMinute(logging.Filter):
    """Lets the same message through once a minute: a stranger must not fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._last_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Messages are told apart by their text before the values go in, of which a program has few."""
        now_s = time.monotonic()
        if record.exc_info or now_s - self._last_s.get(str(record.msg), -_SAME_AGAIN_S) >= _SAME_AGAIN_S:
            self._last_s[str(record.msg)] = now_s
            return True
        return False
