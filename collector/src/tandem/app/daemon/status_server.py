"""Serves ``status.sock``: watchers, and requests to measure. One thread talks to the clients, and nobody ever waits for a client; what they
want done, which may take seconds, has threads of its own."""

from __future__ import annotations

import json
import logging
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tandem.app.daemon.status import StatusService
from tandem.app.daemon.status_socket import LONGEST_REQUEST, encode

log = logging.getLogger(__name__)

_IDLE_S, _RUNNING_S, _SOONEST_S = 1.0, 0.5, 0.1
_OUTGOING = 512 * 1024
"""A watcher that lets more than this pile up is dropped: about two minutes of status objects."""
_MOST_CLIENTS = 16


@dataclass(slots=True, eq=False)
class _Client:
    connection: socket.socket
    incoming: bytearray = field(default_factory=bytearray)
    outgoing: bytearray = field(default_factory=bytearray)
    watching: bool = False
    pair: str | None = None
    closing: bool = False


class StatusServer:
    """``listening``: from ``status_socket.listen``. ``wake`` may be called from any thread."""

    def __init__(self, listening: socket.socket, service: StatusService) -> None:
        self._listening, self._service = listening, service
        self._selector = selectors.DefaultSelector()
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._clients: set[_Client] = set()
        self._stopping = False
        self._sent_s = 0.0
        self._soon = False
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)
        self._one_at_a_time = threading.Lock()
        self._carried_out: deque[tuple[_Client, dict[str, Any]]] = deque()

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something happened: tell the watchers soon."""
        self._soon = True
        self._rouse()

    def _rouse(self) -> None:
        with self._lock:  # not a descriptor that is closed, or another's by now
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Tell those who wait how their runs ended, and close."""
        if self._stopping:
            return
        self._stopping = True
        self._rouse()
        self._thread.join(timeout_s)
        self._listening.close()
        if not self._thread.is_alive():  # it may be told late of its end
            self._selector.close()
            with self._lock:
                os.close(self._wake_fd)
                self._wake_fd = -1

    def _run(self) -> None:
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake_fd, selectors.EVENT_READ, self._woken)
        while not self._stopping:
            for key, mask in self._selector.select(self._timeout_s()):
                action: Callable[[int], None] = key.data
                action(mask)
            now = time.monotonic()
            if self._clients and now - self._sent_s >= (_SOONEST_S if self._soon else self._period_s()):
                self._sent_s, self._soon = now, False
                self._guarded(self._tell)
        self._guarded(self._tell)
        for client in list(self._clients):
            self._drop(client)

    @staticmethod
    def _guarded(action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            # Whatever one status or one client brings about, the next one is served.
            log.exception("the status socket goes on")

    def _carry_out(self, client: _Client, operation: str, request: dict[str, Any]) -> None:
        """A thread of a request."""
        try:
            with self._one_at_a_time:
                answer = self._do(operation, request)
        except ValueError as refused:
            answer = {"type": "refused", "reason": str(refused)}
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            reason = f"{where}{error.strerror or error}; hint: a writable folder with room"
            answer = {"type": "refused", "reason": reason}
        except Exception as error:
            log.exception("%s", operation)
            answer = {"type": "error", "reason": f"{operation}: {error!r}; hint: the collector's log has more"}
        self._carried_out.append((client, answer))
        self._rouse()

    def _do(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        if operation == "start":
            experiment, parameters = request.get("experiment"), request.get("parameters", {})
            if not isinstance(experiment, str) or not isinstance(parameters, dict):
                raise ValueError("experiment is no text, or parameters are no object")
            return {"type": "accepted", "pair": self._service.request(experiment, parameters)}
        if operation == "cancel":
            pair = request.get("pair")
            if pair is not None and not isinstance(pair, str):
                raise ValueError("pair is no text")
            return {"type": "accepted", "pair": self._service.cancel(pair)}
        if operation == "campaign":
            return {"type": "campaign", **self._service.campaign(request)}
        if operation == "traces":
            return {"type": "traces", **self._service.traces(request)}
        return {"type": "sims", **self._service.sims()}

    def _period_s(self) -> float:
        return _RUNNING_S if any(c.pair for c in self._clients) else _IDLE_S

    def _timeout_s(self) -> float | None:
        if not self._clients:
            return None
        wanted = self._sent_s + (_SOONEST_S if self._soon else self._period_s()) - time.monotonic()
        return max(0.0, wanted)

    def _woken(self, _mask: int) -> None:
        os.eventfd_read(self._wake_fd)
        while self._carried_out:
            client, answer = self._carried_out.popleft()
            if client in self._clients:
                # What began is followed: its client is told of progress and of the end.
                client.pair = answer.get("pair") if answer["type"] == "accepted" else client.pair
                self._say(client, answer, last=answer["type"] != "accepted")
                self._send(client)

    def _accept(self, _mask: int) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            time.sleep(_SOONEST_S)  # gone before it was answered; or no descriptor is left, and it goes on waiting
            return
        connection.setblocking(False)
        client = _Client(connection)
        if len(self._clients) >= _MOST_CLIENTS:
            connection.close()
            return
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, lambda mask: self._guard(client, mask))

    def _guard(self, client: _Client, mask: int) -> None:
        try:
            self._serve(client, mask)
        except Exception:
            log.exception("a client of the status socket is dropped")
            self._drop(client)

    def _serve(self, client: _Client, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            try:
                piece = client.connection.recv(65536)
            except BlockingIOError:
                piece = None
            except OSError:
                piece = b""
            if piece == b"":
                self._drop(client)
                return
            client.incoming += piece or b""
            while b"\n" in client.incoming and not client.closing:
                line, _, rest = bytes(client.incoming).partition(b"\n")
                client.incoming[:] = rest
                self._answer(client, line)
            if len(client.incoming) > LONGEST_REQUEST:
                self._say(client, {"type": "error", "reason": f"a line longer than {LONGEST_REQUEST} bytes"}, last=True)
        self._send(client)

    def _answer(self, client: _Client, line: bytes) -> None:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._say(client, {"type": "error", "reason": f"no JSON: {error}"})
            return
        operation = request.get("op") if isinstance(request, dict) else None
        if operation == "status":
            self._say(client, self._service.status(), last=True)
        elif operation == "watch":
            client.watching = True
            self._say(client, self._service.status())
        elif operation in ("start", "cancel", "campaign", "traces", "sims"):
            wanted = (client, operation, request)
            threading.Thread(target=self._carry_out, args=wanted, name="status request", daemon=True).start()
        else:
            known = "watch, status, start, cancel, campaign, traces or sims"
            self._say(client, {"type": "error", "reason": f"expected op: {known}"})

    def _tell(self) -> None:
        """A status to all watchers, progress to those whose runs go on, the end to those whose runs have ended."""
        status = self._service.status() if any(c.watching or c.pair for c in self._clients) else None
        for client in list(self._clients):
            if status is not None and client.watching:
                self._say(client, status)
            if status is not None and client.pair is not None:
                outcome = self._service.outcome(client.pair)
                if outcome is not None:
                    client.pair = None
                    self._say(client, {"type": "done", **outcome}, last=not client.watching)
                elif self._stopping:
                    self._say(client, {"type": "done", "runs": [], "results": [], "ok": False}, last=True)
                else:
                    self._say(client, {"type": "progress", "pair": client.pair, "run": status["run"]})
            self._send(client)

    def _say(self, client: _Client, message: dict[str, Any], *, last: bool = False) -> None:
        if not client.closing:
            client.outgoing += encode(message)
            client.closing = last

    def _send(self, client: _Client) -> None:
        if client not in self._clients:
            return
        try:
            while client.outgoing:
                del client.outgoing[: client.connection.send(client.outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        if len(client.outgoing) > _OUTGOING:
            log.info("a watcher that does not read was dropped")
            self._drop(client)
        elif client.closing and not client.outgoing:
            self._drop(client)
        else:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.outgoing else 0)
            key = self._selector.get_key(client.connection)
            if key.events != wanted:
                self._selector.modify(client.connection, wanted, key.data)

    def _drop(self, client: _Client) -> None:
        if client not in self._clients:
            return
        self._clients.discard(client)
        self._selector.unregister(client.connection)
        client.connection.close()
