"""The guard around uvicorn's parser in C, which bounds neither a head's size nor how many requests come in one go."""

from __future__ import annotations

from typing import Literal

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tandem_server.door.protocol import Guard

HEAD_BYTES = 32 * 1024
PIPELINED = 16
"""Requests that wait for the answer to the one before. A chunk of 256 KiB would hold ten thousand, and make as many answers begin."""


class TooMany(ValueError):  # noqa: N818  (told as 400)
    """Raised to the parser, which gives up."""


class GuardedTools(Guard, HttpToolsProtocol):
    """The parser's calls say what is waited for."""

    _part: Literal["head", "body", "done"] = "head"
    _number = 0
    _head_bytes = 0

    def on_response_complete(self) -> None:
        """The answer is handed over."""
        super().on_response_complete()
        self.watch()

    def data_received(self, data: bytes) -> None:
        """More has come."""
        self.heard()
        if self.transport.is_closing():
            return  # told 400 already
        super().data_received(data)
        if self._part == "head":
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The head is too long.")
        self.watch()

    def on_message_begin(self) -> None:
        """A request begins."""
        if len(self.pipeline) >= PIPELINED:
            raise TooMany
        super().on_message_begin()
        self._part, self._number, self._head_bytes = "head", self._number + 1, 0

    def on_headers_complete(self) -> None:
        """Its body, if any, follows."""
        super().on_headers_complete()
        self._part = "body"

    def on_message_complete(self) -> None:
        """It is whole."""
        super().on_message_complete()
        self._part = "done"

    def awaited(self) -> tuple[str, int] | None:
        """See ``Guard``."""
        if self._part != "done":
            return self._part, self._number
        answered = self.cycle.response_complete and not self.pipeline
        return ("rest", self._number) if answered else None
