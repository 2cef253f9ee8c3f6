"""What the measurement listener answers: ``/v1/whoami`` and ``/v1/download`` (server/spec/endpoint-api.md)."""

from __future__ import annotations

import errno
import json
import logging
import socket
import struct
import threading
import time
from http import HTTPStatus

from tandem_server.endpoint import handshake
from tandem_server.endpoint.download import Download
from tandem_server.endpoint.flows import FlowAccount, Labels
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.request import HEAD_LIMIT_BYTES, BadRequest, Request, read_ask, read_head
from tandem_server.endpoint.sampler import Sampler
from tandem_server.endpoint.sessions import Refused, Session, SessionTable

_LOG = logging.getLogger("tandem.endpoint.measurement")
_GOODBYE_S = 2.0


class Measurement:
    """Serves one connection at a time per thread (``Acceptor``). ``boot``: this machine's boot id, for the records."""

    def __init__(self, sessions: SessionTable, recorder: Recorder, boot: str) -> None:
        self._sessions, self._recorder, self._boot = sessions, recorder, boot

    def serve(self, connection: socket.socket, address: str, port: int, stopped: threading.Event) -> None:
        """One request, one answer, closed. OSError when the peer goes away meanwhile."""
        try:
            request = read_head(_receive_head(connection, self._sessions.limits.head_s))
            if request.method != "GET":
                raise BadRequest(405, "only GET")
            if request.path == "/v1/whoami":
                known = self._sessions.get(request.headers.get("x-tandem-session", "")) is not None
                _answer(connection, 200, {"address": address, "port": port, **handshake.seen(connection, known)})
            elif request.path == "/v1/download":
                self._download(connection, request, stopped)
            else:
                raise BadRequest(404, "there are /v1/whoami and /v1/download")
        except BadRequest as refusal:
            _answer(connection, refusal.status, {"error": str(refusal)})
        except TimeoutError:
            _answer(connection, 408, {"error": "the request did not come in time"})

    def _download(self, connection: socket.socket, request: Request, stopped: threading.Event) -> None:
        ask = read_ask(request.query)
        session = self._sessions.get(request.headers.get("x-tandem-session", ""))
        if session is None:
            raise BadRequest(403, "no open session; open one at the control channel")
        if ask.payload_bytes is not None and ask.payload_bytes > session.budget_bytes - session.used_bytes:
            raise BadRequest(429, f"{session.budget_bytes - session.used_bytes} bytes are left of the session's budget")
        if ask.seconds is not None and ask.seconds > session.deadline_s - time.monotonic():
            raise BadRequest(429, "longer than the session lasts")
        try:
            session.enter()
        except Refused as refusal:
            raise BadRequest(429, str(refusal)) from None
        summary = None
        try:
            head = _head(
                200,
                "application/octet-stream",
                None if ask.payload_bytes is None else ask.payload_bytes,
            )
            account = FlowAccount(self._labels(session), _congestion_control(connection), len(head))
            download = Download(
                connection,
                Sampler(connection),
                ask,
                session,
                lambda snapshot: self._recorder.put(account.take(snapshot)),
                lambda: stopped.is_set() or session.ended.is_set() or time.monotonic() > session.deadline_s,
                self._sessions.limits.stall_s,
            )
            end = download.run(head)
            summary = {**account.summary(), "bytes_sent": download.sent_bytes, "end": end}
            _LOG.info("run %s %s: %d bytes, %s", session.run, session.kind, download.sent_bytes, end)
        finally:
            session.leave(summary)
        if end in ("complete", "budget"):
            _goodbye(connection)
        else:
            # What still waits in the kernel is worth nothing now: a reset stops it and tells the peer.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _labels(self, session: Session) -> Labels:
        return Labels(session.probe, self._boot, session.run, session.kind, session.path, session.paths)


def _receive_head(connection: socket.socket, within_s: float) -> bytes:
    """The bytes up to and with the empty line; TimeoutError, BadRequest (too long), ConnectionError (closed before)."""
    deadline_s = time.monotonic() + within_s
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > HEAD_LIMIT_BYTES:
            raise BadRequest(431, f"the head is longer than {HEAD_LIMIT_BYTES} bytes")
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        more = connection.recv(HEAD_LIMIT_BYTES)
        if not more:
            raise ConnectionError("closed before the request was whole")
        head += more
    if not head.endswith(b"\r\n\r\n"):
        raise BadRequest(400, "something follows the head")
    connection.settimeout(within_s)
    return head


def _head(status: int, kind: str, length: int | None) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        *([] if length is None else [f"Content-Length: {length}"]),
        "Cache-Control: no-store",
        "Connection: close",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def _answer(connection: socket.socket, status: int, body: dict[str, object]) -> None:
    content = json.dumps(body).encode()
    connection.settimeout(_GOODBYE_S)
    connection.sendall(_head(status, "application/json", len(content)) + content)
    _goodbye(connection)


def _goodbye(connection: socket.socket) -> None:
    """Close our side and wait a moment for the peer's: closing at once with bytes unread would reset the answer away."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            return  # the peer has reset it: a client that stopped reading by its own clock does
        raise
    deadline_s = time.monotonic() + _GOODBYE_S
    unread = HEAD_LIMIT_BYTES
    while unread > 0 and (left_s := deadline_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            more = connection.recv(HEAD_LIMIT_BYTES)
        except TimeoutError:
            return
        if not more:
            return
        unread -= len(more)


def _congestion_control(connection: socket.socket) -> str:
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return raw.split(b"\0")[0].decode("ascii", "replace")
