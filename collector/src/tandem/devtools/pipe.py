"""The DevTools protocol over two pipes: JSON messages, each ended by a zero byte (Chromium's ``--remote-debugging-pipe``).

What the other end sends is outside bytes: everything that is no message, too long, or not in time is a DevToolsError.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_WAKE_S = 0.25
_CHUNK_BYTES = 1 << 16


class DevToolsError(Exception):
    """The browser is gone, silent, or says what is no DevTools message; one line."""


class RefusedError(DevToolsError):
    """The browser answered a command with an error; it lives."""


class TooLateError(DevToolsError):
    """What was waited for did not come in time."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``session``: of the target that it is about, empty for the browser's own."""

    method: str
    params: dict[str, Any]
    session: str


class DevTools:
    """One end of the pipes, used from one thread. ``stop``: looked at while waiting, TooLateError when it says so. ``longest``: bytes that
    a message may have."""

    def __init__(
        self, reading: int, writing: int, stop: Callable[[], bool] = lambda: False, longest: int = 16 << 20
    ) -> None:
        self._reading, self._writing, self._stop, self._longest = reading, writing, stop, longest
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        self._buffer = bytearray()
        self._scanned = 0
        self._events: deque[Event] = deque()
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0

    def call(
        self, method: str, params: dict[str, Any] | None = None, session: str = "", *, until_s: float
    ) -> dict[str, Any]:
        """Send a command, wait for its answer until ``until_s`` (time.monotonic()). RefusedError, DevToolsError."""
        return self.answer(self.send(method, params, session, until_s=until_s), until_s=until_s)

    def send(self, method: str, params: dict[str, Any] | None = None, session: str = "", *, until_s: float) -> int:
        """Send a command; the number by which ``answer`` knows it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        left = memoryview(json.dumps(message).encode() + b"\0")
        while left:
            try:
                left = left[os.write(self._writing, left) :]
            except BlockingIOError:
                self._await(self._writing, select.POLLOUT, until_s, method)
            except OSError as error:
                raise DevToolsError("the browser has gone") from error
        return self._number

    def answer(self, number: int, *, until_s: float) -> dict[str, Any]:
        """Wait for the answer of command ``number``."""
        while number not in self._answers:
            self._receive(until_s, f"answer {number}")
        told = self._answers.pop(number)
        if "error" in told:
            detail = told["error"].get("message") if isinstance(told["error"], dict) else told["error"]
            raise RefusedError(f"DevTools: {str(detail)[:200]}")
        result = told.get("result", {})
        if not isinstance(result, dict):
            raise DevToolsError("DevTools: an answer whose result is no object")
        return result

    def answered(self, number: int) -> bool:
        """Whether the answer of ``number`` has come, without waiting."""
        return number in self._answers

    def event(self, until_s: float) -> Event | None:
        """The next event; None when none came until ``until_s``. DevToolsError."""
        while not self._events:
            try:
                self._receive(until_s, "an event")
            except TooLateError:
                return None
        return self._events.popleft()

    def _receive(self, until_s: float, what: str) -> None:
        """Take in at least one message."""
        while True:
            end = self._buffer.find(0, self._scanned)
            if end >= 0:
                message = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._scanned = 0
                self._take(message)
                return
            self._scanned = len(self._buffer)
            if len(self._buffer) > self._longest:
                raise DevToolsError(f"DevTools: a message of more than {self._longest} bytes")
            try:
                more = os.read(self._reading, _CHUNK_BYTES)
            except BlockingIOError:
                self._await(self._reading, select.POLLIN, until_s, what)
                continue
            except OSError as error:
                raise DevToolsError("the browser has gone") from error
            if not more:
                raise DevToolsError("the browser has gone")
            self._buffer += more

    def _take(self, message: bytes) -> None:
        try:
            told = json.loads(message)
        except (ValueError, RecursionError) as error:
            raise DevToolsError(f"DevTools: no JSON: {message[:60]!r}") from error
        if not isinstance(told, dict):
            raise DevToolsError(f"DevTools: no message: {message[:60]!r}")
        number, method, params = told.get("id"), told.get("method"), told.get("params", {})
        if isinstance(number, int):
            self._answers[number] = told
        elif isinstance(method, str) and isinstance(params, dict):
            session = told.get("sessionId", "")
            self._events.append(Event(method, params, session if isinstance(session, str) else ""))
        else:
            raise DevToolsError(f"DevTools: no message: {message[:60]!r}")

    def _await(self, descriptor: int, event: int, until_s: float, what: str) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        while True:
            left_s = until_s - time.monotonic()
            if self._stop():
                raise TooLateError("stopped")
            if left_s <= 0:
                raise TooLateError(f"the browser is silent ({what})")
            if poll.poll(1000 * min(left_s, _WAKE_S)):
                return
