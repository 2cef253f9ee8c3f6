"""Serves ``status.sock``: watchers, and requests to measure. One thread talks to the clients, and nobody ever waits for a client; what they
want done, which may take seconds, has threads of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
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
    """``closing``: the last thing was said to it."""

    writer: asyncio.StreamWriter
    watching: bool = False
    pair: str | None = None
    closing: bool = False

    def say(self, message: dict[str, Any], *, last: bool = False) -> None:
        if self.closing:
            return
        self.writer.write(encode(message))
        if self.writer.transport.get_write_buffer_size() > _OUTGOING:
            log.info("a watcher that does not read was dropped")
            self.writer.transport.abort()
            self.closing = True
        elif last:
            self.writer.close()
            self.closing = True


class StatusServer:
    """``listening``: from ``status_socket.listen``. ``wake`` may be called from any thread."""

    def __init__(self, listening: socket.socket, service: StatusService) -> None:
        self._listening, self._service = listening, service
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._clients: set[_Client] = set()
        self._changed = asyncio.Event()
        self._stopping = False
        self._one_at_a_time = threading.Lock()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()), name="status")
        self._thread.daemon = True

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something happened: tell the watchers soon."""
        self._call(self._changed.set)

    def _call(self, action: Callable[..., None], *arguments: object) -> None:
        """Have it done by the thread; nothing once that has ended."""
        with self._lock:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(action, *arguments)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Tell those who wait how their runs ended, and close."""
        if self._stopping:
            return
        self._stopping = True
        self.wake()
        self._thread.join(timeout_s)
        if not self._thread.is_alive():  # it may be told late of its end
            with self._lock:
                self._loop.close()

    # --- the thread ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        # Not start_unix_server: from Python 3.13 on that looks its path up, which is none for a socket reached through /proc/self/fd.
        server = await asyncio.start_server(self._serve, sock=self._listening, limit=LONGEST_REQUEST)
        while not self._stopping:
            began_s = self._loop.time()
            period_s = _RUNNING_S if any(client.pair for client in self._clients) else _IDLE_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), period_s if self._clients else None)
            if not self._stopping:
                await asyncio.sleep(max(0.0, began_s + _SOONEST_S - self._loop.time()))
                self._changed.clear()
                self._tell()
        self._tell()
        server.close()
        for client in self._clients:
            client.writer.transport.abort()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, until it goes or all was said to it."""
        client = _Client(writer)
        if len(self._clients) < _MOST_CLIENTS and not self._stopping:
            self._clients.add(client)
            self._changed.set()
            try:
                while not client.closing:
                    self._answer(client, await reader.readuntil(b"\n"))
            except (asyncio.IncompleteReadError, OSError):
                pass  # it went away
            except asyncio.LimitOverrunError:
                client.say({"type": "error", "reason": f"a line longer than {LONGEST_REQUEST} bytes"}, last=True)
            except Exception:
                log.exception("a client of the status socket is dropped")
        client.closing = True
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self._clients.discard(client)

    def _answer(self, client: _Client, line: bytes) -> None:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            client.say({"type": "error", "reason": f"no JSON: {error}"})
            return
        operation = request.get("op") if isinstance(request, dict) else None
        if operation == "status":
            client.say(self._service.status(), last=True)
        elif operation == "watch":
            client.watching = True
            client.say(self._service.status())
        elif operation in ("start", "cancel", "campaign", "traces", "sims"):
            wanted = (client, operation, request)
            threading.Thread(target=self._carry_out, args=wanted, name="status request", daemon=True).start()
        else:
            known = "watch, status, start, cancel, campaign, traces or sims"
            client.say({"type": "error", "reason": f"expected op: {known}"})

    def _tell(self) -> None:
        """A status to all watchers, progress to those whose runs go on, the end to those whose runs have ended."""
        followed = [client for client in self._clients if client.watching or client.pair is not None]
        try:
            status = self._service.status() if followed else {}
            for client in followed:
                if client.watching:
                    client.say(status)
                if client.pair is not None:
                    self._follow(client, client.pair, status["run"])
        except Exception:
            # Whatever one status brings about, the next one is served.
            log.exception("the status socket goes on")

    def _follow(self, client: _Client, pair: str, run: dict[str, Any] | None) -> None:
        outcome = self._service.outcome(pair)
        if outcome is not None:
            client.pair = None
            client.say({"type": "done", **outcome}, last=not client.watching)
        elif self._stopping:
            client.say({"type": "done", "runs": [], "results": [], "ok": False}, last=True)
        else:
            client.say({"type": "progress", "pair": pair, "run": run})

    # --- a thread of a request -----------------------------------------------------------------------------------------

    def _carry_out(self, client: _Client, operation: str, request: dict[str, Any]) -> None:
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
        self._call(self._carried_out, client, answer)

    def _carried_out(self, client: _Client, answer: dict[str, Any]) -> None:
        """What began is followed: its client gets its progress and its end."""
        began = answer["type"] == "accepted"
        client.pair = answer.get("pair") if began else client.pair
        client.say(answer, last=not began)

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
