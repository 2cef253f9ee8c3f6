"""One of the processes that serve connections: takes them from its channel, and requests its sessions over their wires (``pool.py``)."""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tandem_server.endpoint.broker import SessionBroker
from tandem_server.endpoint.http1 import BadRequest
from tandem_server.endpoint.options import Options
from tandem_server.endpoint.paths import PathPeer
from tandem_server.endpoint.pool import MESSAGE_BYTES
from tandem_server.endpoint.request import Claim, Transfer

_LOG = logging.getLogger("tandem.endpoint.pool_member")
_FIRST_PART_BYTES = 1 << 20
_LARGEST_PART_BYTES = 1 << 24
_LAST_S = 3.0

Serve = Callable[[SessionBroker, socket.socket, str, int, threading.Event, bool], None]
"""Serves one connection: its broker, the socket, the peer's address and port, what says that the endpoint stops, whether to speak TLS."""


class WireBroker:
    """Admits one connection over its wire; ``ConnectionError`` from every call when the endpoint's first process has gone."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire

    def admit(self, claim: Claim, transfer: Transfer, tls: bool) -> WireLease:  # noqa: ARG002  (the other end has it with the connection)
        """See ``broker.SessionBroker``."""
        request = {"request": "admit", "claim": asdict(claim), **asdict(transfer)}
        self._wire.send(json.dumps(request).encode())
        terms = json.loads(_receive(self._wire))
        if "status" in terms:
            raise BadRequest(terms["status"], terms["reason"])
        return WireLease(self._wire, terms)


class WireLease:
    """See ``broker.BudgetLease``. The budget is taken in parts, greater ones as the transfer goes on; what is left goes back at
    the end."""

    def __init__(self, wire: socket.socket, terms: Mapping[str, Any]) -> None:
        self._wire = wire
        self.probe: str = terms["probe"]
        self.run: str = terms["run"]
        self.kind: str = terms["kind"]
        self.path: str | None = terms["path"]
        self.paths: Mapping[str, PathPeer] = {name: PathPeer(*peer) for name, peer in terms["paths"].items()}
        self.options = Options(**terms["options"])
        self._deadline_s: float = terms["deadline_s"]  # CLOCK_MONOTONIC is the same in every process
        self._ended: bool = terms["ended"]
        self._held: int = terms["taken"]
        self._part = _FIRST_PART_BYTES
        self._poll = select.poll()
        self._poll.register(wire, select.POLLIN)

    def over(self) -> bool:
        """Looks for what has come without waiting."""
        if not self._ended and self._poll.poll(0):
            _receive(self._wire)  # nothing comes unrequested but the end
            self._ended = True
        return self._ended or time.monotonic() > self._deadline_s

    def take(self, wanted_bytes: int) -> int:
        """Requests more only when what is held does not do: a transfer of known size holds it all from the beginning."""
        if self._held < wanted_bytes:
            needed = wanted_bytes - self._held
            self._held += int(self._call({"request": "take", "needed": needed, "wanted": self._part})["taken"])
            self._part = min(2 * self._part, _LARGEST_PART_BYTES)
        taken = min(wanted_bytes, self._held)
        self._held -= taken
        return taken

    def give_back(self, unused_bytes: int) -> None:
        """Kept for the next ``take``."""
        self._held += unused_bytes

    def leave(self, summary: dict[str, Any] | None) -> None:
        """Once."""
        self._call({"request": "leave", "unused": self._held, "summary": summary})

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        self._wire.send(json.dumps(request).encode())
        while True:
            answer: dict[str, Any] = json.loads(_receive(self._wire))
            if "stop" not in answer:
                return answer
            self._ended = True


def serve_channel(channel: socket.socket, serve: Serve) -> None:
    """Say that this process is ready, and serve what comes over ``channel``, a thread a connection, until the other side closes it;
    then tell the connections, and wait for them up to 3 s."""
    stopped, quiet = threading.Event(), threading.Condition()
    alive: set[threading.Thread] = set()

    def run(connection: socket.socket, wire: socket.socket, address: str, port: int, tls: bool) -> None:
        try:
            with wire, connection:
                serve(WireBroker(wire), connection, address, port, stopped, tls)
        except OSError as error:
            _LOG.info("%s: %s", address, error)
        except Exception:  # noqa: BLE001  (logged with its trace: one connection's fault must not end the others)
            _LOG.exception("%s: a fault of the endpoint", address)
        finally:
            with quiet:
                alive.discard(threading.current_thread())
                quiet.notify_all()

    channel.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 2)
        if not message:
            break
        terms = json.loads(message)
        whose = (terms["address"], terms["port"], terms["tls"])
        if len(descriptors) < 2:
            # This process has as many open as it may: the kernel has dropped what did not fit. The other connections go on.
            _LOG.warning("%s: no descriptor is left for the connection", terms["address"])
            for number in descriptors:
                os.close(number)
            continue
        connection, wire = (socket.socket(fileno=number) for number in descriptors)
        thread = threading.Thread(target=run, args=(connection, wire, *whose), daemon=True)
        with quiet:
            alive.add(thread)
        try:
            thread.start()
        except RuntimeError as error:  # no thread to be had
            _LOG.warning("%s: %s", terms["address"], error)
            with quiet:
                alive.discard(thread)
            with wire, connection:
                pass
    stopped.set()
    with quiet:
        quiet.wait_for(lambda: not alive, _LAST_S)


def _receive(wire: socket.socket) -> bytes:
    message = wire.recv(MESSAGE_BYTES)
    if not message:
        raise ConnectionError("the endpoint's first process has gone")
    return message
