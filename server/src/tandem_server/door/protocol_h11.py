"""The guard around uvicorn's parser in Python."""

from __future__ import annotations

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tandem_server.door.protocol import Guard


class GuardedH11(Guard, H11Protocol):
    """h11's states say what is waited for."""

    def on_response_complete(self) -> None:
        """The answer is handed over."""
        super().on_response_complete()
        self.watch()

    def data_received(self, data: bytes) -> None:
        """More has come."""
        self.heard()
        try:
            super().data_received(data)
        except h11.LocalProtocolError:
            # What follows an answered request is no HTTP: there is nothing left to say, and uvicorn would try.
            self.transport.abort()
        self.watch()

    def awaited(self) -> tuple[str, int] | None:
        """See ``Guard``."""
        theirs = self.conn.their_state
        if theirs is h11.SEND_BODY:
            return "body", id(self.cycle)
        if theirs is h11.IDLE:
            begun = self.cycle is None or bool(self.conn.trailing_data[0])
            return "head" if begun else "rest", id(self.cycle)
        return None
